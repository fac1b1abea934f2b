"""What MMEngine lacks: safe and loud loading, optimizer groups, what the command lines share."""

from ptnt_mm.engine.loading import CheckpointGuardHook
from ptnt_mm.engine.optimizer import (
    CheckedOptimWrapperConstructor,
    LayerDecayOptimWrapperConstructor,
)

__all__ = [
    'CheckedOptimWrapperConstructor',
    'CheckpointGuardHook',
    'LayerDecayOptimWrapperConstructor',
]
