"""An intact demo set, its objects as images for classifiers, and copies of it to be damaged."""

import shutil
from pathlib import Path

import pytest

from demo.crops import make_crops
from ptnt_mm.workbench.data.demo.dataset import DemoSpec, make_demo_data

from .spoilt import Demo, MaskDemo


@pytest.fixture(scope='session')
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('data') / 'demo'
    make_demo_data(folder, DemoSpec(train=16, val=8))
    return folder


@pytest.fixture(scope='session')
def crops(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('crops') / 'crops'
    make_crops(made, folder)
    return folder


@pytest.fixture
def demo(made: Path, tmp_path: Path) -> Demo:
    return Demo(Path(shutil.copytree(made, tmp_path / 'demo')))


@pytest.fixture
def masks(made: Path, tmp_path: Path) -> MaskDemo:
    return MaskDemo(Path(shutil.copytree(made, tmp_path / 'demo')))
