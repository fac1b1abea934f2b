"""What the command lines of several tools have in common."""

import argparse

import pytest

from ptnt_mm.__main__ import main
from ptnt_mm.cli import parsers
from ptnt_mm.cli.arguments import Parser


def refused(parser: argparse.ArgumentParser, capsys, *words: str) -> str:
    """The last line of what is said to words that cannot be parsed."""
    with pytest.raises(SystemExit) as caught:
        parser.parse_args(words)
    assert caught.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ('make', 'flag', 'near'),
    [
        (parsers.train_parser, '--pretraned', '--pretrained'),
        (parsers.train_parser, '--resum', '--resume'),
        (parsers.train_parser, '--workdir=x', '--work-dir'),
        (parsers.train_parser, '--cfg-option', '--cfg-options'),
        (parsers.test_parser, '--show_dir', '--show-dir'),
        (parsers.infer_parser, '--score_thr=0.5', '--score-thr'),
        (parsers.check_parser, '--quik', '--quick'),
    ],
)
def test_a_misspelt_flag_names_the_nearest(capsys, make, flag: str, near: str):
    """Also where it leads to another error first, such as a missing config."""
    for words in ((flag,), ('config.py', flag, 'x')):
        said = refused(make(''), capsys, *words)
        assert f"unknown flag '{flag.partition('=')[0]}': did you mean '{near}'?" in said


def test_flags_of_a_commands_parts(capsys):
    with pytest.raises(SystemExit):
        main(['copy', 'retinanet_ptnt_s_1x', 'folder', '--overwrit'])
    assert "unknown flag '--overwrit'" in capsys.readouterr().err


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
@pytest.mark.parametrize('make', [parsers.train_parser, parsers.test_parser])
def test_flags_of_other_tools_say_what_to_do_here(capsys, make, flag: str, advice: str):
    for words in (('config.py', flag, '2'), ('config.py', f'{flag}=2'), (flag,)):
        said = refused(make(''), capsys, *words)
        assert f'{flag}: ' in said and advice in said
    assert flag not in make('').format_help()
