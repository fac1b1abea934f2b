"""The formats of exported files by their names and suffixes; needs no torch."""

from pathlib import Path

from ptnt_mm.utils.errors import UserError

FORMATS = {'onnx': '.onnx', 'openvino': '.xml', 'torch-export': '.pt2'}
"""Suffixes by format."""


def choose_format(out: Path, format: str | None) -> str:
    """The format of a file, by default the one of its suffix; a UserError if they disagree."""
    by_suffix = {suffix: name for name, suffix in FORMATS.items()}
    format = format or by_suffix.get(out.suffix)
    if format is None or FORMATS[format] != out.suffix:
        expected = ', '.join(f'{suffix} for {name}' for name, suffix in FORMATS.items())
        raise UserError(f'`out={out}`: expected a name that ends in {expected}')
    return format
