"""How a test pipeline changes the size of images."""

from collections.abc import Sequence
from typing import NamedTuple

LINEAR = 'cv2 bilinear'
"""The interpolation of the hosts by default."""

INTERPOLATIONS = (
    *(f'cv2 {name}' for name in ('nearest', 'bilinear', 'bicubic', 'area', 'lanczos')),
    *(f'pillow {name}' for name in ('nearest', 'bilinear', 'bicubic', 'box', 'lanczos', 'hamming')),
)
"""The backends and interpolations of mmcv's ``imresize``."""


class Resizing(NamedTuple):
    """mmcv's ``Resize`` or mmpretrain's ``ResizeEdge``, and mmcv's ``CenterCrop`` after it."""

    scale: Sequence[float] | None = None  # width, height; the longer one limits the longer side
    keep_ratio: bool = True  # whether resizing into the scale keeps the aspect ratio
    edge: int | None = None  # what the shorter side is resized to, instead of a scale
    crop: Sequence[int] | None = None  # height and width of the centre that is kept
    interpolation: str = LINEAR  # one of ``INTERPOLATIONS``

    @property
    def common_size(self) -> tuple[int, int] | None:
        """Height and width that all images get; None if they differ."""
        if self.scale is not None and not self.keep_ratio:
            height, width = self.size_of((1, 1))
            crop = self.crop or (height, width)
            return min(height, crop[0]), min(width, crop[1])
        if self.crop is not None and self.edge is not None and max(self.crop) <= self.edge:
            return tuple(self.crop)
        return None

    def size_of(
        self, size: tuple[int, int], limits: Sequence[int] | None = None
    ) -> tuple[int, int]:
        """Height and width that an image is resized to, before the crop, as the hosts compute them.

        Args:
            size: The image's height and width.
            limits: Height and width of a file with a fixed size; None for any.
        """
        height, width = size
        if self.edge is not None:
            height, width = (int(self.edge * side / min(size)) for side in size)
        elif self.scale is not None and not self.keep_ratio:
            height, width = int(self.scale[1]), int(self.scale[0])
        elif self.scale is not None:
            factor = min(max(self.scale) / max(size), min(self.scale) / min(size))
            height, width = int(height * factor + 0.5), int(width * factor + 0.5)
        if limits is not None and (height > limits[0] or width > limits[1]):
            factor = min(limits[0] / size[0], limits[1] / size[1])
            height, width = int(size[0] * factor), int(size[1] * factor)
        return max(height, 1), max(width, 1)
