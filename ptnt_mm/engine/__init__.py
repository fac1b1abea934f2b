"""What MMEngine lacks: safe loading, whole checkpoints, optimizer groups, command lines."""

from ptnt_mm.engine.annotations import RememberAnnotationsHook
from ptnt_mm.engine.bad_loss import StopAtBadLossHook
from ptnt_mm.engine.checkpointing import WholeCheckpointHook
from ptnt_mm.engine.corrupt_images import SkipCorruptImagesHook
from ptnt_mm.engine.health import HealthHook
from ptnt_mm.engine.loading import CheckpointGuardHook
from ptnt_mm.engine.optimizer import (
    CheckedOptimWrapperConstructor,
    LayerDecayOptimWrapperConstructor,
)
from ptnt_mm.engine.repeatable import RepeatableHook

__all__ = [
    'CheckedOptimWrapperConstructor',
    'CheckpointGuardHook',
    'HealthHook',
    'LayerDecayOptimWrapperConstructor',
    'RememberAnnotationsHook',
    'RepeatableHook',
    'SkipCorruptImagesHook',
    'StopAtBadLossHook',
    'WholeCheckpointHook',
]
