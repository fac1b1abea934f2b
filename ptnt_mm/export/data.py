"""What an export needs of a config's test set: how images are resized, and some of them."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from mmengine.config import Config

from ptnt_mm.engine.config import kind_of
from ptnt_mm.engine.data_files import data_sets
from ptnt_mm.inference.images import find_images, read_image
from ptnt_mm.models.layers.shapes import reduced
from ptnt_mm.utils.errors import UserError


def resizing(config: Config) -> tuple[list[int] | None, bool]:
    """Width and height that the test pipeline resizes into, and whether shapes are kept.

    A UserError names a step that changes images in another way, which ``ptnt_mm.deploy`` cannot.
    """
    scale, keep_ratio = None, True
    for step in next(data_sets(config, 'test')).pipeline:
        kind = kind_of(step)
        if kind == 'Resize' and step.get('scale') is not None:
            scale = step['scale']
            scale = [scale, scale] if isinstance(scale, int) else list(scale)
            keep_ratio = bool(step.get('keep_ratio', False))
        elif not kind.startswith(('Load', 'Pack')):
            raise UserError(
                f'the test pipeline has {kind}: exported files know Resize with a scale alone. '
                'Give a config without that step'
            )
    return scale, keep_ratio


def images_of(folder: Path) -> Iterator[np.ndarray]:
    """The images of a folder, (H, W, 3) uint8, RGB, or a UserError if there are none."""
    if not folder.is_dir():
        raise UserError(f'there is no folder {folder}')
    found = find_images(folder, without=folder / '.none')
    images = (read_image(found.root / name) for name in found.files)
    return (np.ascontiguousarray(image[..., ::-1]) for image in images)


def test_images(config: Config, number: int) -> list[np.ndarray]:
    """The first images of the test set, or patterns where it is not there."""
    for data_set in data_sets(config, 'test'):
        for path in data_set.paths():
            if path.is_dir():
                images = images_of(path)
                return [image for image, _ in zip(images, range(number), strict=False)]
    return [pattern(seed) for seed in range(number)]


def pattern(seed: int, size: tuple[int, int] = (480, 640)) -> np.ndarray:
    """Coloured blocks with noise, (H, W, 3) uint8, where there are no images."""
    random = np.random.default_rng(seed)
    coarse = random.integers(0, 224, (*reduced(size, 32), 3))
    blocks = coarse.repeat(32, axis=0).repeat(32, axis=1)[: size[0], : size[1]]
    return (blocks + random.integers(0, 32, blocks.shape)).astype(np.uint8)
