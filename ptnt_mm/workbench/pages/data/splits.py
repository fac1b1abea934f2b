"""The images of a config's splits with their labels, as the hosts read them."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from mmengine.registry import TRANSFORMS, DefaultScope
from numpy.typing import ArrayLike

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.frames import one_line
from ptnt_mm.workbench.check.data_sets import LoadedDataset, as_names, find_data_sets
from ptnt_mm.workbench.check.image_lists import loading_of
from ptnt_mm.workbench.check.trial.setup import undisturbed
from ptnt_mm.workbench.config.settings import type_name
from ptnt_mm.workbench.config.view import SPLITS, ConfigView
from ptnt_mm.workbench.data.copies import crossing, digest, thumbnail
from ptnt_mm.workbench.data.image_files import ON_THEIR_SIDE, decoded
from ptnt_mm.workbench.data.many_files import on_threads

_MASKS_WITH_REGIONS = 500
"""The number of masks of a data set, evenly spread, in which regions are looked for."""


@dataclass(frozen=True)
class DataImage:
    """An image of a data set and its labels, without objects that training ignores."""

    path: Path
    size: tuple[int, int] | None = None  # width, height as loaded; None if it cannot be read
    # The classes, by index, of all objects; of the image itself; or those that are in its mask.
    labels: tuple[int, ...] = ()
    # (n, 4): left, top, right and bottom in pixels, of objects or of regions of a class in a mask.
    boxes: np.ndarray = field(default_factory=lambda: np.zeros((0, 4)))
    box_labels: tuple[int, ...] = ()  # the class of each box
    pixels: tuple[int, ...] = ()  # of each class in its mask, in the order of ``labels``


class Copy(NamedTuple):
    """Images in two splits that show the same."""

    splits: tuple[str, str]
    images: tuple[Path, Path]


@dataclass
class Data:
    """The data of a config."""

    classes: tuple[str, ...] = ()  # their names
    kind: str = 'object'  # what has labels: 'object', 'image' or 'mask'
    # Two splits of the same images are listed once.
    splits: dict[str, list[DataImage]] = field(default_factory=dict)
    copies: list[Copy] = field(default_factory=list)
    tile: int | None = None  # side in pixels of the tiles that are trained on; None without
    # The (width, height) in pixels that the pipeline resizes images of each size to, if known.
    trained: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)
    # Their ``sample_entries`` are those of a few images.
    sets: list[LoadedDataset] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # why something could not be read

    @property
    def pipeline(self) -> Sequence[Mapping]:
        """The transforms of the first training images."""
        return next((part.data_set.pipeline for part in self.sets if part.trains), ())


def read_data(view: ConfigView, samples: int) -> Data:
    """Read the data sets of all splits, and open their images.

    A data set that fails becomes a note, and so does a pipeline whose sizes cannot be read.

    Args:
        view: A config whose host is imported.
        samples: The number of images of each data set that become ``sample_entries``.
    """
    tile = view.config.get('tile')  # as ptnt new writes it
    data = Data(tile=tile if isinstance(tile, int) else None)
    splits = tuple(split for split in SPLITS if view.split(split).loader)
    data.sets, findings = find_data_sets(LoadedDataset, view, splits)
    data.notes += [f'{finding.where}: {finding.what}' for finding in findings]
    for part in data.sets:
        split = next(iter(part.pipelines))
        if part.would_fetch:
            what = f'{type_name(part.settings)} has not downloaded its files yet'
            data.notes.append(f'{split}: {what}')
            continue
        try:
            images = _read(part, data, samples)
        except Exception as error:  # a data set of any library may raise anything
            data.notes.append(f'{split}: the data set cannot be read: {one_line(error)}')
            continue
        data.splits.setdefault(split, []).extend(images)
    _open_images(data)
    sizes = {image.size for images in data.splits.values() for image in images if image.size}
    if data.tile is not None:  # larger images are evaluated in tiles
        sizes = {size for size in sizes if max(size) <= data.tile}
    try:
        data.trained = {size: resized(size, data.pipeline, data.kind) for size in sizes}
    except Exception as error:  # the settings of a transform may be anything
        why = f'a resizing step of the pipeline is not understood: {one_line(error)}'
        data.notes.append(f'the sizes as trained: {why}')
    return data


def _read(part: LoadedDataset, data: Data, samples: int) -> list[DataImage]:
    with undisturbed(part.scope):
        part.build()
        part.built.full_init()
    entries = part.built.data_list
    classes = as_names(part.built.metainfo.get('classes'))
    if data.classes and classes != data.classes:
        raise UserError(f'its classes differ from those of the first data set: {classes}')
    data.classes = classes
    places = np.linspace(0, len(entries) - 1, min(samples, len(entries))).round().astype(int)
    part.sample_entries = [entries[i] for i in places]
    if any('seg_map_path' in entry and 'instances' not in entry for entry in entries):
        data.kind = 'mask'
        return _with_masks(entries, part, len(classes))
    if any('gt_label' in entry for entry in entries):
        data.kind = 'image'
        return [DataImage(Path(entry['img_path']), labels=_of_image(entry)) for entry in entries]
    return [_with_objects(entry) for entry in entries]


def _with_objects(entry: Mapping) -> DataImage:
    objects = [item for item in entry.get('instances', ()) if not item.get('ignore_flag')]
    labels = tuple(int(item['bbox_label']) for item in objects)
    boxes = np.array([item['bbox'] for item in objects], float).reshape(-1, 4)
    size = int(entry['width']), int(entry['height'])
    return DataImage(Path(entry['img_path']), size, labels, boxes, labels)


def _of_image(entry: Mapping) -> tuple[int, ...]:
    """The class of an image, or its classes."""
    return tuple(np.atleast_1d(entry['gt_label']).astype(int).tolist())


def _with_masks(entries: Sequence[Mapping], part: LoadedDataset, classes: int) -> list[DataImage]:
    """Images with the pixels of each class, as the host loads their masks."""
    step = loading_of(part.data_set.pipeline)
    with DefaultScope.overwrite_default_scope(part.scope):
        load = TRANSFORMS.build(dict(step))

    with_regions = set(range(0, len(entries), len(entries) // _MASKS_WITH_REGIONS + 1))

    def read(place: int) -> DataImage:
        entry = entries[place]
        path = Path(entry['img_path'])
        try:
            mask = load(dict(entry, seg_fields=[]))['gt_seg_map']
        except Exception:  # ptnt check reports the file
            return DataImage(path)
        counts = np.bincount(mask.ravel(), minlength=classes)[:classes]
        labels = tuple(np.flatnonzero(counts).tolist())
        boxes, of_boxes = _regions(mask, labels if place in with_regions else ())
        pixels = tuple(counts[list(labels)].tolist())
        return DataImage(path, None, labels, boxes, of_boxes, pixels)

    return list(on_threads(read, range(len(entries)), 'Reading masks'))


def _regions(mask: np.ndarray, labels: Sequence[int]) -> tuple[np.ndarray, tuple[int, ...]]:
    """The boxes of connected pixels of one class, (n, 4), and the class of each."""
    boxes, of_boxes = [np.zeros((0, 4))], []
    for label in labels:
        number, _, found, _ = cv2.connectedComponentsWithStats((mask == label).astype(np.uint8))
        corner, extent = found[1:, :2], found[1:, 2:4]
        boxes.append(np.hstack([corner, corner + extent]))
        of_boxes += [label] * (number - 1)
    return np.concatenate(boxes), tuple(of_boxes)


class _Opened(NamedTuple):
    """A hash of an image's bytes, its small picture, and its (width, height) as loaded."""

    digest: bytes
    thumbnail: np.ndarray | None
    size: tuple[int, int] | None


def _open_images(data: Data) -> None:
    """Open every image once: complete the sizes, and find copies."""
    paths = list({image.path for images in data.splits.values() for image in images})
    opened = dict(zip(paths, on_threads(_open, paths, 'Comparing images'), strict=True))
    for split, images in data.splits.items():
        data.splits[split] = [
            image if image.size else replace(image, size=opened[image.path].size)
            for image in images
        ]
    digests = {path: found.digest for path, found in opened.items()}
    thumbnails = {
        path: found.thumbnail for path, found in opened.items() if found.thumbnail is not None
    }
    for pair in combinations(data.splits, 2):
        first, second = ([image.path for image in data.splits[split]] for split in pair)
        same = crossing(first, second, digests, thumbnails)
        data.copies += [Copy(pair, (path, copy)) for copy, path in sorted(same.items())]


def _open(path: Path) -> _Opened:
    try:
        content = path.read_bytes()
    except OSError:  # ptnt check reports it
        return _Opened(str(path).encode(), None, None)
    thumbnails: list[np.ndarray] = []
    _, size, orientation = decoded(
        io.BytesIO(content), lambda image: thumbnails.append(thumbnail(image))
    )
    if size is not None and orientation in ON_THEIR_SIDE:
        size = size[::-1]
    return _Opened(digest(content), thumbnails[0] if thumbnails else None, size)


def resized(
    size: tuple[int, int], pipeline: Sequence[Mapping], kind: str = 'object'
) -> tuple[float, float]:
    """(width, height) of an image in pixels after the resizing steps of a pipeline.

    Only Resize, RandomResize, RandomChoiceResize, FixShapeResize, ResizeEdge, ResizeShortestEdge
    and a classifier's crops are known, also as choices of RandomChoice; all other steps count as
    leaving the size as it is. A random size is the middle of its range.

    Args:
        size: (width, height) in pixels.
        pipeline: The settings of the transforms.
        kind: What has labels, as in :class:`Data`. Crops resize no object; that of a classifier is
            the image.
    """
    for step in pipeline:
        if type_name(step) == 'RandomChoice':
            # As for mmcv, a choice may be a single transform.
            choices = [[item] if isinstance(item, Mapping) else item for item in step['transforms']]
            sizes = [resized(size, choice, kind) for choice in choices]
            size = tuple(np.average(sizes, axis=0, weights=step.get('prob')).tolist())
        elif type_name(step) in _CROPS:
            if kind == 'image':
                size = _pair(step.get('scale', step.get('crop_size')))
        elif sizes := _sizes(size, step):
            size = tuple(np.mean(sizes, axis=0).tolist())
    return size


_CROPS = ('RandomResizedCrop', 'EfficientNetRandomCrop', 'CenterCrop')


def _sizes(size: tuple[float, float], step: Mapping) -> list[ArrayLike]:
    """The sizes that a step may resize an image to; none if it resizes nothing."""
    name, scale = type_name(step), step.get('scale')
    keeps = bool(step.get('keep_ratio', False))
    # The random ones leave the resizing to another step.
    actual = dict(step, type=step.get('resize_type', 'Resize'))
    if name == 'RandomResize':
        scales = [_pair(scale)] if np.ndim(scale) < 2 else list(map(_pair, scale))
        middle = np.mean(step.get('ratio_range') or 1) * np.mean(scales, axis=0)
        return _sizes(size, actual | dict(scale=tuple(middle.tolist())))
    if name == 'RandomChoiceResize':
        scales = step['scales'] if isinstance(step['scales'], list) else [step['scales']]
        return [found for scale in scales for found in _sizes(size, actual | dict(scale=scale))]
    if name == 'Resize' and scale:
        return [_fitted(size, _pair(scale), keeps)]
    if name == 'Resize':
        return [np.multiply(size, step.get('scale_factor') or 1)]
    if name == 'FixShapeResize':
        return [_fitted(size, (step['width'], step['height']), keeps)]
    if name == 'ResizeShortestEdge':
        factor = min(_pair(scale)) / min(size)
        limit = (step.get('max_size') or np.inf) / max(size)
        return [np.multiply(size, min(factor, limit))]
    if name == 'ResizeEdge':
        sides = dict(short=min(size), long=max(size), width=size[0], height=size[1])
        return [np.multiply(size, scale / sides[step.get('edge', 'short')])]
    return []


def _fitted(size: tuple[float, float], target: tuple[float, float], keeps: bool) -> ArrayLike:
    """A size resized to another; with its ratio, so that it fits into the other as mmcv does."""
    if not keeps:
        return target
    factor = min(max(target) / max(size), min(target) / min(size))
    return np.multiply(size, factor)


def _pair(scale: Any) -> tuple[float, float]:
    return tuple(scale) if isinstance(scale, Sequence) else (scale, scale)
