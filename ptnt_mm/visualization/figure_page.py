"""One HTML page for figures that lie beside it."""

from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment

from ptnt_mm.utils.atomic_files import written_whole

MARK = '<meta name="generator" content="ptnt_mm visualize">'
"""In every page: an earlier one may be replaced."""

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
{{ mark | safe }}
<title>{{ title }}</title>
<style>
 body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 1400px; margin: 1rem auto;
        padding: 0 1rem }
 img { max-width: 100%; border: 1px solid #ddd } p { max-width: 50rem }
 td { padding-right: 1.5rem; vertical-align: top; overflow-wrap: anywhere }
 @media print { figure { break-inside: avoid } }
</style>
<h1>{{ title }}</h1>
<table>{% for name, value in facts %}<tr><td>{{ name }}<td>{{ value }}{% endfor %}</table>
{% for image in images %}
<h2>{{ image.title }}</h2>
<p>{% for figure in image.figures if figure.file %}
<a href="#{{ figure.file }}">{{ figure.title }}</a>{{ '' if loop.last else ' ·' }}{% endfor %}</p>
{% for figure in image.figures %}
<h3 id="{{ figure.file }}">{{ figure.title }}</h3>
<p>{{ figure.text }}</p>
{% if figure.file %}<a href="{{ figure.file }}"><img src="{{ figure.file }}" alt="{{ figure.title }}"
loading="lazy"></a>{% endif %}
{% endfor %}{% endfor %}
</html>
"""


class ShownFigure(NamedTuple):
    """A figure on the page."""

    title: str
    text: str
    file: str
    """Relative to the page; empty if there is none."""


class ShownImage(NamedTuple):
    """The figures of an image."""

    title: str
    figures: list[ShownFigure]


def write_page(
    file: Path, title: str, facts: list[tuple[str, str]], images: list[ShownImage]
) -> None:
    """Write the page.

    Raises:
        UserError: if it cannot be written.
    """
    page = Environment(autoescape=True).from_string(_PAGE)
    with written_whole(file) as partial:
        text = page.render(mark=MARK, title=title, facts=facts, images=images)
        partial.write_text(text, encoding='utf-8')
