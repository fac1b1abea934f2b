"""What an exported file says of itself, and whether it is whole.

A file is what a runtime reads, and behind it a line of JSON: in ONNX as an entry of the model's
metadata, in OpenVINO's XML as a comment. Both formats allow it, so every other program reads the
file as before. The JSON has the SHA-256 of all the rest. It finds damage and edits; it is no
signature.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ptnt_mm.utils.atomic_files import sha256
from ptnt_mm.utils.errors import UserError

KEY = 'ptnt_mm'
"""Of the entry in the metadata of an ONNX file."""

_START = b'{"format": "ptnt_mm export 1"'
"""To be raised by whoever changes what the fields mean."""

SUFFIXES = {'.onnx': 'onnx', '.xml': 'openvino'}
"""The formats that ``Deployed`` runs, by suffix."""


@dataclass(frozen=True)
class About:
    """What an exported file says of itself."""

    task: str  # 'detection', 'segmentation', or 'features' for backbone and neck alone
    classes: list[str] | None  # their names
    size: list[int] | None  # height and width of the input in pixels; None for any
    scale: list[int] | None  # width and height to resize images into; None to take them as they are
    keep_ratio: bool  # whether an image keeps its shape then
    thresholds: dict[str, float]  # of scores, overlaps and masks; the number of boxes
    config: str  # its name
    checkpoint: str  # its name
    checkpoint_sha256: str
    version: str  # of ptnt_mm
    precision: str = 'float32'  # of the weights: or 'float16' or 'int8'
    weights_sha256: str = ''  # of the .bin beside an .xml
    sha256: str = ''  # of the file without its last line, and of this without this field
    length: int = 0  # bytes of the file without its last line

    def text(self) -> bytes:
        """One line of JSON, without two hyphens in a row, which would end an XML comment."""
        fields = json.dumps(asdict(self))[1:].replace('--', '-\\u002d')
        return _START + b', ' + fields.encode()


def with_about(body: bytes, about: About, suffix: str) -> bytes:
    """A file of a format with its description behind it."""
    about = replace(about, length=len(body), sha256='')
    text = replace(about, sha256=hashlib.sha256(body + about.text()).hexdigest()).text()
    if suffix == '.xml':
        return body + b'<!--' + text + b'-->\n'
    # An entry of metadata_props, field 14 of ModelProto: protobuf joins what is appended.
    entry = _field(1, KEY.encode()) + _field(2, text)
    return body + _field(14, entry)


def read_about(file: Path) -> About:
    """Read what a file says of itself, or raise a UserError if it is not whole or not ours."""
    if not file.is_file():
        raise UserError(f'there is no file {file}')
    if file.suffix not in SUFFIXES:
        raise UserError(f'{file}: expected a file that ends in {" or ".join(SUFFIXES)}')
    data = file.read_bytes()
    start = data.rfind(_START)
    if start < 0:
        raise UserError(f'{file} was not written by ptnt export, or is cut off: export it again')
    try:
        fields = json.JSONDecoder().raw_decode(data[start:].decode(errors='replace'))[0]
        fields.pop('format')
        about = About(**fields)
        body = data[: about.length]
        whole = with_about(body, about, file.suffix) == data
    except (ValueError, TypeError, RecursionError) as error:
        raise UserError(f'{file} is damaged: export it again') from error
    if not whole:
        raise UserError(f'{file} was changed or damaged since its export: export it again')
    weights = file.with_suffix('.bin')
    if file.suffix == '.xml' and not weights.is_file():
        raise UserError(f'there is no {weights}: an .xml file has its weights in a .bin beside it')
    if file.suffix == '.xml' and sha256(weights) != about.weights_sha256:
        raise UserError(f'{weights} belongs to another .xml, or is damaged: export both again')
    return about


def _field(number: int, content: bytes) -> bytes:
    """A field of bytes in protobuf's encoding."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    low = [number >> shift & 127 for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([*(part | 128 for part in low[:-1]), low[-1]])
