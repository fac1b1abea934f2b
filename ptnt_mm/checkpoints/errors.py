"""What is wrong with a checkpoint, in words that are safe to print."""

from ptnt_mm.errors import UserError


class CheckpointError(UserError):
    """A checkpoint cannot be used, or must not; the message says why and what to do."""


def require(condition: bool, otherwise: str) -> None:
    """Refuse a file unless it does what an honest one does."""
    if not condition:
        raise CheckpointError(f'refused: {otherwise}')


def printable(text: str, limit: int = 200) -> str:
    """Text from a file as one line: cut, and without characters that steer a terminal."""
    shown = ''.join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:limit])
    return shown + '...' * (len(text) > limit)
