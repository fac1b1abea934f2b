"""Encode masks for the JSON file; apart because pycocotools comes with the hosts."""

import numpy as np
from pycocotools import mask as coco


def run_lengths(mask: np.ndarray) -> dict:
    """Encode a mask, (H, W) bool, as COCO run lengths: ``size`` and ``counts``."""
    encoded = coco.encode(np.asfortranarray(mask, dtype=np.uint8))
    return dict(size=encoded['size'], counts=encoded['counts'].decode())
