"""Files that are not whole, not ours, or not what they were: one clear line each."""

from dataclasses import replace
from pathlib import Path

import pytest

from ptnt_mm.deploy import Deployed
from ptnt_mm.deploy.about import About, read_about, with_about
from ptnt_mm.utils.errors import UserError

ABOUT = About(
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
    file.write_bytes(with_about(body, ABOUT, file.suffix))
    return file


def test_a_file_says_what_it_is(tmp_path: Path):
    about = read_about(write(tmp_path / 'x.onnx'))
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
        (cut, 'was not written by ptnt export, or is cut off'),
        (cut_in_the_description, 'is damaged'),
        (with_other_weights, 'was changed or damaged since its export'),
        (with_other_classes, 'was changed or damaged since its export'),
        (lambda data: b'', 'was not written by ptnt export'),
        (lambda data: b'{"format": "ptnt_mm export 1"' + b'[' * 100_000, 'is damaged'),
        (lambda data: data[400:].replace(b'"task"', b'"tusk"'), 'is damaged'),
    ],
)
def test_what_is_not_whole_is_refused(tmp_path: Path, change, message: str):
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
