"""Findings as text for the terminal."""

from collections.abc import Iterable, Iterator

from ptnt_mm.utils.findings import Finding, Severity

_INDENT = ' ' * 2
_WIDTH = len(Severity.WARNING) + 2


def lines(findings: Iterable[Finding]) -> Iterator[str]:
    """One line for each finding, and one for its advice."""
    for finding in findings:
        yield f'{_INDENT}{finding.severity:<{_WIDTH}}{finding}'
        if finding.advice:
            yield f'{_INDENT}{"":<{_WIDTH}}{finding.advice}'


def closing(findings: Iterable[Finding]) -> str:
    """The last line: how many errors and warnings there are."""
    findings = list(findings)
    counts = [(kind, of_kind(findings, kind)) for kind in (Severity.ERROR, Severity.WARNING)]
    if not any(found for _, found in counts):
        return 'nothing found'
    return ', '.join(f'{len(found)} {kind}{"s"[: len(found) != 1]}' for kind, found in counts)


def of_kind(findings: Iterable[Finding], severity: Severity) -> list[Finding]:
    """The findings of one severity."""
    return [finding for finding in findings if finding.severity is severity]
