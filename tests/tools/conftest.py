"""A small data set and one short training, shared by the tests of the command lines."""

import pytest

from .workplace import LEARNING, LEARNING_MAPS, Training, Workplace


@pytest.fixture(scope='session')
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    pytest.importorskip('mmdet')
    place = Workplace(tmp_path_factory.mktemp('workplace'))
    place.run_afresh('make_demo_data.py', 'data/demo', '--train', 16, '--val', 6)
    return place


@pytest.fixture(scope='session')
def training(workplace: Workplace) -> Training:
    config = workplace.folder / 'learning.py'
    config.write_text(LEARNING)
    args = ('--work-dir', 'run', '--seed', 1, '--cfg-options', 'param_scheduler.0.end=4')
    done = workplace.run_afresh('train.py', config, *args)
    return Training(done.stdout, config, workplace.folder / 'run')


@pytest.fixture(scope='session')
def segmentation(workplace: Workplace) -> Training:
    pytest.importorskip('mmseg')
    config = workplace.folder / 'learning_maps.py'
    config.write_text(LEARNING_MAPS)
    done = workplace.run_afresh('train.py', config, '--work-dir', 'maps', '--seed', 1)
    return Training(done.stdout, config, workplace.folder / 'maps')
