"""Files, names and numbers on a command line are checked before torch is imported."""

import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from repository import ROOT, environment

from ptnt_mm.workbench.cli.main import run

CONFIG = 'retinanet_ptnt_s_1x'
WRONG = [
    ('train gone', 'no config file gone'),
    (f'train {CONFIG[:-1]}', f"did you mean '{CONFIG}'"),
    (f'train {"x" * 300}', 'xxx: File name too long'),
    (f'train {CONFIG} --work-dir {"x" * 300}', 'xxx: File name too long'),
    (f'train {CONFIG} --pretrained ptnt_s_82.0.pth.tar', 'open https://pan.*password v5w5'),
    (f'train {CONFIG} --pretrained ptnt_s', 'open https://pan.*password v5w5'),
    (f'train {CONFIG} --data-root gone', 'there is no folder gone'),
    (f'train {CONFIG} --load-from gone.pth', 'gone.pth: no such file'),
    (f'train {CONFIG} --resume gone.pth', 'gone.pth: no such file'),
    (f'test {CONFIG} notes.txt', 'notes.txt: is a text file, not a checkpoint'),
    (f'infer gone.jpg {CONFIG}', 'there is no image, folder or video gone.jpg'),
    ('infer notes.txt gone.onnx', 'there is no file gone.onnx'),
    ('infer film.avi net.pt2', 'net.pt2 is for torch.* file that ends in .onnx or .xml'),
    (f'export {CONFIG} --out model.tflite', 'expected a name that ends in .onnx'),
    (f'visualize {CONFIG} gone.jpg', 'there is no file gone.jpg'),
    ('train data.yaml', 'create a project first, `ptnt new data.yaml PROJECT`'),
    ('infer notes.txt data.yaml', 'create a project first'),
    ('new gone project', 'gone does not exist'),
    ('new data.yaml project', 'data.yaml names no images'),
    ('new data project --backbone ptnt_tx', "did you mean 'ptnt_ti'"),
    ('new data project --detector gflx', "did you mean 'gfl'"),
    ('new data project --format yollo', "did you mean 'yolo'"),
    ('pretrain gone new.pth --backbone ptnt_ti', 'gone does not exist: expected a folder'),
    ('pretrain notes.txt new.pth --backbone ptnt_ti', 'notes.txt is a file: expected a folder'),
    ('pretrain data new.pth --backbone ptnt_ti', 'data contains no files: expected images'),
    ('pretrain data start.pth --backbone ptnt_ti', 'start.pth exists'),
    ('report gone', 'there is no folder gone'),
    ('report --data gone', 'no config file gone'),
    ('checkpoint inspect gone.pth', 'gone.pth: no such file'),
    # What excludes each other, or is out of its range
    ('new data project --size 31', "--size: '31' is not an integer from 32"),
    ('new data project --tile 8', "--tile: '8' is not 0 or an integer from 32"),
    ('new data project --epochs 0', "--epochs: '0' is not an integer from 1"),
    ('new data project --val-share 1', "--val-share: '1' is not a number between 0 and 1"),
    ('new data project --pairs {}.jpg', 'expected two patterns with {}'),
    ('new data project --detector gfl --task semantic', '--detector gfl is for the task detection'),
    ('new data project --detector upernet --tile 64', '--tile 64 is for the tasks detection and'),
    ('pretrain data start.txt --backbone ptnt_ti', 'start.txt: expected a name that ends in'),
    ('pretrain data new.pth --backbone ptnt_ti --batch 1', "--batch: '1' is not an integer from"),
    ('pretrain data new.pth --backbone ptnt_ti --size 63', "--size: '63' is not an integer from"),
    ('pretrain data new.pth --backbone ptnt_ti --teacher resnet19', "--teacher: .*'resnet18'"),
    ('pretrain data new.pth --backbone ptnt_ti --teacher notes.txt', 'is a file of weights'),
    (f'train {CONFIG} --log mlflow', '--log mlflow needs more packages: pip install mlflow'),
    (f'train {CONFIG} --pretrained tnt_s --load-from data', 'use either --pretrained or --load'),
    (f'train {CONFIG} --launcher slurm', '--launcher slurm: start the processes with srun'),
    (f'train {CONFIG} --work-dir notes.txt/run', 'notes.txt is a file, not a folder'),
    (f'train {CONFIG} --seed -1', "--seed: '-1' is not an integer from 0 to 4294967295"),
    (f'test {CONFIG} --out found.json', '--out found.json: expected a name that ends in .pkl'),
    (f'test {CONFIG} --show-dir notes.txt', '--show-dir notes.txt: .* not a folder'),
    (f'test {CONFIG} --data-root gone', 'there is no folder gone'),
    (f'check {CONFIG} --json notes.txt', 'notes.txt exists: .*pass --overwrite'),
    (f'infer data {CONFIG} --score-thr 30', "--score-thr: '30' is not a number from 0 to 1"),
    (f'infer data {CONFIG} --tile 16', "--tile: '16' is not 0 or an integer from 32"),
    (f'infer data {CONFIG} --tile 64 --overlap 1', "--overlap: '1' is not a number from 0 and"),
    (f'infer data {CONFIG} --overlap 0.3', '--overlap is for tiles: pass --tile too'),
    (f'infer data {CONFIG} --out data', '--out data is the folder of the images'),
    (f'infer data {CONFIG} --out found', 'found contains results of an earlier run'),
    (f'infer data {CONFIG} --out notes.txt', '--out notes.txt: .* not a folder'),
    (f'infer data {CONFIG} --show', '--show is for a video or a webcam'),
    (f'infer film.avi {CONFIG} --labels coco', '--labels coco is for images; film.avi is a video'),
    ('infer data net.onnx --device cpu', 'an exported file, without --cfg-options and --device'),
    (f'export {CONFIG} --out net.onnx', 'net.onnx exists: .*pass --overwrite'),
    (f'export {CONFIG} --out net.xml', 'net.bin exists'),
    (f'export {CONFIG} --out a.onnx --int8', '--int8 and --calibrate FOLDER belong together'),
    (f'export {CONFIG} --out a.onnx --size 0 64', "--size: '0' is not an integer from 1"),
    (f'export {CONFIG} --out a.pt2 --half', '--half and --calibrate are for ONNX and OpenVINO'),
    (f'visualize {CONFIG} data', 'data is a folder: name its images'),
    (f'visualize {CONFIG} film.avi', 'film.avi is not an image: add one'),
    (f'visualize {CONFIG} net.onnx film.avi --versus a b c', '--versus takes a checkpoint, a'),
    (f'visualize {CONFIG} net.onnx film.avi --versus gone.pth', 'there is no file gone.pth'),
    (
        f'visualize {CONFIG} net.onnx film.avi --out page',
        'page/index.html exists and is not a page',
    ),
    (f'visualize {CONFIG} net.onnx film.avi --channels -3', "'-3' is not an integer from 0"),
    ('report', 'expected the work dirs of runs, or --data'),
    ('report data --out notes.txt', 'notes.txt exists: .*pass --overwrite'),
    ('checkpoint convert net.onnx a.txt', 'a.txt: expected a name that ends in .safetensors'),
    ('checkpoint convert net.onnx start.pth', 'start.pth exists: .*pass --overwrite'),
    ('checkpoint publish net.onnx gone', 'gone is not a folder: create it'),
    ('complexity gone.py --shape 64 64', 'no config file gone.py'),
    ('complexity small --shape 0 64', "--shape: '0' is not an integer from 1"),
    ('demo notes.txt', 'notes.txt exists and is not a demo data set'),
    ('demo --seed -1', "--seed: '-1' is not an integer from 0"),
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'data').mkdir()
    (tmp_path / 'notes.txt').write_text('text')
    (tmp_path / 'data.yaml').write_text('names: [cell]')
    for name in ('film.avi', 'net.bin', 'net.onnx', 'net.pt2', 'page/index.html', 'start.pth'):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(bytes(10))
    (tmp_path / 'found').mkdir()
    (tmp_path / 'found' / 'predictions.json').write_text('{"format": "ptnt_mm predictions 1"}')
    return tmp_path


@pytest.mark.parametrize(('line', 'message'), WRONG)
def test_what_is_wrong_is_named(here: Path, capsys, line: str, message: str):
    name, *words = line.split()
    with suppress(SystemExit):  # of argparse
        assert run(name, words) == 1
    assert re.search(message, capsys.readouterr().err)


@pytest.mark.parametrize('project', ['cells.v2', 'cells'])
@pytest.mark.parametrize(
    ('line', 'message'),
    [('train {}', 'lacks train_dataloader'), ('new data copy --like {}', 'created by ptnt new')],
)
def test_what_is_there_passes(here: Path, capsys, line: str, message: str, project: str):
    """The next step reports what is in it."""
    (here / project).mkdir()
    (here / project / 'config.py').write_text('model = dict()')
    name, *words = line.format(project).split()
    assert run(name, words) == 1
    assert message in capsys.readouterr().err


def test_torch_is_not_imported_for_it(here: Path):
    code = f"""
import sys
from contextlib import suppress
PTNT_MM_REGISTERS_LATER = True
from ptnt_mm.workbench.cli.main import run
for name, *words in {[line.split() for line, _ in WRONG]}:
    with suppress(SystemExit):
        assert run(name, words) == 1
    assert 'torch' not in sys.modules, (name, words)
assert run('weights') == run('configs') == 0 and 'torch' not in sys.modules
"""
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 'Loading' not in done.stderr


def test_a_slow_start_is_announced_in_a_pipe(here: Path):
    """As a line of its own, which a log file keeps."""
    # Stands in for torch, so that nothing slow is imported.
    (here / 'torch.py').write_text('raise SystemExit')
    env = environment(PYTHONPATH=os.pathsep.join(map(str, (here, ROOT))))
    words = ['complexity', 'small', '--shape', '32', '32']
    command = [sys.executable, ROOT / 'tools' / 'ptnt', *words]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.stderr.startswith('Loading libraries ...\n') and 'Loading' not in done.stdout
