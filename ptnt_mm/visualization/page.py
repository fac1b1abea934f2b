"""HTML pages out of templates."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from ptnt_mm.utils.atomic_files import write_whole


def _figure(value: float | None) -> str:
    """A number in [0, 1] with three decimals, as papers write AP; a dash for none."""
    return '–' if value is None else f'{value:.3f}'


def _percent(value: float | None) -> str:
    return '–' if value is None else f'{100 * value:.1f} %'


TEMPLATES = Environment(
    loader=PackageLoader(__package__),
    # Class and file names are other people's text.
    autoescape=select_autoescape(),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.globals |= dict(figure=_figure, percent=_percent)


def write_page(template: str, file: Path, **content: Any) -> None:
    """Write a page from a template of the folder ``templates``, or raise a UserError."""
    write_whole(file, TEMPLATES.get_template(template).render(**content))
