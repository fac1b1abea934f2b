"""A config's test set in an export: resizing, a few images, and an evaluation."""

import copy
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from mmengine.config import Config
from mmengine.model import BaseModel
from mmengine.utils import to_2tuple

from ptnt_mm.deploy import Deployed
from ptnt_mm.deploy.decoding import Range, read_rgb
from ptnt_mm.deploy.export_info import ExportInfo
from ptnt_mm.deploy.resizing import INTERPOLATIONS, Resizing
from ptnt_mm.registry import MODELS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.numbers import is_integer
from ptnt_mm.workbench.config.settings import short_name, type_name
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.data.image_files import find_images
from ptnt_mm.workbench.engine.load_in_range import stated_range
from ptnt_mm.workbench.engine.runner import build_runner
from ptnt_mm.workbench.engine.tiled_loops import stated_tiling
from ptnt_mm.workbench.inference.predictor import fill_sample

_CLEARLY = 0.8  # a smaller share of the side that the config resizes to may cost objects


def stated_resizing(view: ConfigView) -> Resizing:
    """How the test pipeline resizes and crops images.

    Raises a UserError for a step that changes images in a way unsupported by ``ptnt_mm.deploy``.
    """
    resizing, supported = Resizing(), 'one Resize with a scale'
    crops = view.host is not None and view.host.task == 'classification'
    if crops:
        supported += ', or a ResizeEdge of the short edge, and a CenterCrop after it'
    for step in view.test.pipeline:
        kind, is_first = type_name(step), resizing == Resizing()
        if kind == 'Resize' and is_first and step.get('scale') is not None:
            resizing = Resizing(
                list(to_2tuple(step['scale'])),
                bool(step.get('keep_ratio', False)),
                interpolation=_interpolation(step),
            )
        elif crops and kind == 'ResizeEdge' and is_first and step.get('edge', 'short') == 'short':
            resizing = Resizing(edge=step['scale'], interpolation=_interpolation(step))
        elif crops and kind == 'CenterCrop' and not (resizing.crop or step.get('auto_pad')):
            resizing = resizing._replace(crop=list(to_2tuple(step['crop_size'])[::-1]))
        elif not short_name(step).startswith(('Load', 'Pack')):
            raise UserError(
                f'the test pipeline has {kind}: exported files support only {supported}. '
                'Use a config without that step'
            )
    return resizing


def _interpolation(step: Mapping) -> str:
    """The interpolation of a resizing step, one of ``INTERPOLATIONS``, or a UserError."""
    backend = step.get('backend') or 'cv2'
    interpolation = f'{backend} {step.get("interpolation", "bilinear")}'
    if interpolation not in INTERPOLATIONS:
        raise UserError(
            f'the test pipeline resizes with {interpolation!r}: expected one of '
            f'{", ".join(INTERPOLATIONS)}'
        )
    return interpolation


def check_loading(view: ConfigView) -> None:
    """Raise a UserError if the test pipeline loads images in a way that files do not have.

    Values in float32 are allowed: they are resized without rounding to 8 bits.
    """
    step = next(iter(view.test.pipeline), {})
    kind = type_name(step)
    if kind not in ('LoadImageFromFile', 'LoadImageInRange'):
        raise UserError(
            f'the test pipeline begins with {kind}: exported files support only LoadImageFromFile '
            'and LoadImageInRange'
        )
    for setting, usual in (('color_type', 'color'), ('imdecode_backend', 'cv2')):
        if (value := step.get(setting, usual)) != usual:
            raise UserError(
                f'the test pipeline loads with {setting}={value!r}: exported files read images as '
                f'with {setting}={usual!r}. Use a config without that setting'
            )


def images_of(folder: Path, value_range: Range | None) -> Iterator[np.ndarray]:
    """The images of a folder, (H, W, 3) uint8, RGB; raises a UserError if there are none.

    ``value_range`` is that of :func:`~ptnt_mm.deploy.decoding.read_rgb`.
    """
    found = find_images(folder)
    return (read_rgb(found.root / name, value_range) for name in found.files)


def test_images(view: ConfigView, number: int) -> list[np.ndarray]:
    """The first images of the test set, or patterns if it is missing."""
    for data_set in view.test.data_sets:
        for path in data_set.paths():
            if path.is_dir():
                return list(islice(images_of(path, stated_range(view.test)), number))
    return [pattern(seed) for seed in range(number)]


def usual_size(view: ConfigView) -> tuple[int, int]:
    """Height and width that hold some test images, or a tile, in the network; multiples of 32.

    If all images have one size there, it is that size.

    Raises:
        UserError: as :func:`stated_resizing`.
    """
    resizing = stated_resizing(view)
    if resizing.common_size is not None:
        return resizing.common_size
    tiling = stated_tiling(view)
    if tiling is not None:
        sizes = [(tiling.tile, tiling.tile)]
    else:
        sizes = [image.shape[:2] for image in test_images(view, 8)]
    sizes = [resizing.size_of(size) for size in sizes]
    return _rounded_up(map(max, zip(*sizes, strict=True)))


def _rounded_up(size: Iterable[int]) -> tuple[int, ...]:
    return tuple(-(-side // 32) * 32 for side in size)


def file_size(view: ConfigView, size: tuple[int, int] | None) -> tuple[int, int] | None:
    """Height and width of a file, from those that are asked for; None for any.

    A classifier's images are not padded, because that would change its results. So its file has the
    size of all images, if they have one.

    Raises:
        UserError: if it is not two integers, or if a classifier's images do not have the size.
    """
    if size is not None and not (
        isinstance(size, (tuple, list)) and len(size) == 2 and all(map(is_integer, size))
    ):
        raise UserError(f'`size={size!r}`: expected height and width in pixels, such as (192, 256)')
    if view.host is None or view.host.task != 'classification':
        return size
    common = stated_resizing(view).common_size
    if size is not None and size != common:
        made = 'different sizes' if common is None else f'{common[0]}x{common[1]} pixels'
        raise UserError(
            f'`size={size}`: images of this classifier have {made} after the test pipeline. Omit it'
        )
    return common


def remark_on_size(images: Iterable[np.ndarray], about: ExportInfo) -> str:
    """One line if a file of a fixed size shrinks all images clearly more than the config; else ''.

    Args:
        images: Some of the test set, (H, W, 3).
        about: The facts about the file.
    """
    if about.task == 'classification':
        return ''
    sizes = [image.shape[:2] for image in images]
    if about.tiling is not None:
        sizes = [(int(about.tiling[0]),) * 2]
    for size in sizes:
        tested, exported = (about.resizing.size_of(size, limits) for limits in (None, about.size))
        if exported[0] >= _CLEARLY * tested[0]:
            return ''
    needed = ', '.join(map(str, _rounded_up(tested)))
    before, config, file = ('x'.join(map(str, pair)) for pair in (size, tested, exported))
    return (
        f'The network was trained for images of {before} pixels resized to {config}. This file '
        f'resizes them to {file}, and may miss small objects: export with `size=({needed})`, or '
        'train at this size'
    )


def pattern(seed: int, size: tuple[int, int] = (480, 640)) -> np.ndarray:
    """Coloured blocks with noise, (H, W, 3) uint8, as a replacement for images."""
    random = np.random.default_rng(seed)
    coarse = random.integers(0, 224, (-(-size[0] // 32), -(-size[1] // 32), 3))
    blocks = coarse.repeat(32, axis=0).repeat(32, axis=1)[: size[0], : size[1]]
    return (blocks + random.integers(0, 32, blocks.shape)).astype(np.uint8)


@MODELS.register_module()
class DeployedModel(BaseModel):
    """An exported file as a model for MMEngine's test loop.

    It reads, resizes and pads images itself, as without a host.

    Args:
        file: The file.
        runtime: The runtime; by default chosen by the suffix.
        data_preprocessor: Not used.
    """

    def __init__(self, file: str, runtime: str | None = None, data_preprocessor: Any = None):
        super().__init__()
        self._deployed = Deployed(file, runtime)

    def test_step(self, data: dict) -> list:
        """Fill in the predictions of a batch of samples."""
        samples = data['data_samples']
        return [fill_sample(sample, self._deployed(sample.img_path)) for sample in samples]

    def forward(self, *args: Any, **options: Any) -> None:
        """Not used: there is nothing to train."""


@MODELS.register_module()
class DeployedOnTiles(DeployedModel):
    """An exported file that gets the tiles of `TiledTestLoop`.

    Arguments are those of DeployedModel.
    """

    def test_step(self, data: dict) -> list:
        """Fill in the predictions of samples; ``inputs`` (3, h, w), BGR, are not resized."""
        pixels = (image.numpy().transpose(1, 2, 0) for image in data['inputs'])
        found = (self._deployed(image[..., ::-1].astype(np.uint8)) for image in pixels)
        return [fill_sample(*pair) for pair in zip(data['data_samples'], found, strict=True)]


def evaluate_file(config: Config, file: Path, work_dir: Path) -> dict:
    """The metrics of an exported file, by name, on the test set of a config."""
    view = ConfigView(copy.deepcopy(config))
    is_tiled = stated_tiling(view) is not None
    if is_tiled:
        for data_set in view.test.data_sets:
            data_set.settings['pipeline'] = [
                dict(type='Resize', scale_factor=1.0) if type_name(step) == 'Resize' else step
                for step in data_set.pipeline
            ]
    kind = 'DeployedOnTiles' if is_tiled else 'DeployedModel'
    view.config.model = dict(type=kind, file=str(file))
    view.config.update(load_from=None, resume=False, work_dir=str(work_dir))
    return build_runner(view).test()
