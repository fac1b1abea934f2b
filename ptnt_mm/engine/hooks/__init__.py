"""The hooks that a config can name. Importing this package registers them."""

from ptnt_mm.engine.hooks.average_buffers import AverageBuffersHook
from ptnt_mm.engine.hooks.checkpoint_guard import CheckpointGuardHook
from ptnt_mm.engine.hooks.checkpointing import WholeCheckpointHook
from ptnt_mm.engine.hooks.compiling import CompileHook
from ptnt_mm.engine.hooks.corrupt_images import SkipCorruptImagesHook
from ptnt_mm.engine.hooks.drawing import DrawPredictionsHook, DrawValidationHook
from ptnt_mm.engine.hooks.health import HealthHook
from ptnt_mm.engine.hooks.resume import ResumeHook
from ptnt_mm.engine.hooks.stop_at_nan import StopAtNaNHook
from ptnt_mm.engine.repeat import RepeatableHook

__all__ = [
    'AverageBuffersHook',
    'CheckpointGuardHook',
    'CompileHook',
    'DrawPredictionsHook',
    'DrawValidationHook',
    'HealthHook',
    'RepeatableHook',
    'ResumeHook',
    'SkipCorruptImagesHook',
    'StopAtNaNHook',
    'WholeCheckpointHook',
]
