"""Transformer-in-Transformer backbones for MMDetection and MMSegmentation.

Importing this package registers its classes with MMEngine and makes MMEngine's checkpoint loading
safe. Where mmcv has no compiled operators, it offers ours. It needs torch and mmengine alone.
"""

import sys

from ptnt_mm.version import __version__

__all__ = ['__version__', 'engine', 'get_config', 'models']

# `python -m ptnt_mm.doctor` imports this package first, and has to work where torch does not.
if not (sys.argv[:1] == ['-m'] and 'ptnt_mm.doctor' in sys.orig_argv):
    from ptnt_mm import engine, models
    from ptnt_mm.mmcv_ops import place
    from ptnt_mm.zoo import get_config

    place.offer()
