"""``ptnt check`` on data sets of mmrotate: a table of planted faults."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ptnt_mm.workbench.cli.main import run

BOX = '10 10 40 10 40 30 10 30'


def _write(line: str) -> Callable[[Path], None]:
    """A change of the labels of one image."""
    return lambda folder: (folder / 'annfiles' / '1.txt').write_text(f'{line}\n') and None


def _write_all(line: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for file in (folder / 'annfiles').iterdir():
            file.write_text(line)

    return change


def _add(line: str) -> Callable[[Path], None]:
    """A change of the config."""
    return lambda folder: (folder / 'config.py').open('a').write(line) and None


# What is changed, what is said, and the exit status.
FAULTS = {
    'class': (_write(f'{BOX} boat 0'), "KeyError: 'boat' each line of its files is x1 y1", 1),
    'header': (_write(f'imagesource:Earth\n{BOX} ship 0'), 'without a header or empty lines', 1),
    'no_folder': (lambda folder: (folder / 'annfiles').rename(folder / 'a'), 'does not exist', 1),
    'not_an_image': (lambda f: (f / 'images' / '2.png').write_text('no'), '2.png', 1),
    'number': (_write('10 10 40 10 40 nan 10 30 ship 0'), 'not finite', 1),
    'no_area': (_write('10 10 40 10 40 10 10 10 ship 0'), 'boxes smaller than 1 pixel', 0),
    'outside': (_write('110 10 140 10 140 30 110 30 ship 0'), 'boxes outside of their image', 1),
    'no_labels': (_write_all(''), 'has an object write labels', 1),
    'upright': (_write_all(f'{BOX} ship 0\n'), 'all boxes are upright', 0),
    'no_image': (lambda folder: (folder / 'images' / '2.png').unlink(), 'images not found', 1),
    'box_type': (
        _add("train_pipeline[1]['box_type'] = 'rbox'\n"),
        "boxes of 8 numbers, where box_type='rbox' of LoadAnnotations has 5",
        1,
    ),
}


@pytest.mark.parametrize('fault', ['none', *FAULTS])
def test_faults(dota: Path, capsys, fault: str):
    change, expected, status = FAULTS.get(fault, (lambda folder: None, 'training step', 0))
    change(dota)
    found = run('check', [str(dota / 'config.py')])
    captured = capsys.readouterr()
    said = ' '.join((captured.out + captured.err).split())
    assert expected in said, said
    assert found == status, said
