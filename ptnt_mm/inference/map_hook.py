"""Pictures of an evaluation's maps, for ``tools/test.py --show-dir``."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mmengine.hooks import Hook

from ptnt_mm.inference.classes import count_classes, find_classes
from ptnt_mm.inference.images import encode_image, read_image
from ptnt_mm.inference.map_painter import MapPainter
from ptnt_mm.utils.atomic_files import written_whole
from ptnt_mm.utils.errors import UserError


class DrawMapsHook(Hook):
    """Draw each tested image's ground truth, if it has any, and its prediction, side by side.

    mmseg's own hook names pictures by the last part of the images' paths: of images with the same
    name in several folders it leaves one picture.

    Args:
        folder: Where the pictures go, as PNG, in the folders that the images have below ``root``.
        root: The images' folder. Images from elsewhere keep their whole path.
    """

    def __init__(self, folder: str, root: str):
        self._folder = Path(folder)
        self._root = Path(os.path.abspath(root))
        self._painter: MapPainter | None = None
        self._drawn: dict[Path, Path] = {}

    def before_test(self, runner: Any) -> None:
        """Find the names and colours of the classes."""
        meta = getattr(runner.test_dataloader.dataset, 'metainfo', {})
        known = find_classes(meta, runner.cfg, runner.model)
        number = count_classes(runner.model) or len(known['classes'] or ())
        self._painter = MapPainter(known, number)

    def after_test_iter(
        self,
        runner: Any,
        batch_idx: int,
        data_batch: Any = None,
        outputs: Sequence[Any] | None = None,
    ) -> None:
        """Draw a batch.

        Raises:
            UserError: if a sample has no map or does not say its image, the image cannot be read
                or has another size than a map, or the picture cannot be written.
        """
        for sample in outputs or ():
            _need(sample, 'pred_sem_seg', 'only segmenters give one, so leave it out')
            _need(sample, 'img_path', 'name it in the meta_keys of PackSegInputs')
            file = sample.img_path
            image = _read(Path(file))
            panels = [
                self._paint(file, image, sample.get(key).data[0])
                for key in ('gt_sem_seg', 'pred_sem_seg')
                if key in sample
            ]
            with written_whole(self._folder / self._name(file)) as partial:
                partial.write_bytes(encode_image(np.hstack(panels), '.png'))

    def _paint(self, file: str, image: np.ndarray, labels: Any) -> np.ndarray:
        """A map of a sample, a tensor (H, W) on any device, over its image."""
        if tuple(labels.shape) != image.shape[:2]:
            raise UserError(
                f'--show-dir: {file} has {image.shape[:2]} pixels (height, width), and its map '
                f'{tuple(labels.shape)}: masks need the size of their images, and LoadAnnotations '
                'belongs behind Resize in a test pipeline'
            )
        return self._painter.paint(image, labels.cpu().numpy().astype(np.int64))

    def _name(self, file: str) -> Path:
        """Where an image's picture goes, relative to the folder of pictures."""
        path = Path(os.path.abspath(file))
        name = path.relative_to(self._root if path.is_relative_to(self._root) else path.anchor)
        # Not in the images' own formats: JPEG blurs borders, and WebP has no room for two of them.
        picture = name.with_suffix('.png')
        if self._drawn.setdefault(picture, name) != name:
            # Images that differ in their suffixes alone.
            picture = name.with_name(f'{name.name}.png')
        return picture


def _need(sample: Any, key: str, advice: str) -> None:
    if key not in sample:
        raise UserError(f'--show-dir needs the {key} of each image: {advice}')


def _read(file: Path) -> np.ndarray:
    try:
        return read_image(file)
    except UserError as error:
        raise UserError(f'--show-dir: {file} {error}') from error
