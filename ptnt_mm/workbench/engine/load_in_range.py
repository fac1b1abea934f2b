"""Load images of more than 8 bits with a stated range of values."""

from collections.abc import Mapping, Sequence

import numpy as np
from mmengine import fileio

from ptnt_mm.deploy.decoding import Range, read_values, require_range, scaled
from ptnt_mm.registry import TRANSFORMS
from ptnt_mm.workbench.config.settings import type_name
from ptnt_mm.workbench.config.view import Split


@TRANSFORMS.register_module()
class LoadImageInRange:
    """Load an image file, and scale a range of its values to 8 bits.

    The hosts' ``LoadImageFromFile`` keeps the upper 8 of 16 bits: of values below 4096, 16 grey
    levels are left. Files of 8 bits are loaded as there.

    Args:
        value_range: The values that become 0 and 255, see :func:`~ptnt_mm.deploy.decoding.scaled`.
        to_float32: Whether to return float32 instead of uint8.
        backend_args: The storage that files are read from, as in the hosts; None for the disk.

    Raises:
        UserError: if the range is not two finite numbers, the lower one first.
    """

    def __init__(
        self,
        value_range: Sequence[float],
        to_float32: bool = False,
        backend_args: Mapping | None = None,
    ):
        self.value_range = require_range(value_range)
        self.to_float32 = to_float32
        self.backend_args = backend_args and dict(backend_args)

    def __call__(self, results: dict) -> dict:
        """Load ``img_path``; the hosts' pipelines call this."""
        return self.transform(results)

    def transform(self, results: dict) -> dict:
        """Add ``img``, (H, W, 3) uint8 or float32, BGR, and its shapes (H, W).

        Raises a ValueError if the file cannot be decoded.
        """
        path = results['img_path']
        content = fileio.get(path, backend_args=self.backend_args)
        image = scaled(read_values(content), self.value_range)
        results['img'] = image.astype(np.float32) if self.to_float32 else image
        results['img_shape'] = results['ori_shape'] = image.shape[:2]
        return results

    def __repr__(self) -> str:
        return (
            f'LoadImageInRange(value_range={self.value_range}, to_float32={self.to_float32}, '
            f'backend_args={self.backend_args})'
        )


def stated_range(split: Split) -> Range | None:
    """The range that the images of a split are loaded in; None for the hosts' loading."""
    for data_set in split.data_sets:
        for step in data_set.pipeline:
            stated = step.get('value_range')
            if type_name(step) in ('LoadImageInRange', 'LoadPicture') and stated is not None:
                return require_range(stated)
    return None
