"""What MMEngine's runner lacks: safe and loud loading, and what the command lines share."""

from ptnt_mm.engine.loading import CheckpointGuardHook

__all__ = ['CheckpointGuardHook']
