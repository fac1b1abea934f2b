"""Transformer-in-Transformer backbones for MMDetection, MMSegmentation and MMPretrain.

Importing this package registers its networks and hooks with MMEngine, and changes no other library:
it only offers operators to an mmcv without any, and lets mmpretrain be imported where its
multimodal models cannot be. It needs only torch and mmengine; ``ptnt_mm.deploy``, which runs
exported files, needs neither.

``ptnt_mm.workbench`` has what the commands add, and ``ptnt_mm.api`` the commands as functions.
"""

import os
import sys
import warnings
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ptnt_mm.version import __version__

if TYPE_CHECKING:  # for editors
    from ptnt_mm.weights.mmengine import make_loading_safe as make_loading_safe
    from ptnt_mm.workbench.config.zoo import get_config as get_config

__all__ = ['__version__', 'register']

_ON_FIRST_USE = {  # names that are not imported with the plugin
    'get_config': 'ptnt_mm.workbench.config.zoo',
    'make_loading_safe': 'ptnt_mm.weights.mmengine',
}


@cache
def register() -> None:
    """Register the networks and hooks, and offer what other libraries lack: once, on import.

    - ``PTNT_MMCV_OPS``: ``import mmcv._ext`` finds our operators if mmcv has none.
    - ``PTNT_OPTIONAL_MULTIMODAL``: mmpretrain is imported without its multimodal models if they
      cannot be imported, such as with a recent transformers.

    These environment variables switch that off with ``=0``; they are read once.

    A main program with ``PTNT_MM_REGISTERS_LATER = True`` calls it itself, once it needs torch.
    """
    try:
        for name in ('torch', 'mmengine'):
            import_module(name)
    except Exception as error:  # a broken library raises anything
        # Machines that run exported files may have a runtime and no torch.
        if find_spec('torch') is None and any(map(find_spec, ('onnxruntime', 'openvino'))):
            return
        # What needs no torch, such as `ptnt_mm.deploy`, must work nevertheless.
        warnings.warn(
            f'torch and MMEngine cannot be imported ({type(error).__name__}: {error}): no class of '
            'ptnt_mm is registered. Run python -m ptnt_mm doctor',
            stacklevel=3,
        )
        return
    from ptnt_mm import hooks, models  # noqa: F401
    from ptnt_mm.mmcv_ops import finder
    from ptnt_mm.utils import multimodal

    if os.environ.get('PTNT_MMCV_OPS') != '0':
        finder.add_finder()
    if os.environ.get('PTNT_OPTIONAL_MULTIMODAL') != '0':
        multimodal.add_finder()


def __getattr__(name: str) -> Any:
    if name not in _ON_FIRST_USE:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return getattr(import_module(_ON_FIRST_USE[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *_ON_FIRST_USE]


def registers_later() -> bool:
    """Whether this is a program that registers when it needs torch, as ``python -m ptnt_mm``."""
    # Python imports the package of a module that -m names before it sets the name of the program.
    is_command = sys.argv[:1] == ['-m'] and __name__ in sys.orig_argv
    return is_command or getattr(sys.modules.get('__main__'), 'PTNT_MM_REGISTERS_LATER', False)


if not registers_later():
    register()
