"""HTML pages from templates."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from ptnt_mm.utils.atomic_files import write_atomically

TEMPLATES = Environment(
    loader=PackageLoader(__package__),
    # Class and file names are untrusted text.
    autoescape=select_autoescape(),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def write_page(template: str, file: Path, **content: Any) -> None:
    """Write a page from a template in the folder ``templates``, or raise a UserError."""
    write_atomically(file, TEMPLATES.get_template(template).render(**content))
