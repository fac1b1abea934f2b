"""Archs with all features of the published ones, at a fraction of the cost."""

from ptnt_mm.models import PyramidTNT
from ptnt_mm.models.backbone import settings

MICRO_ARCH = dict(
    depths=(1, 2, 1, 1),
    inner_depths=(1, 2, 1, 1),
    outer_dims=(8, 16, 16, 8),
    inner_dims=(2, 4, 4, 2),
    outer_heads=(2, 4, 4, 2),
    inner_heads=(1, 2, 2, 1),
    pretrain_img_size=128,
)

SHALLOW_ARCH = settings(PyramidTNT.archs['tiny']) | dict(depths=(1, 1, 1, 1))
"""As wide as `tiny`: it fits into the detectors of the demo."""
