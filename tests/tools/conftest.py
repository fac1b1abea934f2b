"""A small data set and a short run for each host, shared by the tests of the commands.

All processes of a run of the suite share them: the first that asks makes them, each takes a copy.
"""

import shutil
from pathlib import Path

import pytest
from filelock import FileLock

from .workplace import LEARNING, LEARNING_MAPS, Training, Workplace


@pytest.fixture(scope='session')
def shared(common: Path) -> Workplace:
    return Workplace(common)


def take_copy(name: str, shared: Workplace, workplace: Workplace, *command: object) -> str:
    """Run a command once, copy its folder, and return its output."""
    folder = shared.folder / name
    output = folder.with_suffix('.txt')
    with FileLock(folder.with_suffix('.lock')):
        if not output.exists():
            output.write_text(shared.run(*command).stdout)
    shutil.copytree(folder, workplace.folder / name)
    return output.read_text()


@pytest.fixture(scope='session')
def workplace(shared: Workplace, tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    place = Workplace(tmp_path_factory.mktemp('workplace'))
    command = ('make_demo_data.py', 'data/demo', '--train', 20, '--val', 6)
    take_copy('data', shared, place, *command)
    return place


@pytest.fixture(scope='session')
def training(workplace: Workplace, shared: Workplace) -> Training:
    config = workplace.folder / 'learning.py'
    config.write_text(LEARNING)
    args = ('--work-dir', 'run', '--seed', 1, '--cfg-options', 'param_scheduler.0.end=4')
    output = take_copy('run', shared, workplace, 'train.py', config, *args)
    return Training(output, config, workplace.folder / 'run')


@pytest.fixture(scope='session')
def segmentation(workplace: Workplace, shared: Workplace) -> Training:
    config = workplace.folder / 'learning_maps.py'
    config.write_text(LEARNING_MAPS)
    args = ('--work-dir', 'maps', '--seed', 1)
    output = take_copy('maps', shared, workplace, 'train.py', config, *args)
    return Training(output, config, workplace.folder / 'maps')
