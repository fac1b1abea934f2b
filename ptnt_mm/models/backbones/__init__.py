"""Backbones: an image in, one map per chosen stage out."""

from ptnt_mm.models.backbones.pyramid_tnt import PyramidTNT

__all__ = ['PyramidTNT']
