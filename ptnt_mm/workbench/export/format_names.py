"""The formats of exported files, and the options that go with each; needs no torch."""

from pathlib import Path

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.imports import require_packages

FORMATS = {'onnx': '.onnx', 'openvino': '.xml', 'torch-export': '.pt2'}
"""Suffixes by format."""

PACKAGES = {
    'onnx': ('onnx', 'onnxscript', 'onnxruntime'),
    'openvino': ('onnx', 'onnxscript', 'openvino'),
    'torch-export': (),
}
"""Packages that are needed to write and to run each format."""


def choose_format(out: Path, format: str | None) -> str:
    """The format of a file, by default the one of its suffix; a UserError if they disagree."""
    by_suffix = {suffix: name for name, suffix in FORMATS.items()}
    format = format or by_suffix.get(out.suffix)
    if format is None or FORMATS[format] != out.suffix:
        expected = ', '.join(f'{suffix} for {name}' for name, suffix in FORMATS.items())
        raise UserError(f'`out={out}`: expected a name that ends in {expected}')
    return format


def check_options(format: str, half: bool, calibrate: Path | None, evaluate: bool) -> None:
    """Raise a UserError if options of `export` exclude each other, or a package is missing."""
    if format == 'torch-export' and (half or calibrate):
        raise UserError('`half=True` and `calibrate` are for ONNX and OpenVINO only')
    if format == 'torch-export' and evaluate:
        raise UserError('`evaluate=True` runs .onnx and .xml files, not .pt2: omit it')
    if half and calibrate:
        raise UserError('`half=True` and `calibrate` cannot be combined: choose one')
    require_packages('exporting', *{*PACKAGES[format], *(('onnxruntime',) if calibrate else ())})


def files_of(out: Path) -> list[Path]:
    """The files to write: OpenVINO's weights are next to their .xml."""
    return [out, out.with_suffix('.bin')] if out.suffix == '.xml' else [out]
