"""The data sets of a detector's config, with what their annotation files hold."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mmengine.config import Config

from ptnt_mm.check.data import Data, as_names, described
from ptnt_mm.coco_file import CocoFile, read
from ptnt_mm.engine.config import kind_of
from ptnt_mm.engine.data_files import DataSet
from ptnt_mm.errors import UserError
from ptnt_mm.finding import Finding, error, note, sound

_READING = ('load_data_list', 'parse_data_info', 'filter_data')
"""What a class has from CocoDataset if it reads and filters as that does."""

_PREFIX = "write data_prefix=dict(img='train/'), or img='' if file names are whole paths"


@dataclass(frozen=True)
class DetectionData(Data):
    """A data set, the classes it is asked for, and its annotation file.

    Attributes:
        file: What its annotation file holds; None if it was not read.
    """

    file: CocoFile | None = None

    @property
    def lists_objects(self) -> bool:
        """Whether it gives images with their objects, and not videos or objects alone."""
        return any(base.__name__ == 'BaseDetDataset' for base in self.cls.__mro__)

    @property
    def reads_coco(self) -> bool:
        """Whether its class reads and filters annotation files as mmdet's CocoDataset does."""
        coco = next((base for base in self.cls.__mro__ if base.__name__ == 'CocoDataset'), None)
        return coco is not None and all(getattr(self.cls, m) is getattr(coco, m) for m in _READING)

    @property
    def known_to_heads(self) -> tuple[str, ...]:
        """The class names that heads tell apart: of panoptic data, those of objects."""
        stated = self.data_set.settings.get('metainfo') or {}
        things = (getattr(self.cls, 'METAINFO', {}) | stated).get('thing_classes')
        return as_names(things) or self.classes

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
    data, findings = described(DetectionData, config, splits, ('filter_cfg',))
    files: dict[Path, CocoFile | None] = {}
    for i, one in enumerate(data):
        if one.reads_coco:
            data[i] = replace(one, file=_read_once(one.data_set, files, findings))
        else:
            findings.append(_left_out(one))
    return data, findings


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


def _left_out(data: DetectionData) -> Finding:
    return note(
        data.name,
        f'{kind_of(data.data_set.settings)} does not read as CocoDataset does: its annotations, '
        'class names, images, boxes and masks were not checked',
    )
