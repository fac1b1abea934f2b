"""Findings of checks, and how they are printed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from ptnt_mm.utils.text import counted, first_few


class Severity(StrEnum):
    """Severity of a finding."""

    ERROR = 'error'  # training or evaluation would break, or learn and measure something else
    WARNING = 'warning'  # probably not what was meant
    NOTE = 'note'  # worth knowing, such as what was not checked
    OK = 'ok'  # checked, and nothing is wrong


@dataclass(frozen=True)
class Finding:
    """One result of a check."""

    severity: Severity
    where: str  # a key of the config, a split, a file, or words such as 'Learning rate'
    what: str  # the value that was found, and what was expected
    advice: str = ''  # what to do

    def __str__(self) -> str:
        """In one line, without the advice."""
        return f'{self.where}: {self.what}'


# Each creates a finding from `where`, `what` and optionally `advice`.
error = partial(Finding, Severity.ERROR)
warning = partial(Finding, Severity.WARNING)
note = partial(Finding, Severity.NOTE)
ok = partial(Finding, Severity.OK)


def report_wrong(
    severity: Severity, where: str, wrong: Iterable[str], total: int, what: str, advice: str = ''
) -> Iterator[Finding]:
    """Count and list what is wrong: '2 of 16 images not found: a.jpg, b.jpg'; else no finding.

    Here 16 is ``total``, 'images not found' is ``what``, and the names are ``wrong``. ``where`` is
    the subject, such as a split, and ``advice`` what to do.
    """
    if wrong := list(wrong):
        listed = f'{len(wrong)} of {total} {what}: {first_few(wrong)}'
        yield Finding(severity, where, listed, advice)


@dataclass(frozen=True)
class FindingKind:
    """A kind of finding that many images, masks or objects can have in common."""

    what: str  # with the plural of its subject: 'images not readable'
    severity: Severity
    advice: str


def report_kinds(
    where: str, wrong: Mapping[FindingKind, list[str]], total: int
) -> Iterator[Finding]:
    """Report each kind of finding that occurs.

    Args:
        where: The subject, such as a split.
        wrong: Descriptions of the items that have it, by kind, in the order of the report.
        total: The number of all items.
    """
    for kind, items in wrong.items():
        yield from report_wrong(kind.severity, where, items, total, kind.what, kind.advice)


def of_kind(findings: Iterable[Finding], severity: Severity) -> list[Finding]:
    """The findings of one severity."""
    return [finding for finding in findings if finding.severity is severity]


def as_warning(finding: Finding) -> Finding:
    """An error as a warning; other findings are returned as they are."""
    is_error = finding.severity is Severity.ERROR
    return replace(finding, severity=Severity.WARNING) if is_error else finding


def lines(findings: Iterable[Finding]) -> Iterator[str]:
    """One line for each finding, and one for the advice that follows from it and equal ones."""
    advised: dict[tuple[Severity, str], list[Finding]] = {}
    for number, finding in enumerate(findings):
        key = finding.advice or str(number)  # those without advice stay apart
        advised.setdefault((finding.severity, key), []).append(finding)
    for alike in advised.values():
        for finding in alike:
            yield f'  {finding.severity:<9}{finding}'
        if finding.advice:
            yield f'  {"":<9}{finding.advice}'


def summary(by_subject: Mapping[str, Iterable[Finding]]) -> Iterator[str]:
    """Lines for a terminal: the subjects without a finding in one, errors last.

    Args:
        by_subject: The findings of each subject, in the order of the checks.
    """
    fine, others = [], []
    for subject, findings in by_subject.items():
        wrong = [finding for finding in findings if finding.severity is not Severity.OK]
        others += wrong
        if not wrong:
            fine.append(subject)
    if fine:
        yield f'  {Severity.OK:<9}{", ".join(fine)}'
    for severity in (Severity.NOTE, Severity.WARNING, Severity.ERROR):
        yield from lines(of_kind(others, severity))


def closing(findings: Iterable[Finding]) -> str:
    """The last line of a report: how many errors and warnings there are."""
    findings = list(findings)
    counts = [(len(of_kind(findings, kind)), kind) for kind in (Severity.ERROR, Severity.WARNING)]
    if not any(count for count, _ in counts):
        return 'no problems found'
    return ', '.join(counted(count, kind) for count, kind in counts)
