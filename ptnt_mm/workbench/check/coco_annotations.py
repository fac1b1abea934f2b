"""The data sets of a detector's config, and how mmdet loads their annotation files."""

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Finding, error, note, ok
from ptnt_mm.utils.text import counted
from ptnt_mm.workbench.check.data_sets import (
    ImageFile,
    LoadedDataset,
    evenly_spread,
    find_data_sets,
    misread_names,
)
from ptnt_mm.workbench.config.build_errors import explain_build_error
from ptnt_mm.workbench.config.settings import short_name
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.data.boxes import Boxes
from ptnt_mm.workbench.data.coco import CocoFile, read_coco

_READING = ('load_data_list', 'parse_data_info', 'filter_data')
"""Methods that a class inherits from CocoDataset if it reads and filters in the same way."""

Id = int | float | str


@dataclass
class DetectionDataset(LoadedDataset):
    """A data set, the classes in use, and how mmdet loads its annotation file.

    Attributes:
        file: The content of its annotation file for the chosen images; None if it was not read.
        total: The number of images in the file.
        labels: The label that mmdet gives to each category in use. Like all attributes below, it
            is empty unless mmdet could build the data set.
        used: The ids of the images that its filter and ``indices`` leave.
        ignored: Whether each loaded object is ignored, by its id.
        refused: Why mmdet fails at an object, by its id.
    """

    file: CocoFile | None = None
    total: int = 0
    labels: dict[Id, int] = field(default_factory=dict)
    used: set[Id] = field(default_factory=set)
    ignored: dict[Id, bool] = field(default_factory=dict)
    refused: dict[Id, str] = field(default_factory=dict)

    @property
    def reads_coco(self) -> bool:
        """Whether its class reads and filters annotation files as mmdet's CocoDataset does."""
        coco = next((base for base in self.cls.__mro__ if base.__name__ == 'CocoDataset'), None)
        return coco is not None and all(getattr(self.cls, m) is getattr(coco, m) for m in _READING)

    @property
    def names_folder(self) -> bool:
        """Whether its settings contain a folder of images."""
        return 'img' in self.data_set.prefixes

    @cached_property
    def boxes(self) -> Boxes:
        """The boxes of the file."""
        annotations = self.file.annotations
        sizes = {key: (image['width'], image['height']) for key, image in self.file.images.items()}
        return Boxes(
            np.array([entry['bbox'] for entry in annotations], float).reshape(-1, 4),
            np.array([sizes[entry['image_id']] for entry in annotations], float).reshape(-1, 2),
            np.array([entry['area'] for entry in annotations], float),
            are_measured=not self.trains,
        )

    @cached_property
    def is_loaded(self) -> np.ndarray:
        """Whether mmdet loads each object, (N,)."""
        return np.array([a['id'] in self.ignored for a in self.file.annotations], bool)

    @cached_property
    def is_ignored(self) -> np.ndarray:
        """Whether mmdet loads each object as a crowd, which is not trained on, (N,)."""
        return np.array([self.ignored.get(a['id'], False) for a in self.file.annotations], bool)

    def described(self, annotation: Mapping) -> str:
        """Describe an object in a list of examples."""
        return f'id {annotation["id"]} in {self.file.images[annotation["image_id"]]["file_name"]}'


def load_annotations(
    view: ConfigView, splits: tuple[str, ...]
) -> tuple[list[DetectionDataset], list[Finding]]:
    """Read the annotation files of a config's data sets, and let mmdet load them.

    Returns:
        The data sets, and findings about errors and omissions.
    """
    data, findings = find_data_sets(DetectionDataset, view, splits)
    for dataset in data:
        ann_file = dataset.settings.get('ann_file')
        path = dataset.data_set.path(ann_file)
        learns = dataset.trains and not dataset.is_unlabelled
        if not dataset.reads_coco:
            what = (
                f'{short_name(dataset.settings)} does not read files like CocoDataset: its '
                'annotations and images were not checked'
            )
            findings.append(note(dataset.name, what))
        elif path is None:
            findings.append(note(str(ann_file), 'is not a local file, and was not checked'))
        elif (file := _read(path, learns, findings)) is not None:
            findings += _load(dataset, file)
    return data, findings


def check_annotations(data: list[DetectionDataset]) -> Iterator[Finding]:
    """Report the size of each data set, and errors in the format of its file."""
    for dataset in data:
        if dataset.file is None:
            continue
        if not dataset.names_folder:
            advice = "write data_prefix=dict(img='train/'), or img='' if file names are whole paths"
            yield error(dataset.name, 'data_prefix has no folder of images', advice)
        images = counted(len(dataset.file.images), 'image')
        size = f'{images}, {counted(len(dataset.file.annotations), "object")}'
        for problem in dataset.file.problems:
            yield error(str(dataset.file.path), *problem)
        if not dataset.file.problems:
            yield ok(dataset.name, size)


def _read(path: Path, learns: bool, findings: list[Finding]) -> CocoFile | None:
    """Read an annotation file; None if it is unreadable, or missing (another check reports it)."""
    # Predicting needs no objects, as in COCO's image_info_test-dev2017.json.
    needed = ('images', 'annotations', 'categories') if learns else ('images', 'categories')
    try:
        return read_coco(path, needed=needed) if path.exists() else None
    except UserError as err:
        findings.append(error('annotation file', str(err)))
        return None


def _load(data: DetectionDataset, file: CocoFile) -> Iterator[Finding]:
    """Let mmdet load the valid entries of a file; record what becomes of each object."""
    data.file, data.total = file, len(file.images)
    paths: dict[Id, str] = {}
    try:
        data.build()
        data.built.COCOAPI = partial(index, data.built.COCOAPI, file)
        parse = data.built.parse_data_info
        data.built.parse_data_info = partial(_parse, parse, data, paths)
        # pycocotools prints its progress.
        with redirect_stdout(io.StringIO()):
            data.built.full_init()
            data.sample_entries = _parse_samples(parse, data)
    except Exception as err:  # data sets may raise anything
        data.built = None
        if not file.problems and data.names_folder and not any(misread_names(data)):
            yield error(data.name, f'the data set cannot be built: {explain_build_error(err)}')
        return
    data.labels = data.built.cat2label
    data.used = {info['img_id'] for info in data.built.data_list}
    data.built.data_list.clear()  # a copy of every object, which is not needed below
    if data.settings.get('indices') is not None:
        # Images that are not chosen may be missing or wrong.
        images = {key: image for key, image in file.images.items() if key in data.used}
        annotations = [entry for entry in file.annotations if entry['image_id'] in images]
        data.file = replace(file, images=images, annotations=annotations)
    for key, image in data.file.images.items():
        # An address as file_name ends up inside a path: such a file is missing, not remote.
        scheme, is_address, _ = paths[key].partition('://')
        path = None if is_address and scheme.isalnum() else Path(paths[key])
        data.images.append(ImageFile(path, (image['width'], image['height'])))


def index(api: type, file: CocoFile, path: str) -> Any:
    """The file that mmdet reads from ``path``, made of valid entries."""
    coco = api()
    coco.dataset = dict(
        images=list(file.images.values()),
        annotations=list({entry['id']: entry for entry in file.annotations}.values()),
        categories=file.categories,
    )
    coco.createIndex()
    # mmdet's constructor adds these names.
    coco.img_ann_map, coco.cat_img_map = coco.imgToAnns, coco.catToImgs
    return coco


def _parse_samples(parse: Callable[[dict], dict], data: DetectionDataset) -> list[dict]:
    """Let mmdet parse a few images and their objects."""
    ids = [info['img_id'] for info in evenly_spread(data.built.data_list)]
    objects: dict[Id, list[dict]] = {number: [] for number in ids}
    for annotation in data.file.annotations:
        if annotation['image_id'] in objects and annotation['id'] not in data.refused:
            objects[annotation['image_id']].append(annotation)
    images = [dict(data.file.images[number], img_id=number) for number in ids]
    return [parse(dict(raw_img_info=i, raw_ann_info=objects[i['img_id']])) for i in images]


def _parse(
    parse: Callable[[dict], dict], data: DetectionDataset, paths: dict[Id, str], raw: dict
) -> dict:
    """Parse an image and its objects, and record what becomes of each object."""
    image, annotations = raw['raw_img_info'], raw['raw_ann_info']
    try:
        info = parse(raw)
    except Exception:  # an annotation may contain anything
        info = None
    if info is not None and len(info['instances']) == len(annotations):
        for annotation, instance in zip(annotations, info['instances'], strict=True):
            data.ignored[annotation['id']] = bool(instance['ignore_flag'])
    else:
        # Some are skipped or refused: parsing each separately shows which.
        info = parse(dict(raw_img_info=image, raw_ann_info=[]))
        for annotation in annotations:
            _parse_object(parse, data, image, annotation)
    paths[image['id']] = info['img_path']
    # A copy of every object, which is not needed.
    return {**info, 'instances': []}


def _parse_object(
    parse: Callable[[dict], dict], data: DetectionDataset, image: dict, annotation: dict
) -> None:
    try:
        found = parse(dict(raw_img_info=image, raw_ann_info=[annotation]))['instances']
    except Exception as err:  # an annotation may contain anything
        data.refused[annotation['id']] = f'{type(err).__name__}: {err}'
    else:
        for instance in found:
            data.ignored[annotation['id']] = bool(instance['ignore_flag'])
