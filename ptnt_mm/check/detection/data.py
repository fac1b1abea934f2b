"""The data sets of a detector's config, and what mmdet makes of their annotation files."""

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from mmengine.config import Config
from mmengine.registry import DATASETS, DefaultScope

from ptnt_mm.check.classes import wrong_kind
from ptnt_mm.check.data import Data, as_names, described
from ptnt_mm.data.coco_file import CocoFile, read
from ptnt_mm.engine.config import explain_build_error, kind_of
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Finding, error, note, sound

_READING = ('load_data_list', 'parse_data_info', 'filter_data')
"""What a class has from CocoDataset if it reads and filters as that does."""

_PREFIX = "write data_prefix=dict(img='train/'), or img='' if file names are whole paths"

_KEYS = ('filter_cfg', 'indices', 'test_mode')

Id = int | float | str


@dataclass(frozen=True)
class Loaded:
    """What mmdet loads of an annotation file, object by object.

    Attributes:
        paths: The path of each image, by its id.
        objects: The label of each object and whether it is ignored, by its id; those that are
            left out are not there.
        refused: Why mmdet breaks off at an object, by its id.
        used: The ids of the images that its filter and ``indices`` leave.
    """

    paths: dict[Id, str] = field(default_factory=dict)
    objects: dict[Id, tuple[int, bool]] = field(default_factory=dict)
    refused: dict[Id, str] = field(default_factory=dict)
    used: set[Id] = field(default_factory=set)


@dataclass(frozen=True)
class DetectionData(Data):
    """A data set, the classes it is asked for, and its annotation file.

    Attributes:
        file: What its annotation file holds of the images that are chosen; None if it was not
            read.
        loaded: What mmdet makes of it; None if it makes nothing of it.
        labels: The label that mmdet gives to each category that a class asks for.
        total: The number of images in the file.
    """

    file: CocoFile | None = None
    loaded: Loaded | None = None
    labels: dict[Id, int] = field(default_factory=dict)
    total: int = 0

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

    @cached_property
    def boxes(self) -> np.ndarray:
        """The boxes of the file, (N, 4) as x, y, width, height in pixels."""
        boxes = [annotation['bbox'] for annotation in self.file.annotations]
        return np.array(boxes, float).reshape(-1, 4)

    @cached_property
    def sizes(self) -> np.ndarray:
        """The size of each object's image, (N, 2) as width, height in pixels."""
        sizes = {key: (image['width'], image['height']) for key, image in self.file.images.items()}
        found = [sizes[annotation['image_id']] for annotation in self.file.annotations]
        return np.array(found, float).reshape(-1, 2)

    @cached_property
    def is_loaded(self) -> np.ndarray:
        """Whether mmdet loads each object, (N,)."""
        return self._of_objects(lambda found: found is not None)

    @cached_property
    def is_ignored(self) -> np.ndarray:
        """Whether mmdet loads each object as a crowd, of which nothing is learned, (N,)."""
        return self._of_objects(lambda found: found is not None and found[1])

    def image_path(self, image: Mapping) -> Path | None:
        """Where mmdet reads an image; None if that is remote."""
        path = self.loaded.paths[image['id']]
        # An address in place of a file's name is no remote file, but one that is not there.
        is_remote = '://' in path and path.partition('://')[0].isalnum()
        return None if is_remote else Path(path)

    def described(self, annotation: Mapping) -> str:
        """An object for a list of examples."""
        return f'id {annotation["id"]} in {self.file.images[annotation["image_id"]]["file_name"]}'

    def _of_objects(self, says: Callable[[tuple[int, bool] | None], bool]) -> np.ndarray:
        loaded = self.loaded.objects if self.loaded else {}
        found = (says(loaded.get(annotation['id'])) for annotation in self.file.annotations)
        return np.fromiter(found, bool, len(self.file.annotations))


def load(config: Config, splits: tuple[str, ...]) -> tuple[list[DetectionData], list[Finding]]:
    """Read the annotation files of a config's data sets, each once, and let mmdet load them.

    Args:
        config: The config; its host library is imported.
        splits: Which data loaders count: some of 'train', 'val' and 'test'.

    Returns:
        The data sets, and what was wrong with them or was left out.
    """
    data, findings = described(DetectionData, config, splits, _KEYS)
    files: dict[Path, CocoFile | None] = {}
    for i, one in enumerate(data):
        if not one.reads_coco:
            findings.append(_left_out(one))
            continue
        file = _read_once(one, files, findings)
        if file is not None:
            data[i] = _as_loaded(one, file, config, findings)
    return data, findings


def read_sound(data: list[DetectionData]) -> Iterator[Finding]:
    """Say how much was read of each data set, and what is wrong with its file's form."""
    reported = set()
    for one in data:
        if one.file is None:
            continue
        if _names_no_folder(one):
            yield error(one.name, 'data_prefix names no folder of images', _PREFIX)
        if one.file.path in reported:
            continue
        reported.add(one.file.path)
        yield from one.file.problems
        if not one.file.problems:
            size = f'{len(one.file.images)} images, {len(one.file.annotations)} objects'
            yield sound(one.name, size)


def _read_once(
    data: DetectionData, files: dict[Path, CocoFile | None], findings: list[Finding]
) -> CocoFile | None:
    """The annotation file of a data set; None if it is not there or cannot be read."""
    path = data.data_set.path(data.data_set.settings.get('ann_file'))
    if path is None:
        name = data.data_set.settings.get('ann_file')
        findings.append(note(str(name), 'is not a local file: nothing of it was checked'))
        return None
    if path not in files:
        files[path] = None
        if path.exists():
            # What is only looked at needs no objects, such as COCO's image_info_test-dev2017.json.
            needed = ('images', 'annotations', 'categories')
            try:
                files[path] = read(path, needed=needed if data.trains else needed[::2])
            except UserError as err:
                findings.append(error('annotation file', str(err)))
    return files[path]


def _as_loaded(
    data: DetectionData, file: CocoFile, config: Config, findings: list[Finding]
) -> DetectionData:
    """A data set with its file and what mmdet makes of it.

    mmdet gets the entries that are whole, and parses each object by itself, so that it is known
    what becomes of it.
    """
    loaded = Loaded()
    settings = dict(data.data_set.settings, pipeline=[], lazy_init=True, serialize_data=False)
    data = replace(data, file=file, total=len(file.images))
    try:
        scope = config.get('default_scope') or 'mmengine'
        # pycocotools prints what it does.
        with DefaultScope.overwrite_default_scope(scope), redirect_stdout(io.StringIO()):
            built = DATASETS.build(settings)
            built.COCOAPI = partial(_index, built.COCOAPI, file)
            built.parse_data_info = partial(_parse, built.parse_data_info, loaded)
            built.full_init()
    except Exception as err:  # data sets complain in every way there is
        said = file.problems or [*wrong_kind(data)] or _names_no_folder(data)
        if not said:
            why = explain_build_error(err)
            findings.append(error(data.name, f'the data set cannot be built: {why}'))
        return data
    loaded.used.update(info['img_id'] for info in built.data_list)
    if settings.get('indices') is not None:
        # What is not chosen may be missing or wrong.
        file = _only(file, loaded.used)
    return replace(data, file=file, loaded=loaded, labels=built.cat2label)


def _index(api: type, file: CocoFile, path: str) -> Any:
    """What mmdet reads from ``path``, made of entries that are read and are whole."""
    coco = api()
    annotations = {annotation['id']: annotation for annotation in file.annotations}
    coco.dataset = dict(
        images=list(file.images.values()),
        annotations=list(annotations.values()),
        categories=file.categories,
    )
    coco.createIndex()
    # As mmdet's constructor names them.
    coco.img_ann_map, coco.cat_img_map = coco.imgToAnns, coco.catToImgs
    return coco


def _parse(parse: Callable[[dict], dict], loaded: Loaded, raw: dict) -> dict:
    """Parse an image and each of its objects by itself."""
    image = raw['raw_img_info']
    info = parse(dict(raw_img_info=image, raw_ann_info=[]))
    loaded.paths[image['id']] = info['img_path']
    for annotation in raw['raw_ann_info']:
        try:
            found = parse(dict(raw_img_info=image, raw_ann_info=[annotation]))['instances']
        except Exception as err:  # an annotation may hold anything
            loaded.refused[annotation['id']] = f'{type(err).__name__}: {err}'
            continue
        for instance in found:
            label, ignored = instance['bbox_label'], bool(instance['ignore_flag'])
            loaded.objects[annotation['id']] = (label, ignored)
    return info


def _only(file: CocoFile, images: set[Id]) -> CocoFile:
    """A file with some of its images alone."""
    return replace(
        file,
        images={key: image for key, image in file.images.items() if key in images},
        annotations=[entry for entry in file.annotations if entry['image_id'] in images],
    )


def _names_no_folder(data: DetectionData) -> bool:
    return 'img' not in (data.data_set.settings.get('data_prefix') or {})


def _left_out(data: DetectionData) -> Finding:
    return note(
        data.name,
        f'{kind_of(data.data_set.settings)} does not read as CocoDataset does: its annotations, '
        'class names, images, boxes and masks were not checked',
    )
