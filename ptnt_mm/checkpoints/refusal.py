"""What is wrong with a checkpoint, in words that are safe to print."""

from ptnt_mm.utils.errors import UserError


class CheckpointError(UserError):
    """A checkpoint cannot be used, or must not; the message says why and what to do."""


def require(condition: bool, otherwise: str) -> None:
    """Refuse a file unless it does what an honest one does."""
    if not condition:
        raise CheckpointError(f'refused: {otherwise}')
