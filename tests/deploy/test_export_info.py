"""Truncated, foreign and modified files each give a one-line error."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from exported import replace_network

from ptnt_mm.deploy import Deployed
from ptnt_mm.deploy.export_info import ExportInfo, read_export_info, with_export_info
from ptnt_mm.utils.errors import UserError

ABOUT = ExportInfo(
    task='detection',
    classes=['ball', 'a -- b', '大'],
    size=None,
    scale=[256, 192],
    keep_ratio=True,
    thresholds=dict(score=0.05),
    config='x.py',
    checkpoint='epoch_1.pth',
    checkpoint_sha256='0' * 64,
    version='0.1.0',
)


def write(file: Path, body: bytes = b'body' * 100) -> Path:
    file.write_bytes(with_export_info(body, ABOUT, file.suffix))
    return file


def test_a_file_contains_facts_about_itself(tmp_path: Path):
    about = read_export_info(write(tmp_path / 'x.onnx'))
    assert replace(about, sha256='', length=0) == ABOUT and about.length == 400


def test_a_comment_of_xml_has_no_two_hyphens(tmp_path: Path):
    text = write(tmp_path / 'x.xml').read_text()
    assert text.endswith('-->\n') and '--' not in text[4:].partition('<!--')[2][:-4]


def cut(data: bytes) -> bytes:
    return data[:200]


def cut_in_the_description(data: bytes) -> bytes:
    return data[:-20]


def with_other_weights(data: bytes) -> bytes:
    return data.replace(b'bodybody', b'bodyBody', 1)


def with_other_classes(data: bytes) -> bytes:
    return data.replace(b'ball', b'bell')


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (cut, 'was not written by ptnt export, or is truncated'),
        (cut_in_the_description, 'is damaged'),
        (with_other_weights, 'was changed or damaged since its export'),
        (with_other_classes, 'was changed or damaged since its export'),
        (lambda data: b'', 'was not written by ptnt export'),
        (lambda data: b'{"format": "ptnt_mm export 1"' + b'[' * 100_000, 'is damaged'),
        (lambda data: data[400:].replace(b'"task"', b'"tusk"'), 'is damaged'),
    ],
)
def test_incomplete_files_are_refused(tmp_path: Path, change, message: str):
    file = write(tmp_path / 'x.onnx')
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(UserError, match=message) as caught:
        Deployed(file)
    assert '\n' not in str(caught.value)


def test_other_files_are_refused(tmp_path: Path):
    with pytest.raises(UserError, match='there is no file'):
        Deployed(tmp_path / 'x.onnx')
    (tmp_path / 'x.pth').write_bytes(b'')
    with pytest.raises(UserError, match=r'expected a file that ends in \.onnx or \.xml'):
        Deployed(tmp_path / 'x.pth')


def test_weights_of_another_xml_are_refused(tmp_path: Path):
    file = write(tmp_path / 'x.xml')
    with pytest.raises(UserError, match=r'there is no .*x\.bin'):
        Deployed(file)
    file.with_suffix('.bin').write_bytes(b'others')
    with pytest.raises(UserError, match='belongs to another'):
        Deployed(file)


def forged(file: Path, **fields: object) -> Path:
    """A file with a correct checksum, whatever its description."""
    body = b'body' * 100
    file.write_bytes(with_export_info(body, replace(ABOUT, **fields), file.suffix))
    return file


HUGE, DEEP = 10**300, [[[[[[]]]]]]
NOT_TEXT = (None, 3, True, ['x'], {}, DEEP)
IMPOSSIBLE = {
    'task': ('classify', '', None, 1, ['detection'], {}),
    'classes': ('ball', 3, True, [1], [None], [['ball']], {'0': 'ball'}, DEEP),
    'size': (
        [60000, 60000], [2**15 + 1, 1], [HUGE, 1], [0, 9], [-1, 9], [9], [9, 9, 9], [9.0, 9],
        ['9', 9], [True, 9], [None, 9], [math.nan, 9], [math.inf, 9], 9, '9x9', {}, DEEP,
    ),
    'scale': (
        [2**20 + 1, 9], [HUGE, 9], [math.inf, 9], [math.nan, 9], [0.5, 9], [-1, 800], [9], [9] * 3,
        ['9', 9], [True, 9], 9, True, {}, DEEP,
    ),
    'keep_ratio': (None, 1, 'true', math.nan, []),
    'thresholds': (
        None, [0.5], 0.5, {'mask': '0.5'}, {'mask': None}, {'mask': True}, {'mask': math.nan},
        {'mask': math.inf}, {'mask': HUGE}, {'mask': {}}, {'mask': DEEP},
    ),
    'config': NOT_TEXT,
    'checkpoint': NOT_TEXT,
    'checkpoint_sha256': ('x', '0' * 63, *NOT_TEXT),
    'version': NOT_TEXT,
    'precision': ('float64', '', *NOT_TEXT),
    'weights_sha256': ('x', *NOT_TEXT),
    'value_range': (
        [5, 5], [9, 1], [0], [0, 1, 2], ['0', 9], [True, 9], [None, 9], [0, math.nan],
        [0, math.inf], [0, HUGE], 9, '0 9', {}, DEEP,
    ),
    'tiling': ([640], [31, 0.2], [640, 1], [640, -0.1], [640.5, 0.2], [True, 0], '640', DEEP),
    'edge': (0, -1, 2**13 + 1, HUGE, 224.0, '224', True, math.nan, [224], {}, DEEP),
    'crop': ([60000, 60000], [0, 9], [9], [9.0, 9], [True, 9], [math.nan, 9], 9, '9x9', {}, DEEP),
    'interpolation': ('bilinear', 'cv2 hamming', 'pillow area', '', 3, True, ['cv2 area'], DEEP),
    'mask_grid': ([0, 4], [8, HUGE], [8], [8, math.nan], ['8', 4], [True, 4], 8, {}, DEEP),
}  # fmt: skip


@pytest.mark.parametrize('field', IMPOSSIBLE)
def test_impossible_values_are_refused(tmp_path: Path, field: str):
    for value in IMPOSSIBLE[field]:
        file = forged(tmp_path / 'x.onnx', **{field: value})
        with pytest.raises(UserError, match=f'{field} is .*: expected ') as caught:
            Deployed(file)
        assert '\n' not in str(caught.value) and len(str(caught.value)) < 500


@pytest.mark.parametrize(
    'fields',
    [
        dict(size=None, scale=None, classes=None, thresholds={}),
        dict(size=[8192, 8192], scale=[2**20, 800], classes=[], precision='int8'),
        dict(value_range=[0, 4095]),
        dict(value_range=[-1000.5, 0.0]),
        dict(mask_grid=[4, 2.5]),
        dict(tiling=[640, 0.2]),
        dict(tiling=[32, 0]),
        dict(task='classification', edge=256, crop=[224, 192], interpolation='pillow bicubic'),
        dict(size=[1, 1], scale=[1333.5, 800], thresholds=dict(mask=-1, score=0, boxes=100)),
        dict(task='features', keep_ratio=False, config='', checkpoint='\x1b[2J', version=''),
    ],
)
def test_possible_values_are_read(tmp_path: Path, fields: dict):
    about = read_export_info(forged(tmp_path / 'x.onnx', **fields))
    assert replace(about, sha256='', length=0) == replace(ABOUT, **fields)


def test_what_cannot_be_forged_with_a_right_checksum(tmp_path: Path):
    """Missing and unknown fields, wrong values with a correct checksum, other versions."""
    text = ABOUT.text().decode()
    for changed, message in (
        (text.replace('"length": 0', '"length": -1'), 'length is -1'),
        (text.replace('"length": 0', f'"length": {HUGE}'), 'length is 1'),
        (text.replace('"length": 0', f'"length": {"9" * 5000}'), 'is damaged'),
        (text.replace('"length": 0', '"length": 0.5'), 'length is 0.5'),
        (text.replace('"sha256": ""', '"sha256": 7'), 'sha256 is 7'),
        (text.replace('"task": "detection", ', ''), 'is damaged'),
        (text.replace('"task"', '"more": 1, "task"'), 'is damaged'),
        (text.replace('export 1"', 'export 2"'), 'different version'),
        (text.replace('export 1"', 'export 10"'), 'different version'),
        (text.replace('"size": null', '"size": ' + '[' * 100_000), 'is damaged'),
    ):
        assert changed != text
        (tmp_path / 'x.onnx').write_text(changed)
        with pytest.raises(UserError, match=message):
            Deployed(tmp_path / 'x.onnx')


def test_a_crop_of_another_size_than_the_file_takes(tmp_path: Path):
    with pytest.raises(UserError, match=r'crop is \[400, 400\], and size \[224, 224\]'):
        read_export_info(forged(tmp_path / 'x.onnx', size=[224, 224], crop=[400, 400]))


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch):
    file = write(tmp_path / 'x.onnx')

    def refused(self) -> bytes:
        raise PermissionError(13, 'Permission denied', str(self))

    monkeypatch.setattr(Path, 'read_bytes', refused)
    with pytest.raises(UserError, match='x.onnx cannot be read: Permission denied'):
        Deployed(file)


def deployed(monkeypatch, file: Path, **outputs: tuple) -> Deployed:
    """A file with a runtime that returns zeros of the given shapes."""
    found = [np.zeros(shape, np.int64) for shape in outputs.values()]
    replace_network(monkeypatch, [*outputs], lambda images: found)
    return Deployed(file)


@pytest.mark.parametrize(
    ('fields', 'outputs', 'message'),
    [
        (dict(), dict(labels=(1, 4, 6)), 'needs an output boxes .*: got only labels'),
        (dict(), dict(level0=(1, 8, 4, 4)), 'needs an output boxes'),
        (dict(task='segmentation'), dict(labels=(1, 5)), r'labels with 3 dimensions: got \(1, 5\)'),
        (
            dict(),
            dict(boxes=(1, 5, 4), scores=(1, 5), labels=(1, 5), masks=(1, 5, 28, 28)),
            'thresholds lack mask',
        ),
    ],
)
def test_a_description_of_another_network(tmp_path: Path, monkeypatch, fields, outputs, message):
    file = forged(tmp_path / 'x.onnx', **fields)
    with pytest.raises(UserError, match=message):
        deployed(monkeypatch, file, **outputs)(np.zeros((8, 8, 3), np.uint8))


def test_no_image_is_made_larger_than_memory(tmp_path: Path, monkeypatch):
    file = forged(tmp_path / 'x.onnx', scale=[2**20, 2**20])
    with pytest.raises(UserError, match='8x8 pixels would be resized to 1048576x1048576'):
        deployed(monkeypatch, file)(np.zeros((8, 8, 3), np.uint8))
