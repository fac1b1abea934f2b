"""ignore_index: the label of pixels that do not count, the same wherever it is stated."""

from collections.abc import Iterator, Mapping

from mmengine.config import Config

from ptnt_mm.check.segmentation.data import SegmentationData
from ptnt_mm.check.settings import preprocessor_of
from ptnt_mm.data.index_masks import IGNORED
from ptnt_mm.engine.config import kind_of
from ptnt_mm.engine.data_files import evaluators
from ptnt_mm.utils.findings import Finding, error, sound

_HEADS = ('decode_head', 'auxiliary_head')

_Labels = Iterator[tuple[str, str, int]]
"""Where a label is stated, what states it, and the label."""


def ignored_label(config: Config) -> int:
    """The label that a segmenter's loss leaves out."""
    return next((label for _, _, label in _of_heads(config)), IGNORED)


def check_ignored(data: list[SegmentationData], config: Config) -> Iterator[Finding]:
    """Compare heads, padding, evaluators, data sets and pipelines with the first head."""
    if not any(one.has_masks for one in data):
        # Depths have no label.
        return
    label, wrong = ignored_label(config), False
    stated = (*_of_heads(config), *_of_padding(config), *_of_evaluators(config), *_of_data(data))
    for where, name, other in stated:
        if other != label:
            wrong = True
            yield error(
                where,
                f'{name} is {other}, the ignore_index of the loss {label}',
                'pixels without a class would count in one place and not in the other: set both '
                'alike',
            )
    if not wrong:
        yield sound('ignore_index', f'{label} everywhere')


def _of_heads(config: Config) -> _Labels:
    for key in _HEADS:
        heads = config.model.get(key) or []
        several = isinstance(heads, (list, tuple))
        for i, head in enumerate(heads if several else [heads]):
            label = head.get('ignore_index', IGNORED)
            # None is for losses that take a mask in its place.
            if label is not None:
                yield f'model.{key}[{i}]' if several else f'model.{key}', 'ignore_index', label


def _of_padding(config: Config) -> _Labels:
    where = 'model.data_preprocessor'
    yield where, 'seg_pad_val', preprocessor_of(config).get('seg_pad_val', IGNORED)


def _of_evaluators(config: Config) -> _Labels:
    for split in ('val', 'test'):
        for evaluator in evaluators(config, split):
            if kind_of(evaluator) == 'IoUMetric':
                label = evaluator.get('ignore_index', IGNORED)
                yield split, "the evaluator's ignore_index", label


def _of_data(data: list[SegmentationData]) -> _Labels:
    """What data sets and their transforms state: their defaults mean nothing to mmseg."""
    for one in data:
        yield from _stated(one.name, "the data set's", one.data_set.settings)
        for step in one.data_set.pipeline:
            yield from _stated(one.name, f"{kind_of(step)}'s", step)


def _stated(where: str, whose: str, settings: Mapping) -> _Labels:
    for key in ('ignore_index', 'seg_pad_val'):
        if key in settings:
            yield where, f'{whose} {key}', settings[key]
