"""Options are declared once: functions, their docstrings and the docs agree with them."""

import inspect
import re
from pathlib import Path

import pytest

from ptnt_mm import api
from ptnt_mm.utils.console import for_user
from ptnt_mm.workbench.cli.commands import COMMANDS
from ptnt_mm.workbench.cli.main import run
from ptnt_mm.workbench.data.demo.dataset import DemoSpec
from ptnt_mm.workbench.engine.modes import LOG_BACKENDS

OF_PYTHON = {'command', 'config_name', 'on_findings', 'on_line', 'settings', 'splits'}
"""Keyword arguments that are not options."""

FUNCTIONS = [command for command in COMMANDS.values() if command.keywords]


def function_of(command):
    return getattr(api, command.function or command.name)


@pytest.mark.parametrize('command', FUNCTIONS, ids=lambda command: command.name)
def test_functions_have_the_options_as_arguments(command):
    parameters = inspect.signature(function_of(command)).parameters
    expected = {
        option.name: inspect.Parameter.empty if option.required else option.default
        for option in command.keywords
    }
    assert {name: parameters[name].default for name in expected if name in parameters} == expected
    others = {name for name in parameters if parameters[name].default != inspect.Parameter.empty}
    assert others - set(expected) <= OF_PYTHON


@pytest.mark.parametrize('command', FUNCTIONS, ids=lambda command: command.name)
def test_docstrings_describe_each_argument_once(command):
    function = function_of(command)
    _, _, described = inspect.getdoc(function).partition('Args:\n')
    described, _, _ = described.partition('\n\n')
    for name in inspect.signature(function).parameters:
        assert f'\n{described}'.count(f'\n    {name}: ') == 1
    described = ' '.join(described.split()).casefold()
    for option in command.keywords:
        assert sentence(option).replace('`', '``').casefold() in described


def sentence(option) -> str:
    """The docstring of a keyword argument."""
    if isinstance(option.default, bool):
        return f'{option.name}: If {not option.default}, {option.about}.'
    choices = ' or '.join(', '.join(map(repr, option.choices)).rsplit(', ', 1))
    alone = '' if option.alone is None else f' ({option.alone!r})'
    return f'{option.name}: {option.about}' + (f': {choices}' if choices else '') + f'{alone}.'


def choices_of(command: str, name: str) -> list[str]:
    (option,) = (option for option in COMMANDS[command].keywords if option.name == name)
    return list(option.choices)


def test_choices_are_those_that_there_are(tmp_path: Path, capsys: pytest.CaptureFixture):
    """They are listed twice, because the table itself needs torch."""
    assert choices_of('train', 'log') == list(LOG_BACKENDS)
    (tmp_path / 'x.pth').write_bytes(bytes(600))
    words = ['demo_retinanet_ptnt_ti', str(tmp_path / 'x.pth'), '--out', 'x.txt']
    assert run('export', words) == 1
    said = capsys.readouterr().err.partition('ends in')[2]
    assert re.findall(r'for ([\w-]+)', said) == choices_of('export', 'format')


def test_the_demo_set_has_the_same_defaults():
    asked = {option.name: option.default for option in COMMANDS['demo'].words}
    assert DemoSpec(asked['train'], asked['val'], asked['seed']) == DemoSpec()


@pytest.mark.parametrize(
    ('text', 'flags'),
    [
        ('`work_dir`', '--work-dir'),
        ('`score_thr=0.3`: too low', '--score-thr 0.3: too low'),
        ('or `overwrite=True`', 'or --overwrite'),
        ('`size=(3, 4)`', '--size 3 4'),
        ('`resume=auto`, `resume=a.pth`', '--resume, --resume a.pth'),
        ('`draw=False`, `thorough=False`', '--no-draw, --quick'),
        ('`options` a.b: no', '--cfg-options a.b: no'),
        ('`model.backbone.with_cp=True`', '--cfg-options model.backbone.with_cp=True'),
        ('run `ptnt weights`, `A`, `a` and `a.py`', 'run `ptnt weights`, `A`, `a` and `a.py`'),
    ],
)
def test_commands_print_flags_for_arguments(text: str, flags: str):
    run('completion', ['bash'])
    assert for_user(text) == flags
