"""The JSON file and its folder."""

import json
from pathlib import Path

import pytest

from ptnt_mm.data.predictions import FORMAT
from ptnt_mm.inference.source import Results
from ptnt_mm.utils.errors import UserError


def write(path: Path, entries: tuple = ()) -> dict:
    results = Results(path, overwrite=True)
    for entry in entries:
        results.add(**entry)
    results.write(format=FORMAT, classes=['a "b"'])
    return json.loads((path / 'predictions.json').read_text())


def test_it_is_json_with_and_without_images(tmp_path: Path):
    empty = write(tmp_path)
    assert empty == dict(format=FORMAT, classes=['a "b"'], images=[], failed=[])
    entries = (
        dict(file='ä.png', detections=[]),
        dict(file='b.png', detections=[dict(score=1.0, label='a')]),
    )
    assert write(tmp_path, entries)['images'] == list(entries)
    # One image per line, for reading and for grep.
    assert len((tmp_path / 'predictions.json').read_text().splitlines()) == 9


def test_failures(tmp_path: Path):
    results = Results(tmp_path, overwrite=False)
    results.fail('x.png', 'is empty')
    results.write()
    assert (len(results.found), len(results.failed)) == (0, 1)
    found = json.loads(results.file.read_text())
    assert found['failed'] == [dict(file='x.png', reason='is empty')]


def test_results_are_replaced_only_when_asked(tmp_path: Path):
    Results(tmp_path / 'new', overwrite=False).prepare()
    write(tmp_path)
    (tmp_path / 'drawn').mkdir()
    (tmp_path / 'drawn' / 'old.png').touch()
    (tmp_path / 'mine.txt').touch()
    with pytest.raises(UserError, match='results of an earlier run: .* pass `overwrite=True`'):
        Results(tmp_path, overwrite=False)
    results = Results(tmp_path, overwrite=True)
    assert results.file.exists()
    results.prepare()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        'mine.txt',
        'new',
        'predictions.json',
    ]
    assert json.loads(results.file.read_text())['finished'] is False


@pytest.mark.parametrize('name', ['predictions.json', 'drawn/mine.png'])
def test_files_of_others_are_never_replaced(name: str, tmp_path: Path):
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text('[]')
    with pytest.raises(UserError, match='is not from this tool'):
        Results(tmp_path, overwrite=True)
    assert file.read_text() == '[]'


def test_unusable_output_folder_is_refused(tmp_path: Path):
    (tmp_path / 'file').touch()
    with pytest.raises(UserError, match='is not a folder'):
        Results(tmp_path / 'file', overwrite=False)
    with pytest.raises(UserError, match='cannot be written'):
        Results(tmp_path / 'file' / 'below', overwrite=False).prepare()
