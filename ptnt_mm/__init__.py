"""Transformer-in-Transformer backbones for MMDetection and MMSegmentation.

Importing this package registers its classes with MMEngine and makes MMEngine's checkpoint loading
safe. Where mmcv has no compiled operators, it offers ours. It needs torch and mmengine alone.
"""

import warnings
from importlib import import_module

from ptnt_mm.version import __version__

__all__ = ['__version__', 'engine', 'get_config', 'models']

try:
    for _name in ('torch', 'mmengine'):
        import_module(_name)
except Exception as error:  # a broken library raises anything
    # `python -m ptnt_mm.doctor` imports this package first, and has to work all the same.
    warnings.warn(
        f'torch and MMEngine cannot be imported ({type(error).__name__}: {error}): nothing of '
        'ptnt_mm is registered. python -m ptnt_mm.doctor says what to do',
        stacklevel=2,
    )
else:
    from ptnt_mm import engine, models
    from ptnt_mm.mmcv_ops import place
    from ptnt_mm.zoo import get_config

    place.offer()
