"""Errors about checkpoints, with messages that are safe to print."""

from ptnt_mm.utils.errors import UserError


class CheckpointError(UserError):
    """A checkpoint cannot or must not be used; the message explains why and what to do."""


def require(condition: bool, otherwise: str) -> None:
    """Refuse a file unless a condition of genuine files holds."""
    if not condition:
        raise CheckpointError(f'refused: {otherwise}')
