"""The data sets of a segmenter's config, with the images and masks that mmseg lists."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.registry import DATASETS, DefaultScope

from ptnt_mm.check.data import Data, as_names, described
from ptnt_mm.engine.config import explain_build_error, kind_of
from ptnt_mm.engine.data_files import evaluators
from ptnt_mm.utils.findings import Finding, note

_KEYS = ('img_suffix', 'seg_map_suffix', 'reduce_zero_label', 'ignore_index', 'indices')


@dataclass(frozen=True)
class Pair:
    """An image and its mask, whether or not they are there.

    Attributes:
        image: The image's file.
        mask: The mask's file; None if the data set names no folder of masks.
    """

    image: Path
    mask: Path | None


@dataclass(frozen=True)
class SegmentationData(Data):
    """A data set, the classes it is asked for, and what it lists.

    Attributes:
        built: mmseg's own data set, without a pipeline; None if it was left out or refused.
        refusal: Why it could not be built or read its list; empty if it could.
        pairs: Its images and masks.
    """

    built: Any = None
    refusal: str = ''
    pairs: tuple[Pair, ...] = ()

    @property
    def is_left_out(self) -> bool:
        """Whether mmseg was not asked for its list."""
        return self.built is None and not self.refusal

    @property
    def has_masks(self) -> bool:
        """Whether it gives masks of classes, as far as is known: some give depths instead."""
        if self.pairs:
            return any(pair.mask is not None for pair in self.pairs)
        return self.built is None or 'seg_map_path' in self.built.data_prefix


def loading_of(pipeline: Sequence[Mapping]) -> Mapping | None:
    """The step of a pipeline that loads masks; None if there is none."""
    return next(filter(_loads_masks, pipeline), None)


def needs_masks(config: Config, split: str) -> bool:
    """Whether a model learns from the masks of a split, or is measured on them."""
    if split == 'train':
        return True
    return any(not evaluator.get('format_only') for evaluator in evaluators(config, split))


def load(config: Config, splits: tuple[str, ...]) -> tuple[list[SegmentationData], list[Finding]]:
    """Let mmseg list the images of a config's data sets, each once.

    Args:
        config: The config; mmseg is imported.
        splits: Which data loaders count: some of 'train', 'val' and 'test'.

    Returns:
        The data sets, and what was left out.
    """
    data, findings = described(SegmentationData, config, splits, _KEYS)
    for i, one in enumerate(data):
        left_out = next(_left_out(one), None)
        if left_out is not None:
            findings.append(left_out)
        else:
            data[i] = _listed(one, config)
    return data, findings


def is_there(data: SegmentationData) -> bool:
    """Whether the files and folders are there that a data set's list is made of."""
    paths = (data.built.ann_file, data.built.data_prefix.get('img_path'))
    return all(Path(path).exists() for path in paths if path)


def _listed(data: SegmentationData, config: Config) -> SegmentationData:
    """A data set with what mmseg lists, or why it does not."""
    settings = dict(data.data_set.settings, pipeline=[], lazy_init=True, serialize_data=False)
    try:
        with DefaultScope.overwrite_default_scope(config.get('default_scope')):
            data = replace(data, built=DATASETS.build(settings))
        if is_there(data):
            data.built.full_init()
    except Exception as err:  # constructors complain in every way there is
        return replace(data, refusal=explain_build_error(err))
    # Its class may name its classes itself.
    classes = as_names(data.built.metainfo.get('classes')) or data.classes
    return replace(data, classes=classes, pairs=tuple(map(_pair, data.built.data_list)))


def _pair(entry: Mapping) -> Pair:
    mask = entry.get('seg_map_path')
    return Pair(Path(entry['img_path']), None if mask is None else Path(mask))


def _left_out(data: SegmentationData) -> Iterator[Finding]:
    settings = data.data_set.settings
    if not any(base.__name__ == 'BaseSegDataset' for base in data.cls.__mro__):
        what = f'{kind_of(settings)} is no BaseSegDataset: its images and masks were not checked'
        yield note(data.name, what)
    elif settings.get('backend_args') or '://' in str(settings.get('data_root')):
        yield note(data.name, 'is not local: its images and masks were not checked')


def _loads_masks(transform: Mapping) -> bool:
    name = kind_of(transform)
    return name.startswith('Load') and 'Annotation' in name
