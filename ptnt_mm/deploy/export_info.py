"""Metadata stored in an exported file, and a check that the file is complete.

An exported file is a normal file for a runtime, followed by a line of JSON: in ONNX as an entry of
the model's metadata, in OpenVINO's XML as a comment. Both formats allow this, so other programs can
read the file. The JSON contains the SHA-256 of the rest. This detects damage and edits, but it is
not a signature: anyone can write a file with any JSON. So every field is checked.
"""

import hashlib
import json
import re
import reprlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ptnt_mm.deploy.resizing import INTERPOLATIONS, LINEAR, Resizing
from ptnt_mm.utils.atomic_files import sha256
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import printable

KEY = 'ptnt_mm'
"""Name of the entry in the metadata of an ONNX file."""

_FORMAT = b'{"format": "ptnt_mm export '
_START = _FORMAT + b'1"'  # increase the number when the meaning of the fields changes

SUFFIXES = {'.onnx': 'onnx', '.xml': 'openvino'}
"""The formats that ``Deployed`` runs, by suffix."""

TASKS = ('detection', 'segmentation', 'classification', 'features')

MOST_PIXELS = 2**26
"""Limit for an image at network size: 8192 x 8192."""

_LONGEST = 2**20  # largest side of a scale: a huge longer side means only the shorter one counts


@dataclass(frozen=True)
class ExportInfo:
    """Metadata stored in an exported file."""

    task: str  # one of ``TASKS``; 'features' for only backbone and neck
    classes: list[str] | None  # their names
    size: list[int] | None  # height and width of the input in pixels; None for any
    scale: list[int] | None  # width and height to resize images into; None for no resizing
    keep_ratio: bool  # whether resizing keeps the aspect ratio
    thresholds: dict[str, float]  # for scores, overlaps and masks; the number of boxes
    config: str  # its name
    checkpoint: str  # its name
    checkpoint_sha256: str
    version: str  # of ptnt_mm
    precision: str = 'float32'  # of the weights; also 'float16' or 'int8'
    weights_sha256: str = ''  # of the .bin next to an .xml
    sha256: str = ''  # of the file without its last line, and of this without this field
    length: int = 0  # bytes of the file without its last line
    # The values of images of more than 8 bits that become black and white; None scales 16 bits.
    value_range: list[float] | None = None
    # For masks of the whole image: their stride, and the place of the first value, in pixels of the
    # network's input. None for masks inside boxes.
    mask_grid: list[float] | None = None
    # The side in pixels of tiles that large images are cut into, and the share of it that
    # neighbours have in common. `ptnt infer` cuts; ptnt_mm.deploy takes images as they are.
    tiling: list[float] | None = None
    # The other fields of ``Resizing``; None for its defaults.
    edge: int | None = None
    crop: list[int] | None = None
    interpolation: str | None = None

    @property
    def resizing(self) -> Resizing:
        """How images are resized and cropped, before they are padded to a fixed size."""
        interpolation = self.interpolation or LINEAR
        return Resizing(self.scale, self.keep_ratio, self.edge, self.crop, interpolation)

    def text(self) -> bytes:
        """One line of JSON, without two hyphens in a row, which would end an XML comment."""
        fields = asdict(self)
        for name in _LATER:
            if fields[name] is None:  # as files from before these fields
                del fields[name]
        fields = json.dumps(fields)[1:].replace('--', '-\\u002d')
        return _START + b', ' + fields.encode()


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch('([0-9a-f]{64})?', value) is not None


def _is_number(value: Any, low: float, high: float, *types: type) -> bool:
    # Not isinstance: a bool is an int. NaN is in no range.
    return type(value) in (types or (int, float)) and low <= value <= high


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_pair(value: Any, low: float, high: float) -> bool:
    is_pair = isinstance(value, list) and len(value) == 2
    return is_pair and all(_is_number(part, low, high) for part in value)


def _is_size(value: Any) -> bool:
    are_whole = _is_pair(value, 1, 2**15) and all(type(side) is int for side in value)
    return are_whole and value[0] * value[1] <= MOST_PIXELS


def _is_tiling(value: Any) -> bool:
    return _is_pair(value, 0, _LONGEST) and _is_number(value[0], 32, _LONGEST, int) and value[1] < 1


def _are_thresholds(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _is_number(x, -_LONGEST, _LONGEST) for x in value.values()
    )


_LATER = ('value_range', 'mask_grid', 'tiling', 'edge', 'crop', 'interpolation')
"""Fields that older files lack."""

_OR_NULL = ('classes', 'size', 'scale', *_LATER)

_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    'task': (lambda value: value in TASKS, f'one of {", ".join(TASKS)}'),
    'classes': (_are_names, 'null or a list of names'),
    'size': (_is_size, f'null, or a height and a width, at most {MOST_PIXELS} pixels in all'),
    'scale': (
        lambda value: _is_pair(value, 1, _LONGEST),
        f'null, or a width and a height from 1 to {_LONGEST}',
    ),
    'keep_ratio': (lambda value: isinstance(value, bool), 'true or false'),
    'thresholds': (_are_thresholds, 'numbers by name'),
    'config': (_is_text, 'a text'),
    'checkpoint': (_is_text, 'a text'),
    'checkpoint_sha256': (_is_hash, '64 hexadecimal digits'),
    'version': (_is_text, 'a text'),
    'precision': (
        lambda value: value in ('float32', 'float16', 'int8'),
        'float32, float16 or int8',
    ),
    'weights_sha256': (_is_hash, '64 hexadecimal digits, or nothing'),
    'sha256': (_is_hash, '64 hexadecimal digits, or nothing'),
    'value_range': (
        lambda value: _is_pair(value, -(2.0**64), 2.0**64) and value[0] < value[1],
        'null, or two numbers, the lower one first',
    ),
    'mask_grid': (
        lambda value: _is_pair(value, 1, 2**10),
        'null, or a stride and a place from 1 to 1024',
    ),
    'tiling': (_is_tiling, f'null, or a side from 32 to {_LONGEST} and a share from 0, below 1'),
    'edge': (lambda value: _is_number(value, 1, 2**13, int), 'null, or a side from 1 to 8192'),
    'crop': (_is_size, f'null, or a height and a width, at most {MOST_PIXELS} pixels in all'),
    'interpolation': (
        lambda value: value in INTERPOLATIONS,
        f'null, or one of {", ".join(INTERPOLATIONS)}',
    ),
    'length': (lambda value: _is_number(value, 0, 2**63, int), 'a number of bytes'),
}
"""A check of the value of each field, and a description of valid values."""


def with_export_info(body: bytes, about: ExportInfo, suffix: str) -> bytes:
    """Append the metadata to the content of a file."""
    about = replace(about, length=len(body), sha256='')
    text = replace(about, sha256=hashlib.sha256(body + about.text()).hexdigest()).text()
    if suffix == '.xml':
        return body + b'<!--' + text + b'-->\n'
    # An entry of metadata_props, field 14 of ModelProto: protobuf merges appended fields.
    entry = _field(1, KEY.encode()) + _field(2, text)
    return body + _field(14, entry)


def read_export_info(file: Path) -> ExportInfo:
    """Read the metadata of an exported file, without allocating memory for the sizes in it.

    Raises:
        UserError: if the file is incomplete, changed, from another program or version, or if a
            field has a wrong type or is out of range.
    """
    if not file.is_file():
        raise UserError(f'there is no file {file}')
    if file.suffix not in SUFFIXES:
        raise UserError(f'{file}: expected a file that ends in {" or ".join(SUFFIXES)}')
    weights = file.with_suffix('.bin')
    try:
        data = file.read_bytes()
        about = _parse(data, file)
        if with_export_info(data[: about.length], about, file.suffix) != data:
            raise UserError(f'{file} was changed or damaged since its export: export it again')
        if file.suffix == '.xml' and not weights.is_file():
            raise UserError(
                f'there is no {weights}: an .xml file has its weights in a .bin next to it'
            )
        if file.suffix == '.xml' and sha256(weights) != about.weights_sha256:
            raise UserError(f'{weights} belongs to another .xml, or is damaged: export both again')
    except OSError as error:
        raise UserError(f'{error.filename or file} cannot be read: {error.strerror}') from error
    return about


def _parse(data: bytes, file: Path) -> ExportInfo:
    """Parse and check the last line of a file."""
    start = data.rfind(_FORMAT)
    if start < 0:
        raise UserError(f'{file} was not written by ptnt export, or is truncated: export it again')
    if not data.startswith(_START, start):
        raise UserError(f'{file} was written by a different version of ptnt_mm: export it again')
    try:
        fields = json.JSONDecoder().raw_decode(data[start:].decode(errors='replace'))[0]
        del fields['format']
        for name in fields.keys() & _FIELDS.keys():
            is_valid, expected = _FIELDS[name]
            is_null = fields[name] is None and name in _OR_NULL
            if not is_null and not is_valid(fields[name]):
                value = printable(reprlib.repr(fields[name]))
                raise UserError(f'{file}: {name} is {value}: expected {expected}. Export it again')
        if (crop := fields.get('crop')) and (size := fields.get('size')) and crop != size:
            raise UserError(f'{file}: crop is {crop}, and size {size}: export it again')
        return ExportInfo(**fields)
    except (ValueError, TypeError, RecursionError) as error:
        raise UserError(f'{file} is damaged: export it again') from error


def _field(number: int, content: bytes) -> bytes:
    """A field of bytes in protobuf's encoding."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    low = [number >> shift & 127 for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([*(part | 128 for part in low[:-1]), low[-1]])
