"""The command ``ptnt``: dispatch and completion."""

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from ranks import second_of_two
from repository import ROOT
from toy import log_of, quick, toy_config

from ptnt_mm.workbench.cli import commands
from ptnt_mm.workbench.cli.commands import COMMANDS
from ptnt_mm.workbench.cli.main import main
from ptnt_mm.workbench.cli.start import command_line
from ptnt_mm.workbench.engine import train as training

TOOLS = ROOT / 'tools'


@pytest.fixture
def ptnt(monkeypatch):
    """Run a command line in this process."""

    def run(*words: str) -> int:
        monkeypatch.setattr(sys, 'argv', ['/somewhere/ptnt', *words])
        return main()

    return run


def help_of(tool: str, *words: str) -> str:
    """Output of a tool's ``--help``, which imports no torch and no MMEngine; ptnt's no NumPy."""
    command = [sys.executable, '-X', 'importtime', TOOLS / tool, *words, '--help']
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert 'argparse' in done.stderr
    heavy = ('torch', 'mmengine', *(['numpy'] if tool == 'ptnt' else []))
    assert not any(name in done.stderr for name in heavy)
    return ' '.join(done.stdout.split())  # a long name has a separate line


def test_the_help_lists_all_commands_and_does_not_wait_for_torch():
    said = help_of('ptnt')
    for name, command in COMMANDS.items():
        assert f' {name} {command.title}' in said


@pytest.mark.parametrize('name', COMMANDS)
def test_help_of_a_command_has_an_example_and_does_not_wait_for_torch(name: str):
    said = help_of('ptnt', name)
    assert said.startswith(f'usage: ptnt {name} ') and said.count(f'ptnt {name} ') > 1


@pytest.mark.parametrize('tool', sorted(path.name for path in TOOLS.glob('*.py')))
def test_help_of_a_script_does_not_wait_for_torch(tool: str):
    assert help_of(tool).startswith(f'usage: {tool} ')


@pytest.mark.parametrize('words', [('trian',), ('train',), ('configs', 'copy', 'one')])
def test_a_wrong_command_line_is_status_2(ptnt, capsys, words: tuple[str, ...]):
    with pytest.raises(SystemExit, match='2'):
        ptnt(*words)
    assert capsys.readouterr().err.startswith('usage: ptnt')


def test_without_a_command_the_known_ones_are_listed(ptnt, capsys):
    assert ptnt() == 2
    assert 'show what is installed' in capsys.readouterr().err


def test_an_unknown_command_names_the_known_ones(ptnt, capsys):
    for word, meant in (('trian', 'train'), ('predict', 'infer'), ('val', 'test')):
        with pytest.raises(SystemExit):
            ptnt(word)
        said = capsys.readouterr().err
        assert f'unknown command {word!r}: did you mean {meant!r}?' in said


def test_a_launcher_alone_is_answered_with_the_whole_command(ptnt, monkeypatch, capsys):
    monkeypatch.delenv('RANK', raising=False)
    assert ptnt('train', 'demo_gfl_lite0', '--seed', '1', '--launcher', 'pytorch') == 1
    words = (
        'torchrun --nproc_per_node 8 -m ptnt_mm train demo_gfl_lite0 --seed 1 --launcher pytorch'
    )
    assert words in ' '.join(capsys.readouterr().err.split())


def test_list_and_copy_are_short_for_parts_of_configs(ptnt, capsys, tmp_path: Path):
    assert ptnt('list') == ptnt('configs', 'list') == 0
    names = capsys.readouterr().out.splitlines()
    half = len(names) // 2
    assert names == names[:half] * 2 and 'retinanet_ptnt_s_1x' in names
    assert ptnt('copy', 'retinanet_ptnt_s_1x', str(tmp_path)) == 0
    files = capsys.readouterr().out.splitlines()
    assert files[0] == str(tmp_path / 'retinanet_ptnt_s_1x.py') and len(files) > 1
    assert all(Path(file).is_file() for file in files)


def test_configs_are_listed_in_groups(ptnt, capsys):
    assert ptnt('configs') == 0
    *groups, _, hint = capsys.readouterr().out.splitlines()
    assert 'configs list GROUP' in hint
    counts = {name: int(number) for name, number, *_ in map(str.split, groups)}
    assert all('  ' in line for line in groups)
    for group, count in counts.items():
        assert ptnt('configs', 'list', group) == 0
        assert len(capsys.readouterr().out.splitlines()) == count
    assert ptnt('configs', 'list', 'yolo') == 1
    choices = capsys.readouterr().err.partition('no group yolo: choose from ')[2]
    assert choices.strip().split(', ') == [*counts]


def test_commands_have_the_names_of_their_modules():
    names = (module.name for module in pkgutil.iter_modules(commands.__path__))
    assert sorted(COMMANDS) == [name.replace('_', '-') for name in names]


def test_a_library_that_is_missing_is_one_line(ptnt, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, 'ptnt_mm.workbench.engine.train', None)
    with pytest.raises(
        SystemExit, match='import of ptnt_mm.workbench.engine.train .*ptnt doctor shows'
    ):
        ptnt('train', 'demo_gfl_lite0')
    monkeypatch.setitem(sys.modules, 'ptnt_mm.workbench.cli.start', None)
    with pytest.raises(SystemExit, match='Install what this command needs'):
        ptnt('train', 'config.py')


@pytest.mark.parametrize(
    ('command', 'printed'),
    [(name, 'atexit\nclosed\n') for name in ('train', 'pretrain')] + [('infer', 'atexit\n')],
)
def test_only_commands_that_run_hooks_end_as_python_does(command: str, printed: str):
    """Their objects may write their last lines when they are deleted."""
    script = f"""
import atexit, sys
PTNT_MM_REGISTERS_LATER = True
from ptnt_mm.workbench.cli.main import leave

class Log:
    def __del__(self):
        sys.__stdout__.write('closed\\n')

sys.argv = ['ptnt {command}']
log = Log()
atexit.register(print, 'atexit')
leave(3)
"""
    done = subprocess.run([sys.executable, '-c', script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, printed), done.stderr


def test_a_command_can_be_repeated(ptnt, monkeypatch, tmp_path: Path):
    """The first words of the command line depend on how it was started."""
    monkeypatch.chdir(tmp_path)
    quick(toy_config('run', epochs=1)).dump('my config.py')
    assert ptnt('train', 'my config.py', '--seed', '5') == 0
    assert f"Command: ptnt train 'my config.py' --seed 5 in {tmp_path}\n" in log_of(Path('run'))
    monkeypatch.setattr(sys, 'argv', ['tools/train.py', 'config.py'])
    assert command_line() == (Path(sys.executable).name, 'tools/train.py', 'config.py')


@pytest.mark.parametrize(
    ('command', 'launcher', 'expected'),
    [
        ('ptnt train c.py', 'none', 'ptnt train c.py --resume'),
        ('python tools/train.py c.py', 'none', 'python tools/train.py c.py --resume'),
        ('ptnt train c.py', 'slurm', '(your launcher) -m ptnt_mm train c.py --resume'),
        ('python tools/train.py c.py', 'mpi', '(your launcher) tools/train.py c.py --resume'),
    ],
)
def test_a_stopped_training_says_how_to_continue(
    tmp_path: Path, command: str, launcher: str, expected: str
):
    advice = training._how_to_continue(tmp_path, (*command.split(), '--overwrite'), None, launcher)
    assert str(tmp_path) in advice and advice.endswith(f'start again with\n    {expected}')


def test_only_the_value_of_resume_is_dropped(tmp_path: Path):
    command = ('ptnt', 'train', 'c.py', '--load-from', 'x.pth', '--resume', 'x.pth')
    advice = training._how_to_continue(tmp_path, command, 'x.pth', 'none')
    assert advice.endswith('ptnt train c.py --load-from x.pth --resume')


def test_only_the_first_process_reports_ctrl_c(tmp_path: Path):
    explained = training._interruption_explained(tmp_path, (), None, 'pytorch')
    with second_of_two(), pytest.raises(SystemExit, match='^130$'), explained:
        raise KeyboardInterrupt


# ---- Completion


def test_bash_completes_commands_flags_choices_configs_and_files(ptnt, capsys, tmp_path: Path):
    assert ptnt('completion', 'bash') == 0
    (tmp_path / 'epoch_1.pth').touch()
    (tmp_path / 'retinanet_of_mine.py').touch()
    expected = {
        'ptnt tr': {'train'},
        'ptnt checkpoint ': {'inspect', 'convert', 'publish'},
        'ptnt configs copy demo_ret': {'demo_retinanet_ptnt_ti'},
        'ptnt train --res': {'--resume'},
        'ptnt train x.py --launcher p': {'pytorch'},
        'ptnt train retinanet_o': {'retinanet_of_mine.py'},
        'ptnt test retinanet_ptnt_s_1x_a': {'retinanet_ptnt_s_1x_amp'},
        'ptnt test retinanet_ptnt_s_1x e': {'epoch_1.pth'},
        'ptnt train x.py --cfg-options a=1 --overw': {'--overwrite'},
        'ptnt check x.py --json e': {'epoch_1.pth'},
        'ptnt mmcv-ops i': {'install'},
    }
    # The last word of each is completed: an empty one after a space.
    lines = '\n'.join(f"offer {line}''" for line in expected)
    script = f"""
{capsys.readouterr().out}
offer() {{ COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shtab_ptnt; echo "${{COMPREPLY[*]}}"; }}
{lines}
"""
    done = subprocess.run(['bash'], input=script, capture_output=True, text=True, cwd=tmp_path)
    assert [set(line.split()) for line in done.stdout.splitlines()] == list(expected.values())


@pytest.mark.parametrize('shell', ['zsh', 'fish'])
def test_other_shells_get_commands_flags_and_configs(ptnt, capsys, shell: str):
    assert ptnt('completion', shell) == 0
    script = capsys.readouterr().out
    for word in ('mmcv-ops', 'auto-scale-lr', 'inspect', 'demo_retinanet_ptnt_ti'):
        assert word in script
