"""Shared parts of the command lines."""

from pathlib import Path

import pytest
from mmengine.config import Config

from ptnt_mm.workbench.cli.main import run
from ptnt_mm.workbench.cli.start import Parser
from ptnt_mm.workbench.engine import train as training


def refused(command: str, capsys, *words: str) -> str:
    """The last line of the error for a command line that cannot be parsed."""
    with pytest.raises(SystemExit) as caught:
        run(command, words)
    assert caught.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ('command', 'flag', 'near'),
    [
        ('train', '--pretraned', '--pretrained'),
        ('train', '--resum', '--resume'),
        ('train', '--workdir=x', '--work-dir'),
        ('train', '--cfg-option', '--cfg-options'),
        ('test', '--show_dir', '--show-dir'),
        ('infer', '--score_thr=0.5', '--score-thr'),
        ('infer', '--conf=0.5', '--score-thr'),
        ('new', '--imgsz', '--size'),
        ('train', '--weights', '--pretrained'),
        ('check', '--quik', '--quick'),
    ],
)
def test_a_misspelt_flag_names_the_nearest(capsys, command: str, flag: str, near: str):
    """Even if it causes another error first, such as a missing config."""
    for words in ((flag,), ('config.py', flag, 'x')):
        said = refused(command, capsys, *words)
        assert f"unknown flag '{flag.partition('=')[0]}': did you mean '{near}'?" in said


@pytest.mark.parametrize(
    ('command', 'flag', 'advice'),
    [
        ('train', '--conf', 'ptnt infer PHOTOS CONFIG --score-thr'),
        ('train', '--imgsz', 'ptnt new DATA PROJECT --size'),
        ('train', '--batch=8', '--cfg-options train_dataloader.batch_size=N'),
        ('check', '--lr0', '--cfg-options optim_wrapper.optimizer.lr=RATE'),
    ],
)
def test_flags_of_other_tools_for_another_command(capsys, command: str, flag: str, advice: str):
    name = flag.partition('=')[0]
    assert f"unknown flag '{name}': use {advice}" in refused(command, capsys, 'config.py', flag)


def test_flags_of_a_commands_parts(capsys):
    with pytest.raises(SystemExit):
        run('configs', ['copy', 'retinanet_ptnt_s_1x', 'folder', '--overwrit'])
    said = capsys.readouterr().err
    assert "unknown flag '--overwrit'" in said and '-h,' not in said.partition('error:')[2]


def test_what_comes_after_two_dashes_is_no_flag():
    parser = Parser('', 'tool')
    parser.add_argument('words', nargs='*')
    assert parser.parse_args(['--', '--name']).words == ['--name']


@pytest.mark.parametrize(
    ('flag', 'advice'),
    [
        ('--gpus', 'tools/dist_train.sh CONFIG 8'),
        ('--gpu-ids', 'torchrun'),
        ('--device', 'CUDA_VISIBLE_DEVICES=-1 the CPU'),
    ],
)
@pytest.mark.parametrize('command', ['train', 'test'])
def test_flags_of_other_tools_say_what_to_do_here(capsys, command: str, flag: str, advice: str):
    for words in (('config.py', flag, '2'), ('config.py', f'{flag}=2'), (flag,)):
        said = refused(command, capsys, *words)
        assert f'{flag}: ' in said and advice in said
    with pytest.raises(SystemExit, match='0'):
        run(command, ['--help'])
    assert flag not in capsys.readouterr().out


def test_flags_of_training_become_arguments(monkeypatch, tmp_path: Path):
    given = {}

    def stop(config: Config, work_dir: Path, **options: object) -> None:
        given.update(options, config=config, work_dir=work_dir)
        raise KeyboardInterrupt

    monkeypatch.setattr(training, 'train', stop)
    file = tmp_path / 'mine.py'
    file.write_text('')
    flags = ('--auto-scale-lr', '--deterministic', '--load-from', 'hf:me/whole', '--resume')
    words = (*flags, '--epochs', '3', '--seed=7', '--work-dir=run', '--pretrained=hf:me/backbone')
    assert run('train', [str(file), *words, '--cfg-options', 'sync_bn=mmcv']) == 130
    config, command = given.pop('config'), given.pop('command')
    assert config.sync_bn == 'mmcv' and command
    assert given == dict(
        work_dir=Path('run'),
        pretrained='hf:me/backbone',
        load_from='hf:me/whole',
        resume='auto',
        overwrite=False,
        epochs=3,
        amp=False,
        auto_scale_lr=True,
        sync_bn=False,
        log=None,
        seed=7,
        deterministic=True,
        launcher='none',
    )
