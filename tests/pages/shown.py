"""The content of a report's page."""

import json
import re
from pathlib import Path
from typing import NamedTuple

from ptnt_mm.workbench.cli.main import run


def report(out: Path, *work_dirs: Path) -> str:
    """The page about these runs."""
    assert run('report', [*map(str, work_dirs), '--out', str(out), '--overwrite']) == 0
    return out.read_text()


class Cell(NamedTuple):
    text: str
    kind: str  # 'better' or 'worse' for a difference


def table(page: str, name: str) -> list[tuple[str, list[Cell]]]:
    """The columns of a table with their headings; the first has the names of the rows."""
    inner = re.search(rf'<table class="sortable" id="{name}">(.*?)</table>', page, re.DOTALL)[1]
    headings = re.findall('<button[^>]*>(.*?)</button>', inner)
    rows = [
        [Cell(re.sub('<i.*</i>', '', re.search('<th scope="row">(.*?)</th>', row)[1]), '')]
        + [
            Cell(text, kind.removeprefix('bar').strip())
            for kind, text in re.findall('<td class="([^"]*)"[^>]*>([^<]*)</td>', row)
            if kind != 'text'
        ]
        for row in inner.split('<tr>')[2:]
    ]
    return list(zip(headings, map(list, zip(*rows, strict=True)), strict=True))


def cells(page: str, name: str, heading: str) -> dict[str, Cell]:
    """The cells of the only column with a heading, by the names of the rows."""
    (_, names), *columns = table(page, name)
    (found,) = (column for title, column in columns if title == heading)
    return dict(zip([name.text for name in names], found, strict=True))


class Chart(NamedTuple):
    title: str
    is_noisy: bool
    lines: dict[str, str]  # the names of its lines, and their colours


def curves(page: str) -> list[Chart]:
    """The charts of training."""
    found = re.findall(
        '<figure class="chart"( data-noisy)?>\\s*<figcaption>(.*?)</figcaption>.*?'
        '<script type="application/json">(.*?)</script>',
        page.partition('id="curves"')[2].partition('</details>')[0],
        re.DOTALL,
    )
    scales = [json.loads(spec)['layer'][0]['encoding']['color']['scale'] for *_, spec in found]
    return [
        Chart(title, bool(noisy), dict(zip(scale['domain'], scale['range'], strict=True)))
        for (noisy, title, _), scale in zip(found, scales, strict=True)
    ]


def colours(page: str) -> dict[str, str]:
    """The colour of each run."""
    tile = '<div class="tile" style="--run: (.*?)">\\s*<h3>(.*?)</h3>'
    return {name: colour for colour, name in re.findall(tile, page)}


def cards(page: str) -> list[str]:
    """The images of the galleries, the worst first."""
    return re.findall('<figure class="card">(.*?)</figure>', page, re.DOTALL)
