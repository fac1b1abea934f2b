"""Finding, reading and copying the configs that come with the package."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from mmengine.config import Config

import ptnt_mm
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.versions import provider
from ptnt_mm.workbench.config import zoo
from ptnt_mm.workbench.config.read import read_config
from ptnt_mm.workbench.config.zoo import config_from_file, config_path, get_config


def test_get_config_reads_a_config_with_all_its_bases():
    config = ptnt_mm.get_config('retinanet_ptnt_s_1x')
    assert config.model.backbone.type == 'PyramidTNT'
    assert config.model.bbox_head.num_classes == 80
    assert 'ptnt_mm' in config.custom_imports.imports


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UserError, match="unknown config 'retinanet_ptnt_s1x'.*retinanet_ptnt_s_1x"):
        ptnt_mm.get_config('retinanet_ptnt_s1x')


@pytest.fixture(scope='module')
def copies(tmp_path_factory) -> Path:
    """A folder with copies of all configs."""
    folder = tmp_path_factory.mktemp('copies')
    for name in zoo.config_names():
        assert zoo.copy_config(name, folder)[0] == folder / f'{name}.py'
    return folder


def test_no_base_of_a_copy_is_missing(copies: Path):
    for file in copies.rglob('*.py'):
        for base in Config._get_base_files(file):
            assert '::' in base or (file.parent / base).is_file(), f'{file} lacks {base}'


@pytest.mark.parametrize(
    'name',
    [
        'retinanet_ptnt_s_3x_ms',
        'upernet_ptnt_b_160k_ade20k',
        'demo_mask_rcnn_ptnt_ti',
        'custom_cls',
    ],
)
def test_a_copied_config_equals_the_original(name: str, copies: Path):
    copied = config_from_file(copies / f'{name}.py')
    assert copied.to_dict() == ptnt_mm.get_config(name).to_dict()


def test_a_copy_keeps_what_was_edited(tmp_path: Path):
    files = zoo.copy_config('retinanet_ptnt_s_1x', tmp_path)
    zoo.copy_config('retinanet_ptnt_s_1x', tmp_path)  # copying the same again is no conflict
    files[-1].write_text('my_own = 1\n')
    with pytest.raises(UserError, match='exists and differs'):
        zoo.copy_config('retinanet_ptnt_s_1x', tmp_path)
    assert files[-1].read_text() == 'my_own = 1\n'


def test_a_folder_that_is_a_file(tmp_path: Path):
    (tmp_path / 'file').touch()
    with pytest.raises(UserError, match='cannot be written to'):
        zoo.copy_config('retinanet_ptnt_s_1x', tmp_path / 'file')


@pytest.mark.parametrize('path', ['my_configs/{}.py', 'configs/_base_/{}.py', 'configs/no/{}.py'])
def test_a_path_elsewhere_is_no_config_of_the_package(path: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(zoo.config_root().parent)
    with pytest.raises(UserError, match="did you mean 'custom_coco'"):
        read_config(path.format('custom_coco'))


@pytest.mark.parametrize('name', ['../setup', '_base_/default_runtime', ''])
def test_names_are_no_paths(name: str):
    with pytest.raises(UserError, match='unknown config'):
        zoo.config_path(name)


@pytest.mark.parametrize(
    'name',
    ['retinanet_ptnt_s_1x', 'detr_r50_peg_50e', 'upernet_ptnt_s_80k_cityscapes', 'custom_cls'],
)
def test_bases_found_by_path_are_those_of_the_metafiles(name: str):
    if 'upernet' in name and provider('mmsegmentation') != 'mmsegmentation':
        pytest.skip('the engine of the forks does not find the bases of their mmseg')
    assert get_config(name).to_dict() == Config.fromfile(config_path(name)).to_dict()


def test_a_base_that_no_host_has_is_an_error(tmp_path: Path):
    file = tmp_path / 'mine.py'
    file.write_text("_base_ = 'mmdet::retinanet/no_such_config.py'\n")
    with pytest.raises(OSError, match='no_such_config'):
        config_from_file(file)
    assert Config._get_cfg_path.__module__ == 'mmengine.config.config', "MMEngine's own is back"


def test_reads_that_overlap_leave_mmengine_as_it_was(monkeypatch: pytest.MonkeyPatch):
    find_base = Config._get_cfg_path
    monkeypatch.setattr(Config, 'fromfile', lambda seconds: time.sleep(float(seconds)))
    with ThreadPoolExecutor() as threads:
        list(threads.map(config_from_file, ('0.05', '0.1')))
    assert Config._get_cfg_path is find_base
