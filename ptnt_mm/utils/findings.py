"""What a check has to say."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = 'error'
    """Training or evaluation would break, or learn and measure something else."""

    WARNING = 'warning'
    """Probably not what was meant."""

    NOTE = 'note'
    """Worth knowing, such as what was not looked at."""

    OK = 'ok'
    """What was looked at, and found sound."""


@dataclass(frozen=True)
class Finding:
    """One thing that a check has to say.

    Attributes:
        severity: How bad it is.
        where: What it is about: a split, a key of the config.
        what: The value that was found, and what was expected.
        advice: What to do.
    """

    severity: Severity
    where: str
    what: str
    advice: str = ''

    def __str__(self) -> str:
        """In one line, without the advice."""
        return f'{self.where}: {self.what}'


def error(where: str, what: str, advice: str = '') -> Finding:
    """Make a finding that stops a training."""
    return Finding(Severity.ERROR, where, what, advice)


def warning(where: str, what: str, advice: str = '') -> Finding:
    """Make a finding that stops nothing."""
    return Finding(Severity.WARNING, where, what, advice)


def note(where: str, what: str, advice: str = '') -> Finding:
    """Make a finding that counts as nothing."""
    return Finding(Severity.NOTE, where, what, advice)


def sound(where: str, what: str) -> Finding:
    """Say what was looked at, and found sound."""
    return Finding(Severity.OK, where, what)
