"""The profile of data and machine that a recipe is chosen from: sizes, pixels, memory of a step."""

import copy
import io
import re
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from statistics import median

import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.optim import OPTIMIZERS
from mmengine.registry import DATASETS, DefaultScope
from PIL import Image
from torch import Tensor, nn

from ptnt_mm.deploy.decoding import DECODERS, Range, alone_if_large, why_unreadable
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import first_few
from ptnt_mm.workbench.config.build import build_model
from ptnt_mm.workbench.data.labels import LabelledImage, Labels, Outcome, Problem
from ptnt_mm.workbench.data.many_files import on_threads
from ptnt_mm.workbench.data.pixel_values import PixelValues, choose_range, measure_values, oddity
from ptnt_mm.workbench.data.reading.collector import DAMAGED
from ptnt_mm.workbench.project.backbones import MeasuredBackbone
from ptnt_mm.workbench.project.detectors import Detector

_SMALLEST, _CLASSIFIED = 320, 224  # usual sides in pixels
_LONGEST = 32_000  # pixels of a side, for OpenCV
_ENOUGH = 10  # objects of a class, to count


def examine_pixels(labels: Labels) -> Range | None:
    """Report what loading would lose, and skip images that no loader of a project can read.

    Returns:
        The range of values to load images of more than 8 bits in; None if the hosts' loading
        leaves enough grey levels.

    Raises:
        UserError: if no image can be read.
    """
    paths = [image.path for image in labels.images]
    found = dict(zip(paths, on_threads(_examine, paths, 'Examining pixels'), strict=True))
    deep = []
    for values, problem in found.values():
        if problem is not None:
            labels.problems.append(problem)
        if values is not None:
            deep.append(values)
    damaged = {p.file: p.detail for _, p in found.values() if p is not None and p.kind == DAMAGED}
    labels.images = [image for image in labels.images if image.path not in damaged]
    if damaged and not labels.images:
        path = min(damaged)
        raise UserError(f'no image can be read: {path}: {damaged[path]}')
    value_range = choose_range(deep) if deep else None
    if value_range is not None:
        labels.notes.append(_note(deep, len(paths), value_range))
    return value_range


def leave_out_narrow(labels: Labels, task: str, size: int | None) -> None:
    """Report and leave out images whose shorter side would have no pixel after resizing.

    Args:
        labels: The images.
        task: The task; classifiers get the shorter side in any case, and a longer side that OpenCV
            may not hold.
        size: The requested longer side in pixels, if any.
    """
    side = size or (_CLASSIFIED if task == 'classification' else _SMALLEST)
    # Training images are resized to 0.75 of the side at least, and half a pixel becomes one.
    most = _LONGEST / side if task == 'classification' else 1.5 * side
    narrow = [image for image in labels.images if max(image.size) > most * min(image.size)]
    for image in narrow:
        shown = ' x '.join(map(str, image.size))
        labels.report(image.path, 'images too narrow to be resized', f'{shown} pixels')
    labels.images = [image for image in labels.images if max(image.size) <= most * min(image.size)]
    if not labels.images:
        raise UserError(f'all images are too narrow to be resized, such as {narrow[0].path}')


def _examine(path: Path) -> tuple[PixelValues | None, Problem | None]:
    """The values of an image of more than 8 bits, and a problem."""
    try:
        with Image.open(path, formats=DECODERS) as opened, alone_if_large(opened.size):
            content = path.read_bytes()
            found = oddity(content)
            values = measure_values(content)
        if found is None:
            return values, None
        what, detail = found
        return values, Problem(path, f'images with {what}', detail, outcome=Outcome.KEPT)
    except Exception as error:  # decoders may raise anything
        return None, Problem(path, DAMAGED, why_unreadable(error))


def _note(deep: list[PixelValues], total: int, value_range: Range) -> str:
    kept = [values.levels_of_hosts for values in deep]
    if all(kept):
        lost = f'mmcv leaves at most {max(kept)} of 256 grey levels'
    elif any(values.type == 'int16' for values in deep):
        lost = 'mmcv garbles negative values'
    else:
        lost = 'mmcv cannot load them'
    lowest, highest = min(v.lowest for v in deep), max(v.highest for v in deep)
    low, high = value_range
    return (
        f'{len(deep):,} of {total:,} images have {first_few(sorted({v.depth for v in deep}))} '
        f'pixels with values from {lowest:g} to {highest:g}: {lost}. They are loaded '
        f'with {low:g} to {high:g} as 256 grey levels; change value_range in the config for others'
    )


_SAMPLES = 4  # training images, evenly spread over the data set; the largest is used

_MEMINFO = Path('/proc/meminfo')


@dataclass(frozen=True)
class StepMemory:
    """Memory of a training step in bytes.

    Attributes:
        weights: Weights, their gradients and the optimizer's state.
        image: Memory for each image of the batch.
    """

    weights: int
    image: int


def measure_memory(config: Config) -> StepMemory:
    """Take a training step on the CPU with one image, or two if BatchNorm needs them.

    Raises:
        Exception: if the data set, its pipeline or the model fails.
    """
    model = build_model(config)
    model.train()
    images = 2 if config.default_scope == 'mmseg' else 1
    known = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, int] = {}

    def remember(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with (
        DefaultScope.overwrite_default_scope(config.default_scope),
        warnings.catch_warnings(action='ignore'),
        redirect_stdout(io.StringIO()),  # pycocotools prints its progress
    ):
        data_set = DATASETS.build(copy.deepcopy(config.train_dataloader.dataset))
        chosen = range(0, len(data_set), max(len(data_set) // _SAMPLES, 1))
        sample = max((data_set[i] for i in chosen), key=lambda sample: sample['inputs'].numel())
        # Preprocessors pad annotations in place.
        batch = pseudo_collate([copy.deepcopy(sample) for _ in range(images)])
        with torch.autograd.graph.saved_tensors_hooks(remember, lambda tensor: tensor):
            losses = model(**model.data_preprocessor(batch, True), mode='loss')
        model.parse_losses(losses)[0].backward()
        return StepMemory(_of_weights(config, model), sum(kept.values()) // images)


def free_memory() -> tuple[str, int | None]:
    """The device that training would use, and its free memory in bytes; None if unknown."""
    if torch.cuda.is_available():
        return 'the GPU', torch.cuda.mem_get_info()[0]
    if not _MEMINFO.exists():
        return 'the machine', None
    kilobytes = re.search(r'MemAvailable:\s+(\d+) kB', _MEMINFO.read_text())
    return 'the machine', int(kilobytes[1]) * 1024 if kilobytes else None


def _of_weights(config: Config, model: nn.Module) -> int:
    """Take an optimizer step; return the bytes of weights, gradients and its state."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = OPTIMIZERS.build(dict(config.optim_wrapper.optimizer, params=trained))
    optimizer.step()
    states = [state for entry in optimizer.state.values() for state in entry.values()]
    tensors = [*model.parameters(), *(parameter.grad for parameter in trained), *states]
    return sum(tensor.nbytes for tensor in tensors if isinstance(tensor, Tensor))


@dataclass(frozen=True)
class Profile:
    """The inputs of a recipe's rules.

    Attributes:
        task: The task, one of ``labels.TASKS``.
        counts: The number of images in each split.
        classes: The names of the classes.
        objects: The number of objects to train on, without those that do not count, and ``most``
            that of the fullest image.
        size: (width, height) of a typical image, in pixels, rounded.
        small: The side of a small object, as a share of the longer side of its image; None if
            there are no objects.
        smaller: Which objects are below that side, as the subject of a sentence.
        detector: The detector, segmenter or classifier.
        backbone: The backbone, and whether it starts from weights.
        labels: The classes of the objects in each training image.
        memory: Memory of a training step, measured with this recipe; None if unknown.
        free: The device that trains, and its free memory in bytes, if that is known.
        asked_size: The requested longer side of images in pixels, if any.
        asked_epochs: The requested number of epochs, if any.
        asked_detector: Whether the detector was requested.
        value_range: The values that images of more than 8 bits are loaded in; None for the hosts'
            loading.
        asked_tile: The requested side of tiles in pixels, 0 for whole images, if any.
        whole: The profile of the whole images, if those to train on are their tiles.
    """

    task: str
    counts: Mapping[str, int]
    classes: tuple[str, ...]
    objects: int
    most: int
    size: tuple[int, int]
    small: float | None
    smaller: str
    detector: Detector
    backbone: MeasuredBackbone
    labels: tuple[frozenset[str], ...] = ()
    memory: StepMemory | None = None
    free: tuple[str, int | None] = ('the machine', None)
    asked_size: int | None = None
    asked_epochs: int | None = None
    asked_detector: bool = False
    value_range: Range | None = None
    asked_tile: int | None = None
    whole: 'Profile | None' = None

    @property
    def divisor(self) -> int:
        """Images are padded to multiples of this many pixels: no map covers more than that."""
        return max(self.backbone.strides[-1], self.detector.coarsest)

    @property
    def trained_on(self) -> str:
        """The word for the images to train on."""
        return 'image' if self.whole is None else 'tile'

    def of_tiles(self, tiles: Sequence[LabelledImage]) -> 'Profile':
        """The same after the images to train on were cut into tiles.

        The objects that borders cut do not change the side of a small one.
        """
        size = middle_size(tiles)
        return replace(
            self,
            counts=dict(self.counts, train=len(tiles)),
            most=max(map(_number_of_objects, tiles)),
            size=size,
            labels=_labels_of(tiles),
            small=self.small and self.small * max(self.size) / max(size),
            whole=self,
        )


def profile_of(
    task: str,
    classes: tuple[str, ...],
    splits: Mapping[str, Sequence[LabelledImage]],
    detector: Detector,
    backbone: MeasuredBackbone,
) -> Profile:
    """What the labels show; nothing is requested, and no memory is measured."""
    train = splits['train']
    numbers = list(map(_number_of_objects, train))
    small, smaller = small_objects(train)
    return Profile(
        task=task,
        counts={split: len(images) for split, images in splits.items()},
        classes=classes,
        objects=sum(numbers),
        most=max(numbers),
        size=middle_size(train),
        small=small,
        smaller=smaller,
        detector=detector,
        backbone=backbone,
        labels=_labels_of(train),
    )


def _labels_of(images: Sequence[LabelledImage]) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(item.label for item in image.objects) for image in images)


def _number_of_objects(image: LabelledImage) -> int:
    return sum(not item.ignored for item in image.objects)


def small_objects(images: Sequence[LabelledImage]) -> tuple[float | None, str]:
    """The side of a small object, as a share of the longer side of its image; and which are below.

    One object in ten is below it, or half of the objects of a class, if that side is smaller: no
    object of a class that is too small for the anchors would be detected.
    """
    sides = defaultdict(list)
    for image in images:
        for item in image.objects:
            if not item.ignored:
                side = (item.box[2] * item.box[3]) ** 0.5 / max(image.size)
                sides[item.label].append(side)
    if not sides:
        return None, ''
    found = [(float(np.quantile(sum(sides.values(), []), 0.1)), 'one object in ten is')]
    for label, of_class in sides.items():
        if len(of_class) >= _ENOUGH:
            found.append((median(of_class), f'half of {label!r} are'))
    return min(found, key=itemgetter(0))


def middle_size(images: Sequence[LabelledImage]) -> tuple[int, int]:
    """(width, height) of a typical image: the median longer and shorter side, in pixels."""
    long = round(median(max(image.size) for image in images))
    short = round(median(min(image.size) for image in images))
    is_wide = sum(image.size[0] >= image.size[1] for image in images) * 2 >= len(images)
    return (long, short) if is_wide else (short, long)
