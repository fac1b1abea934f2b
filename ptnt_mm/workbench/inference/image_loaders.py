"""Load images for a predictor: files as a config's test pipeline loads them, and arrays."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from mmcv.transforms import Compose

from ptnt_mm.deploy.decoding import NOT_AN_IMAGE, Range, require_pixels
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.frames import one_line
from ptnt_mm.workbench.config.settings import loads_annotations, short_name, type_name
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.data.image_files import decoded, read_image
from ptnt_mm.workbench.engine.load_in_range import stated_range

_OF_ARRAYS = ('LoadImageFromNDArray', 'LoadImageFromWebcam')
_OF_SEVERAL = (
    'LoadBiomedicalData',
    'LoadBiomedicalImageFromFile',
    'LoadMultiChannelImageFromFiles',
    'LoadMultipleRSImageFromFile',
)
"""Loaders of the hosts that read a volume, or several files for an image."""


@dataclass(frozen=True)
class LoadedImage:
    """An image as the pipeline's steps after loading get it."""

    entries: Mapping[str, Any]  # ``img``, (H, W) or (H, W, C) of any type, and others of the loader
    is_rgb: bool = False  # whether its channels are in RGB order instead of BGR

    @property
    def pixels(self) -> np.ndarray:
        """The array ``img``."""
        return self.entries['img']

    @property
    def size(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return self.pixels.shape[:2]

    def picture(self) -> np.ndarray:
        """An image to draw on, (H, W, 3) uint8, BGR.

        Values that are not from 0 to 255 are stretched from the lowest to the highest.
        """
        pixels = np.atleast_3d(self.pixels)
        pixels = pixels[..., :3] if pixels.shape[2] >= 3 else pixels[..., [0, 0, 0]]
        if pixels.dtype != np.uint8:
            values = np.nan_to_num(pixels.astype(np.float64))
            low, high = values.min(), values.max()
            if low < 0 or not 1 < high <= 255:
                values = (values - low) * (255 / max(high - low, 1e-12))
            pixels = values.round().astype(np.uint8)
        return np.ascontiguousarray(pixels[..., ::-1] if self.is_rgb else pixels)


class PixelLoader:
    """Loads uint8 pixels, as exported files get them.

    Args:
        value_range: See :func:`~ptnt_mm.deploy.decoding.read_rgb`.
    """

    def __init__(self, value_range: Range | None = None):
        self.value_range = value_range

    def file(self, path: Path) -> LoadedImage:
        """Load a file, or raise a UserError whose message begins with it."""
        return _loaded(read_image(path, self.value_range), path)

    def array(self, image: Any) -> LoadedImage:
        """Load an array (H, W, 3) uint8, BGR, or raise a UserError."""
        return _loaded(require_pixels(image, 'BGR', 'a file or '))


class ConfigLoader:
    """Loads with the first step of a config's test pipeline.

    Without a loading step, as for CIFAR, the data set itself returns arrays; those of mmpretrain
    are RGB.

    Args:
        view: A config with a test data set.

    Attributes:
        rest: The other steps, without those that load annotations.
        value_range: The range of a ``LoadImageInRange``, otherwise None.

    Raises:
        UserError: if the step reads volumes or several files for an image.
    """

    def __init__(self, view: ConfigView):
        steps = view.test.pipeline
        self.value_range = stated_range(view.test)
        first = steps[0] if steps else {}
        self._kind = type_name(first)
        if self._kind in _OF_SEVERAL:
            raise UserError(
                f'the test pipeline loads with {self._kind}, which reads volumes or several files '
                'for an image: only loaders of single images are supported'
            )
        self._step = None
        if short_name(first).startswith('Load') and self._kind not in _OF_ARRAYS:
            self._settings = dict(first)
            shown = (
                f'{name}={value!r}'
                for name, value in self._settings.items()
                if name != 'type' and value is not None
            )
            self._loading = f'{self._kind}({", ".join(shown)})'
            self._step, steps = Compose([self._settings]), steps[1:]
        self._is_rgb = self._step is None and view.scope == 'mmpretrain'
        self.rest = Compose([step for step in steps if not loads_annotations(short_name(step))])

    def file(self, path: Path) -> LoadedImage:
        """Load a file, or raise a UserError whose message begins with it."""
        if self._step is None:
            return self.array(read_image(path))
        if not path.is_file():
            raise UserError(f'{path} does not exist')
        # The hosts' decoders do not notice that a file is truncated, nor that it is huge.
        why, *_ = decoded(path)
        if why and why != NOT_AN_IMAGE:
            raise UserError(f'{path} cannot be read: {why}')
        try:
            entries = self._step(dict(img_path=str(path), img_id=0))
        except Exception as error:  # decoders may raise anything
            if why:
                read_image(path)  # explains it
            reason = one_line(error) or type(error).__name__
            raise UserError(f'{path} cannot be read: {self._loading}: {reason}') from error
        pixels = None if entries is None else entries.get('img')
        if not isinstance(pixels, np.ndarray) or pixels.ndim not in (2, 3):
            got = type(pixels).__name__ if not isinstance(pixels, np.ndarray) else pixels.shape
            raise UserError(
                f'{path} cannot be read: {self._loading} returns {got}, expected (H, W) or '
                '(H, W, C)'
            )
        return LoadedImage(entries, self._settings.get('imdecode_backend') == 'tifffile')

    def array(self, image: Any) -> LoadedImage:
        """Give an array (H, W, 3) uint8, BGR, the form of a loaded file, or raise a UserError."""
        image = require_pixels(image, 'BGR', 'a file or ')
        if self._step is None:
            pixels = np.ascontiguousarray(image[..., ::-1]) if self._is_rgb else image
            return _loaded(pixels, is_rgb=self._is_rgb)
        if self._kind not in ('LoadImageFromFile', 'LoadImageInRange', 'InferencerLoader'):
            raise UserError(
                f'the test pipeline loads with {self._kind}, which reads files: arrays and videos '
                'are not supported'
            )
        is_rgb = self._settings.get('imdecode_backend') == 'tifffile'
        if is_rgb:
            image = image[..., ::-1]
        elif str(self._settings.get('color_type', 'color')).startswith('grayscale'):
            image = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
        if self._settings.get('to_float32'):
            image = image.astype(np.float32)
        return _loaded(np.ascontiguousarray(image), is_rgb=is_rgb)


def _loaded(pixels: np.ndarray, path: Path | None = None, is_rgb: bool = False) -> LoadedImage:
    """An array with the other entries of mmcv's loaders."""
    size = pixels.shape[:2]
    name = None if path is None else str(path)
    entries = dict(img=pixels, img_path=name, img_id=0, img_shape=size, ori_shape=size)
    return LoadedImage(entries, is_rgb)
