"""The comparison of configs: the order of its runs, finished runs, and the table."""

from pathlib import Path

import pytest
from forked import Forked
from logs import evaluation, write_log
from repository import ROOT

from ptnt_mm.workbench.config.read import read_config

from .workplace import CONFIG, load_tool

tool = load_tool('dev/compare_configs')


@pytest.fixture
def trained(monkeypatch) -> list[str]:
    """The runs that were started, as NAME/SEED; each leaves a log at once."""
    started: list[str] = []

    def train(words: list[str], **options) -> int:
        folder = Path(words[words.index('--work-dir') + 1])
        assert words[-3:] == ['--seed', folder.name.removeprefix('seed_'), '--overwrite']
        assert options['env']['OMP_NUM_THREADS'] == '1'
        started.append(f'{folder.parent.name}/{folder.name}')
        masks = 0.1 if folder.parent.name == 'b' else None
        write_log(folder, f'20260101_{len(started):06}', evaluation(5, 0.2 * len(started), masks))
        return 0

    monkeypatch.setattr(tool.subprocess, 'call', train)
    return started


def compare(work_dirs: Path, *seeds: int) -> int:
    words = ['a.py', 'b.py', '--seeds', *seeds, '--jobs', 1, '--work-dirs', work_dirs]
    return tool.main(list(map(str, words)))


def test_all_configs_run_with_a_seed_before_the_next_begins(tmp_path: Path, trained, capsys):
    assert compare(tmp_path, 0, 1) == 0
    assert trained == ['a/seed_0', 'b/seed_0', 'a/seed_1', 'b/seed_1']
    printed = capsys.readouterr().out
    assert printed.startswith('date ') and ', threads 1' in printed
    table = printed.split('\n\n')[1].splitlines()
    assert table[0] == '| config | seeds | box AP | mask AP | seconds of a run |'
    assert table[2] == '| a | 0, 1 | **40.0** (20.0, 60.0) |  | 0, 0 |'
    assert table[3] == '| b | 0, 1 | **60.0** (40.0, 80.0) | **10.0** (10.0, 10.0) | 0, 0 |'


def test_what_is_done_is_kept_and_what_was_interrupted_starts_over(tmp_path: Path, trained):
    compare(tmp_path, 0)
    (tmp_path / 'b' / 'seed_0' / 'outcome.json').unlink()
    trained.clear()
    compare(tmp_path, 0)
    assert trained == ['b/seed_0']


@pytest.mark.parametrize('name', ['peg', 'sinusoidal', 'none'])
def test_the_configs_of_positions_differ_in_that_alone(name: str):
    config = read_config(ROOT / 'tools' / 'dev' / 'positions' / f'{name}.py')
    own, demo = config.to_dict(), read_config(CONFIG).to_dict()
    assert own['model']['backbone'].pop('position') == name
    assert own == demo


@pytest.mark.parametrize('script', ['compare_configs', 'time_backbones', 'host_configs', 'peers'])
def test_it_starts_as_the_docs_start_it(script: str, tmp_path: Path):
    output = tmp_path / 'output.txt'
    done = Forked([f'tools/dev/{script}.py', '--help'], ROOT, output).wait()
    assert done == 0 and output.read_text().startswith('usage: '), output.read_text()
