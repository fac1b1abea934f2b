"""The labels of special pixels, the same wherever stated: those of value 0, and ignored ones."""

from collections.abc import Iterator, Mapping

from mmengine.config import Config

from ptnt_mm.check.mask_lists import SegmentationData, loading_of
from ptnt_mm.check.weights import preprocessor_of
from ptnt_mm.data.index_masks import IGNORED
from ptnt_mm.engine.config import kind_of
from ptnt_mm.engine.data_files import evaluators
from ptnt_mm.utils.findings import Finding, error, sound, warning

_Labels = Iterator[tuple[str, str, int]]
"""Where a label is stated, what states it, and the label."""


def check_zero_label(data: list[SegmentationData]) -> Iterator[Finding]:
    """Compare the reduce_zero_label of data sets with their pipelines, and with each other."""
    built = [one for one in data if one.built is not None]
    reduces = [(one, bool(one.built.reduce_zero_label)) for one in built]
    for one, reduced in reduces:
        for split, pipeline in one.pipelines.items():
            loading = loading_of(pipeline) or {}
            stated = loading.get('reduce_zero_label')
            if stated not in (None, reduced) and kind_of(loading) == 'LoadAnnotations':
                what = (
                    f'reduce_zero_label is {reduced} for the data set, {stated} for LoadAnnotations'
                )
                advice = (
                    'mmseg refuses to load: leave it out of LoadAnnotations, which then follows'
                )
                yield error(split, what, advice)
    for other, reduced in reduces[1:]:
        first, expected = reduces[0]
        if reduced != expected:
            # Right if the masks of one begin at 1 and those of the other at 0.
            yield warning(
                other.name,
                f'reduce_zero_label is {reduced}, that of {first.name} {expected}',
                'set both alike, unless their masks begin at different values: the labels of one '
                'would be shifted against the other',
            )
    if len({reduced for _, reduced in reduces}) == 1:
        value = '1, 0 is ignored' if reduces[0][1] else '0'
        yield sound('reduce_zero_label', f'the first class has the value {value}')


def ignored_label(config: Config) -> int:
    """The label that a segmenter's loss leaves out."""
    return next((label for _, _, label in _of_heads(config)), IGNORED)


def check_ignored(data: list[SegmentationData], config: Config) -> Iterator[Finding]:
    """Compare heads, padding, evaluators, data sets and pipelines with the first head."""
    if not any(one.has_masks for one in data):
        # Depths have no label.
        return
    label = ignored_label(config)
    advice = 'pixels without a class would count in one place and not in the other: set both alike'
    found = [
        error(where, f'{name} is {other}, the ignore_index of the loss {label}', advice)
        for where, name, other in _stated_labels(data, config)
        if other != label
    ]
    yield from found or [sound('ignore_index', f'{label} everywhere')]


def _of_heads(config: Config) -> _Labels:
    for key in ('decode_head', 'auxiliary_head'):
        heads = config.model.get(key) or []
        several = isinstance(heads, (list, tuple))
        for i, head in enumerate(heads if several else [heads]):
            label = head.get('ignore_index', IGNORED)
            # None is for losses that take a mask in its place.
            if label is not None:
                yield f'model.{key}[{i}]' if several else f'model.{key}', 'ignore_index', label


def _stated_labels(data: list[SegmentationData], config: Config) -> _Labels:
    yield from _of_heads(config)
    padding = preprocessor_of(config).get('seg_pad_val', IGNORED)
    yield 'model.data_preprocessor', 'seg_pad_val', padding
    for split in ('val', 'test'):
        for evaluator in evaluators(config, split):
            if kind_of(evaluator) == 'IoUMetric':
                label = evaluator.get('ignore_index', IGNORED)
                yield split, "the evaluator's ignore_index", label
    # mmseg does not use the defaults of data sets and transforms: only stated labels count.
    for one in data:
        yield from _stated(one.name, "the data set's", one.settings)
        for step in one.data_set.pipeline:
            yield from _stated(one.name, f"{kind_of(step)}'s", step)


def _stated(where: str, whose: str, settings: Mapping) -> _Labels:
    for key in ('ignore_index', 'seg_pad_val'):
        if key in settings:
            yield where, f'{whose} {key}', settings[key]
