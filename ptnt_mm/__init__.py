"""Transformer-in-Transformer backbones for MMDetection and MMSegmentation.

Importing this package registers its classes with MMEngine and makes MMEngine's checkpoint loading
safe. It needs torch and mmengine alone.
"""

from ptnt_mm import engine, models
from ptnt_mm.version import __version__
from ptnt_mm.zoo import get_config

__all__ = ['__version__', 'engine', 'get_config', 'models']
