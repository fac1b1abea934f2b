"""The data sets of a detector's config, with what their annotation files hold."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mmengine.config import Config
from mmengine.registry import DATASETS

from ptnt_mm.check.detection.coco_file import CocoFile, read
from ptnt_mm.check.finding import Finding, error, note, sound
from ptnt_mm.check.settings import kind_of
from ptnt_mm.engine.data_files import DataSet, data_sets
from ptnt_mm.errors import UserError, unknown_name

_READING = ('load_data_list', 'parse_data_info', 'filter_data')
"""What a class has from CocoDataset if it reads and filters as that does."""

_PREFIX = "write data_prefix=dict(img='train/'), or img='' if file names are whole paths"


@dataclass(frozen=True)
class DetectionData:
    """A data set, the classes it is asked for, and its annotation file.

    Attributes:
        splits: Which splits use it: 'train', 'val', 'test'.
        data_set: Its settings.
        stated: The class names as the config states them, of whatever kind; None if it does not.
        classes: The class names.
        file: What its annotation file holds; None if it was not read.
    """

    splits: tuple[str, ...]
    data_set: DataSet
    stated: object
    classes: tuple[str, ...]
    file: CocoFile | None = None

    @property
    def name(self) -> str:
        """The splits, for a sentence."""
        return ' and '.join(self.splits)

    @property
    def trains(self) -> bool:
        """Whether a model learns from it."""
        return 'train' in self.splits

    @property
    def labels(self) -> dict[int | str, int]:
        """The label that mmdet gives to each category: its place among those it was asked for."""
        names = self.file.names if self.file else {}
        asked = [number for number, name in names.items() if name in self.classes]
        return {number: label for label, number in enumerate(asked)}

    def image_path(self, image: Mapping) -> Path | None:
        """Where an image is; None if that is remote."""
        prefix = (self.data_set.settings.get('data_prefix') or {}).get('img') or ''
        return self.data_set.path(os.path.join(prefix, image['file_name']))


def load(config: Config, splits: tuple[str, ...]) -> tuple[list[DetectionData], list[Finding]]:
    """Read the annotation files of a config's data sets, each once.

    Args:
        config: The config; its host library is imported.
        splits: Which data loaders count: some of 'train', 'val' and 'test'.

    Returns:
        The data sets, and what was wrong with them or was left out.
    """
    found: dict[tuple, DetectionData] = {}
    findings: list[Finding] = []
    files: dict[Path, CocoFile | None] = {}
    for split in splits:
        for data_set in data_sets(config, split):
            key = _identity(split, data_set)
            if key not in found:
                try:
                    found[key] = _described(config, split, data_set)
                except UserError as err:
                    findings.append(error(split, str(err)))
                    continue
                if _reads_coco(_class_of(config, data_set.settings)):
                    file = _read_once(data_set, files, findings)
                    found[key] = replace(found[key], file=file)
                else:
                    findings.append(_left_out(split, data_set.settings))
            elif split not in found[key].splits:
                found[key] = replace(found[key], splits=(*found[key].splits, split))
    return list(found.values()), findings


def read_sound(data: list[DetectionData]) -> Iterator[Finding]:
    """Say how much was read of each data set, and what is wrong with its file's form."""
    reported = set()
    for one in data:
        if one.file is None:
            continue
        if 'img' not in (one.data_set.settings.get('data_prefix') or {}):
            yield error(one.name, 'data_prefix names no folder of images', _PREFIX)
        if one.file.path in reported:
            continue
        reported.add(one.file.path)
        yield from one.file.problems
        if not one.file.problems:
            size = f'{len(one.file.images)} images, {len(one.file.annotations)} objects'
            yield sound(one.name, size)


def _read_once(
    data_set: DataSet, files: dict[Path, CocoFile | None], findings: list[Finding]
) -> CocoFile | None:
    """The annotation file of a data set; None if it is not there or cannot be read."""
    path = data_set.path(data_set.settings.get('ann_file'))
    if path is None:
        name = data_set.settings.get('ann_file')
        findings.append(note(str(name), 'is not a local file: nothing of it was checked'))
        return None
    if path not in files:
        files[path] = None
        if path.is_file():
            try:
                files[path] = read(path)
            except UserError as err:
                findings.append(error('annotation file', str(err)))
    return files[path]


def _identity(split: str, data_set: DataSet) -> tuple:
    """What makes two data sets one, whatever their pipelines; that of training is never another."""
    keys = ('type', 'data_root', 'ann_file', 'data_prefix', 'metainfo', 'filter_cfg')
    return split == 'train', *(repr(data_set.settings.get(key)) for key in keys)


def _described(config: Config, split: str, data_set: DataSet) -> DetectionData:
    """A data set with its class names.

    Raises:
        UserError: if its class is not there.
    """
    stated = _stated_classes(data_set.settings)
    default = getattr(_class_of(config, data_set.settings), 'METAINFO', {}).get('classes', ())
    return DetectionData((split,), data_set, stated, _names(default if stated is None else stated))


def _class_of(config: Config, settings: Mapping) -> type:
    """The class of a data set.

    Raises:
        UserError: if there is none of that name.
    """
    kind = settings.get('type')
    if isinstance(kind, type):
        return kind
    scope = config.get('default_scope') or 'mmengine'
    with DATASETS.switch_scope_and_registry(scope) as registry:
        cls = registry.get(kind) if isinstance(kind, str) else None
        if cls is None:
            raise UserError(unknown_name('type', kind, sorted(registry.module_dict)))
    return cls


def _reads_coco(cls: type) -> bool:
    """Whether a class reads and filters annotation files as mmdet's CocoDataset does."""
    coco = next((base for base in cls.__mro__ if base.__name__ == 'CocoDataset'), None)
    return coco is not None and all(getattr(cls, m) is getattr(coco, m) for m in _READING)


def _left_out(split: str, settings: Mapping) -> Finding:
    return note(
        split,
        f'{kind_of(settings)} does not read as CocoDataset does: its annotations, class names, '
        'images, boxes and masks were not checked',
    )


def _stated_classes(settings: Mapping) -> object:
    """The class names that a config states; the lines of a file if it states a file's name."""
    stated = (settings.get('metainfo') or {}).get('classes')
    if isinstance(stated, str) and Path(stated).is_file():
        return Path(stated).read_text(encoding='utf-8').splitlines()
    return stated


def _names(stated: object) -> tuple[str, ...]:
    """Class names as a tuple, a single one for a text that should have been one."""
    if isinstance(stated, str):
        return (stated,)
    return tuple(map(str, stated)) if isinstance(stated, (list, tuple)) else ()
