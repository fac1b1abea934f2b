"""Kinds of faults that many images, masks or objects can have."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ptnt_mm.utils.findings import Finding, Severity, report_wrong


@dataclass(frozen=True)
class Fault:
    """A kind of fault.

    Attributes:
        what: What is wrong, with the plural of its subject: 'images not readable'.
        severity: How bad it is.
        advice: What to do.
    """

    what: str
    severity: Severity
    advice: str


def report_faults(where: str, wrong: Mapping[Fault, list[str]], total: int) -> Iterator[Finding]:
    """Report each kind of fault that occurs.

    Args:
        where: The subject, such as a split.
        wrong: Descriptions of the faulty items by kind, in the order of the report.
        total: The number of all items.
    """
    for fault, items in wrong.items():
        yield from report_wrong(fault.severity, where, items, total, fault.what, fault.advice)
