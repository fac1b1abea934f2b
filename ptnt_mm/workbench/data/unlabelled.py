"""Images without labels, for pretraining: a data set, and the random views of its images."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from mmengine.dataset import BaseDataset
from PIL import Image

from ptnt_mm.deploy.decoding import read_rgb, require_range
from ptnt_mm.registry import DATASETS, TRANSFORMS
from ptnt_mm.workbench.data.image_files import find_images


@DATASETS.register_module()
class UnlabelledImages(BaseDataset):
    """All images below a folder.

    Args:
        data_root: The folder.
        pipeline: Transforms of a sample, beginning with the file's path as ``img_path``.
        lazy_init: As in MMEngine: whether to look for the images later.
    """

    def __init__(self, data_root: str, pipeline: Sequence[dict], lazy_init: bool = False):
        super().__init__(data_root=data_root, pipeline=list(pipeline), lazy_init=lazy_init)

    def load_data_list(self) -> list[dict[str, Any]]:
        """A dict with ``img_path`` for each image, in the order of their names."""
        images = find_images(Path(self.data_root))
        return [dict(img_path=str(images.root / name)) for name in images.files]


@TRANSFORMS.register_module()
class LoadPicture:
    """Read an image file, upright and in 8 bits, see :func:`~ptnt_mm.deploy.decoding.read_rgb`.

    Args:
        value_range: The values of files of more than 8 bits that become black and white; None
            scales 16 bits.

    Raises:
        UserError: if the range is not two finite numbers, the lower one first.
    """

    def __init__(self, value_range: Sequence[float] | None = None):
        self.value_range = None if value_range is None else require_range(value_range)

    def __call__(self, results: dict) -> dict:
        """Add ``picture``, an RGB image of Pillow."""
        pixels = read_rgb(results['img_path'], self.value_range)
        return dict(results, picture=Image.fromarray(pixels))


@TRANSFORMS.register_module()
class RandomView:
    """A random part of an image, resized, mirrored at random, with random colours.

    Args:
        size: Side of the square view in pixels.
        area: The smallest and the largest share of the image that is visible.
        colour: By how much brightness, contrast and saturation vary, as a share.
    """

    def __init__(self, size: int, area: Sequence[float] = (0.2, 1.0), colour: float = 0.4):
        # torchvision is large, and only this class needs it.
        from torchvision.transforms import v2

        self.transform = v2.Compose(
            (
                v2.RandomResizedCrop(size, tuple(area)),
                v2.RandomHorizontalFlip(),
                v2.ColorJitter(brightness=colour, contrast=colour, saturation=colour),
                v2.PILToTensor(),
            )
        )

    def __call__(self, results: dict) -> dict[str, torch.Tensor]:
        """``picture`` -> ``inputs``, RGB (3, size, size) uint8."""
        return dict(inputs=self.transform(results['picture']))
