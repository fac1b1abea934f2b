"""Hooks and a training loop for the configs of any MMEngine program.

Importing this package imports all of its modules, which registers their classes.
"""

from importlib import import_module
from pkgutil import iter_modules

from ptnt_mm.hooks.average_buffers import AverageBuffersHook
from ptnt_mm.hooks.checkpoint_guard import CheckpointGuardHook
from ptnt_mm.hooks.checkpointing import WholeCheckpointHook
from ptnt_mm.hooks.compiling import CompileHook
from ptnt_mm.hooks.corrupt_images import SkipCorruptImagesHook
from ptnt_mm.hooks.repeat import RepeatableHook, RepeatableIterBasedTrainLoop
from ptnt_mm.hooks.resume import ResumeHook
from ptnt_mm.hooks.stop_at_nan import StopAtNaNHook

__all__ = [
    'AverageBuffersHook',
    'CheckpointGuardHook',
    'CompileHook',
    'RepeatableHook',
    'RepeatableIterBasedTrainLoop',
    'ResumeHook',
    'SkipCorruptImagesHook',
    'StopAtNaNHook',
    'WholeCheckpointHook',
]

for _module in iter_modules(__path__):
    import_module(f'{__name__}.{_module.name}')
