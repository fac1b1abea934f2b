"""The worst images of all runs on a report's page, with their predictions."""

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ptnt_mm.deploy.decoding import Range, read_rgb
from ptnt_mm.utils.colours import as_hex
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.pages.page import photograph

_MOST_IMAGES = 48
_MARKUP = 4  # bytes of the page for each byte of data about boxes or masks


@dataclass(frozen=True)
class RankedImage:
    """An image with the cost of its result."""

    file: Path
    name: str  # on the page
    cost: float  # the higher, the worse
    key: Hashable  # of the image in the report of its run


def collect_gallery(
    reports: Mapping[str, Any],
    colours: Mapping[str, str],
    size: int,
    value_range: Range | None = None,
) -> dict[str, Any]:
    """Collect the worst images of all runs with their predictions, in at most ``size`` bytes.

    Images are read in ``value_range``, see :func:`~ptnt_mm.deploy.decoding.read_rgb`.
    """
    of_runs = {run: {image.file: image for image in reports[run].images()} for run in reports}
    ranked = [sorted(found.values(), key=lambda image: -image.cost) for found in of_runs.values()]
    # The worst of each run, then the second of each, and so on.
    rows = zip_longest(*ranked)
    names = {image.file: image.name for row in rows for image in filter(None, row)}
    images = []
    for file, name in list(names.items())[:_MOST_IMAGES]:
        seen = {run: found[file] for run, found in of_runs.items() if file in found}
        try:
            picture = photograph(read_rgb(file, value_range))
        except UserError as error:
            # Its numbers are shown without a picture.
            run, worst = next(iter(seen.items()))
            picture = dict(reports[run].size(worst), picture=None, fault=str(error))
        runs = [
            dict(reports[run].details(worst), name=run, colour=colours[run])
            for run, worst in seen.items()
        ]
        size -= len(picture['picture'] or '') + _MARKUP * len(json.dumps(runs))
        if size < 0:
            break
        images.append(dict(picture, name=name, runs=runs))
    runs = []
    for run, report in reports.items():
        palette = getattr(report, 'colours', {})
        classes = {name: as_hex(colour) for name, colour in palette.items()}
        runs.append(dict(name=run, colour=colours[run], classes=classes))
    classes = sorted({name for report in reports.values() for name in report.names})
    return dict(runs=runs, classes=classes, images=images, total=len(names))
