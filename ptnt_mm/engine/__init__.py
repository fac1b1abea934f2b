"""Additions to MMEngine: safe loading, atomic checkpoints, repeatable training."""

from ptnt_mm.engine.hooks.checkpointing import WholeCheckpointHook
from ptnt_mm.engine.hooks.corrupt_images import SkipCorruptImagesHook
from ptnt_mm.engine.hooks.health import HealthHook
from ptnt_mm.engine.hooks.repeatable import RepeatableHook
from ptnt_mm.engine.hooks.resume import ResumeHook
from ptnt_mm.engine.hooks.stop_at_nan import StopAtNaNHook
from ptnt_mm.engine.loading import CheckpointGuardHook
from ptnt_mm.engine.optimizer import (
    CheckedOptimWrapperConstructor,
    LayerDecayOptimWrapperConstructor,
)
from ptnt_mm.engine.train_loop import RepeatableIterBasedTrainLoop

__all__ = [
    'CheckedOptimWrapperConstructor',
    'CheckpointGuardHook',
    'HealthHook',
    'LayerDecayOptimWrapperConstructor',
    'RepeatableHook',
    'RepeatableIterBasedTrainLoop',
    'ResumeHook',
    'SkipCorruptImagesHook',
    'StopAtNaNHook',
    'WholeCheckpointHook',
]
