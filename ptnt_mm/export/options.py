"""Check the options of an export before its work, which takes minutes."""

from importlib.util import find_spec
from pathlib import Path

from ptnt_mm.export.formats import FORMATS, PACKAGES
from ptnt_mm.utils.errors import UserError


def choose_format(out: Path, format: str | None) -> str:
    """The format of a file, by default the one of its suffix; a UserError if they disagree."""
    by_suffix = {suffix: name for name, suffix in FORMATS.items()}
    format = format or by_suffix.get(out.suffix)
    if format is None or FORMATS[format] != out.suffix:
        expected = ', '.join(f'{suffix} for {name}' for name, suffix in FORMATS.items())
        raise UserError(f'`out={out}`: expected a name that ends in {expected}')
    return format


def check_options(format: str, half: bool, calibrate: Path | None, evaluate: bool) -> None:
    """Raise a UserError if options exclude each other, or a package is not installed.

    Args:
        format: One of ``FORMATS``.
        half: Whether to store float16.
        calibrate: A folder of images to quantise to 8 bits with, or None.
        evaluate: Whether to evaluate the file.
    """
    if format == 'torch-export' and (half or calibrate):
        raise UserError('`half=True` and `calibrate` are for ONNX and OpenVINO only')
    if format == 'torch-export' and evaluate:
        raise UserError('`evaluate=True` runs .onnx and .xml files, not .pt2: omit it')
    if half and calibrate:
        raise UserError('`half=True` and `calibrate` cannot be combined: choose one')
    needed = {*PACKAGES[format], *(('onnxruntime',) if calibrate else ())}
    if missing := sorted(name for name in needed if find_spec(name) is None):
        raise UserError(f'exporting needs more packages: pip install {" ".join(missing)}')
