"""The JSON file and its folder."""

import json
from pathlib import Path

import pytest

from ptnt_mm.inference.results import FORMAT, ResultFolder, Results
from ptnt_mm.utils.errors import UserError


def write(path: Path, entries: tuple = ()) -> dict:
    results = Results(dict(format=FORMAT, classes=['a "b"']))
    for entry in entries:
        results.add(entry)
    results.write(path / 'predictions.json')
    return json.loads((path / 'predictions.json').read_text())


def test_it_is_json_with_and_without_images(tmp_path: Path):
    empty = write(tmp_path)
    assert empty == dict(format=FORMAT, classes=['a "b"'], images=[], failed=[])
    entries = (dict(file='ä.png', detections=[]), dict(file='b.png', detections=[dict(score=1.0)]))
    assert write(tmp_path, entries)['images'] == list(entries)
    # One image a line, to be read by eye and by grep.
    assert len((tmp_path / 'predictions.json').read_text().splitlines()) == 9


def test_failures(tmp_path: Path):
    results = Results({})
    results.fail('x.png', 'is empty')
    results.write(tmp_path / 'x.json')
    assert (len(results.found), len(results.failed)) == (0, 1)
    found = json.loads((tmp_path / 'x.json').read_text())
    assert found['failed'] == [dict(file='x.png', reason='is empty')]


def test_results_are_replaced_only_when_asked(tmp_path: Path):
    ResultFolder(tmp_path / 'new', overwrite=False).prepare()
    write(tmp_path)
    (tmp_path / 'drawn').mkdir()
    (tmp_path / 'drawn' / 'old.png').touch()
    (tmp_path / 'mine.txt').touch()
    with pytest.raises(UserError, match='results of an earlier run: .* give --overwrite'):
        ResultFolder(tmp_path, overwrite=False)
    folder = ResultFolder(tmp_path, overwrite=True)
    assert folder.predictions.exists()
    folder.prepare()
    assert sorted(path.name for path in tmp_path.iterdir()) == ['mine.txt', 'new']


@pytest.mark.parametrize('name', ['predictions.json', 'drawn/mine.png'])
def test_files_of_others_are_never_replaced(name: str, tmp_path: Path):
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text('[]')
    with pytest.raises(UserError, match='is not of this tool'):
        ResultFolder(tmp_path, overwrite=True)
    assert file.read_text() == '[]'


def test_a_folder_that_cannot_be(tmp_path: Path):
    (tmp_path / 'file').touch()
    with pytest.raises(UserError, match='is not a folder'):
        ResultFolder(tmp_path / 'file', overwrite=False)
    with pytest.raises(UserError, match='cannot be written to'):
        ResultFolder(tmp_path / 'file' / 'below', overwrite=False).prepare()
