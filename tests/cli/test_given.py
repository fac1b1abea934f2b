"""What a command line names is checked before torch is imported."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

from ptnt_mm.cli.given import check_given
from ptnt_mm.cli.main import run
from ptnt_mm.cli.start import parser_of

CONFIG = 'retinanet_ptnt_s_1x'
WRONG = [
    ('train gone', 'no config file gone'),
    (f'train {CONFIG[:-1]}', f"did you mean '{CONFIG}'"),
    (f'train {CONFIG} --pretrained ptnt_s_82.0.pth.tar', 'open https://pan.*password v5w5'),
    (f'train {CONFIG} --pretrained ptnt_s', 'open https://pan.*password v5w5'),
    (f'train {CONFIG} --data-root gone', 'there is no folder gone'),
    (f'train {CONFIG} --load-from gone.pth', 'gone.pth: no such file'),
    (f'train {CONFIG} --resume gone.pth', 'gone.pth: no such file'),
    (f'test {CONFIG} notes.txt', 'notes.txt: is a text file, not a checkpoint'),
    (f'infer gone.jpg {CONFIG}', 'there is no image, folder or video gone.jpg'),
    ('infer notes.txt gone.onnx', 'there is no file gone.onnx'),
    (f'export {CONFIG} --out model.tflite', 'expected a name that ends in .onnx'),
    (f'visualize {CONFIG} gone.jpg', 'there is no file gone.jpg'),
    ('train data.yaml', 'make a project of it first, `ptnt new data.yaml PROJECT`'),
    ('infer notes.txt data.yaml', 'make a project of it first'),
    ('new gone project', 'gone does not exist'),
    ('new data.yaml project', 'data.yaml names no images'),
    ('new data project --backbone ptnt_tx', "did you mean 'ptnt_ti'"),
    ('new data project --detector gflx', "did you mean 'gfl'"),
    ('new data project --format yollo', "did you mean 'yolo'"),
    ('pretrain gone start.pth --backbone ptnt_ti', 'gone does not exist: expected a folder'),
    ('pretrain notes.txt start.pth --backbone ptnt_ti', 'notes.txt is a file: expected a folder'),
    ('pretrain data start.pth --backbone ptnt_ti', 'data contains no files: expected images'),
    ('pretrain data notes.txt --backbone ptnt_ti', 'notes.txt exists'),
    ('report gone', 'there is no folder gone'),
    ('report --data gone', 'no config file gone'),
    ('checkpoint inspect gone.pth', 'gone.pth: no such file'),
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'data').mkdir()
    (tmp_path / 'notes.txt').write_text('text')
    (tmp_path / 'data.yaml').write_text('names: [cell]')
    return tmp_path


@pytest.mark.parametrize(('line', 'message'), WRONG)
def test_what_is_not_there_is_named(here: Path, capsys, line: str, message: str):
    name, *words = line.split()
    assert run(name, words) == 1
    assert re.search(message, capsys.readouterr().err)


@pytest.mark.parametrize('project', ['cells.v2', 'cells'])
def test_what_is_there_passes(here: Path, project: str):
    (here / project).mkdir()
    (here / project / 'config.py').write_text('model = dict()')
    for name, words in (('train', [project]), ('new', ['data', 'copy', '--like', project])):
        check_given(name, parser_of(name).parse_args(words))


def test_torch_is_not_imported_for_it(here: Path):
    code = f"""
import sys
PTNT_MM_REGISTERS_LATER = True
from ptnt_mm.cli.main import run
for name, *words in {[line.split() for line, _ in WRONG]}:
    assert run(name, words) == 1
    assert 'torch' not in sys.modules, (name, words)
assert run('weights') == run('configs') == 0 and 'torch' not in sys.modules
"""
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 'Loading' not in done.stderr


def test_a_slow_start_is_announced_in_a_pipe(here: Path):
    """As a line of its own, which a log file keeps."""
    command = [ROOT / 'tools' / 'ptnt', 'complexity', 'small', '--shape', '32', '32']
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
    assert done.stderr.startswith('Loading libraries ...\n') and 'Loading' not in done.stdout
