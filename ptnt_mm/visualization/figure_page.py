"""One HTML page for figures that lie beside it."""

from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import NamedTuple

from ptnt_mm.utils.atomic_files import write_whole

MARK = '<meta name="generator" content="ptnt_mm visualize">'
"""In each of these pages: one may replace another."""

_HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
{mark}<title>{title}</title>
<style>
body {{ font: 16px/1.5 sans-serif; color: #222; max-width: 85rem; margin: auto; padding: 1rem }}
img {{ max-width: 100% }} p {{ max-width: 45rem; overflow-wrap: anywhere }}
</style>
<h1>{title}</h1>
"""


class Part(NamedTuple):
    """A heading, a text and perhaps a figure, by its path from the page."""

    title: str
    text: str
    figure: str = ''


def write_page(file: Path, title: str, parts: Iterable[Part]) -> None:
    """Write the page.

    Raises:
        UserError: if it cannot be written.
    """
    page = _HEAD.format(mark=MARK, title=escape(title))
    for part in parts:
        page += f'<h2>{escape(part.title)}</h2>\n<p>{escape(part.text)}</p>\n'
        if part.figure:
            path, name = escape(part.figure), escape(part.title)
            page += f'<a href="{path}"><img src="{path}" alt="{name}" loading="lazy"></a>\n'
    write_whole(file, page)
