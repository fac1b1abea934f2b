"""Transformer-in-Transformer backbones for MMDetection, MMSegmentation and MMPretrain.

Importing this package registers its classes with MMEngine, and changes other libraries as described
in ``side_effects.py``. It needs only torch and mmengine; ``ptnt_mm.deploy``, which runs exported
files, needs neither.
"""

import sys
import warnings
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from ptnt_mm.utils.imports import let_idle_threads_sleep
from ptnt_mm.version import __version__

__all__ = ['__version__', 'register']  # and what `register` adds


@cache
def register() -> None:
    """Register all classes, and change other libraries: once, on import.

    A main program with ``PTNT_MM_REGISTERS_LATER = True`` calls it itself, once it needs torch.
    """
    global engine, get_config, models
    let_idle_threads_sleep()
    try:
        for name in ('torch', 'mmengine'):
            import_module(name)
    except Exception as error:  # a broken library raises anything
        # Machines that run exported files may have a runtime and no torch.
        if find_spec('torch') is None and any(map(find_spec, ('onnxruntime', 'openvino'))):
            return
        # `python -m ptnt_mm doctor` imports this package first, and must work nevertheless.
        warnings.warn(
            f'torch and MMEngine cannot be imported ({type(error).__name__}: {error}): no class of '
            'ptnt_mm is registered. Run python -m ptnt_mm doctor',
            stacklevel=3,
        )
        return
    from ptnt_mm import engine, models, side_effects
    from ptnt_mm.config.zoo import get_config

    __all__.extend(('engine', 'get_config', 'models'))
    side_effects.apply()


if not getattr(sys.modules.get('__main__'), 'PTNT_MM_REGISTERS_LATER', False):
    register()
