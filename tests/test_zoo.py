"""Finding, reading and copying the configs that come with the package."""

import subprocess
import sys
from pathlib import Path

import pytest
from mmengine.config import Config

import ptnt_mm
from ptnt_mm import zoo
from ptnt_mm.utils.errors import UserError

pytest.importorskip('mmdet')


def test_get_config_reads_a_config_with_all_its_bases():
    config = ptnt_mm.get_config('retinanet_ptnt_s_1x')
    assert config.model.backbone.type == 'PyramidTNT'
    assert config.model.bbox_head.num_classes == 80
    assert config.custom_imports.imports == ['ptnt_mm']


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UserError, match="unknown config 'retinanet_ptnt_s1x'.*retinanet_ptnt_s_1x"):
        ptnt_mm.get_config('retinanet_ptnt_s1x')


@pytest.mark.parametrize('name', zoo.config_names())
def test_a_copied_config_equals_the_original(name: str, tmp_path: Path):
    files = zoo.copy_config(name, tmp_path)
    assert files[0] == tmp_path / f'{name}.py'
    copied, original = Config.fromfile(files[0]), ptnt_mm.get_config(name)
    assert copied.to_dict() == original.to_dict()


def test_a_copy_keeps_what_was_edited(tmp_path: Path):
    files = zoo.copy_config('retinanet_ptnt_s_1x', tmp_path)
    zoo.copy_config('retinanet_ptnt_s_1x', tmp_path)  # the same again is no conflict
    files[-1].write_text('my_own = 1\n')
    with pytest.raises(UserError, match='exists and differs'):
        zoo.copy_config('retinanet_ptnt_s_1x', tmp_path)
    assert files[-1].read_text() == 'my_own = 1\n'


def test_a_folder_that_is_a_file(tmp_path: Path):
    (tmp_path / 'file').touch()
    with pytest.raises(UserError, match='cannot be written to'):
        zoo.copy_config('retinanet_ptnt_s_1x', tmp_path / 'file')


@pytest.mark.parametrize('name', ['../setup', '_base_/default_runtime', ''])
def test_names_are_no_paths(name: str):
    with pytest.raises(UserError, match='unknown config'):
        zoo.config_path(name)


def test_command_line(tmp_path: Path):
    command = [sys.executable, '-m', 'ptnt_mm']
    listed = subprocess.run([*command, 'list'], capture_output=True, text=True, cwd=tmp_path)
    assert listed.stdout.split() == zoo.config_names()
    copy = [*command, 'copy', 'retinanet_ptnt_x_1x', str(tmp_path)]
    failed = subprocess.run(copy, capture_output=True, text=True, cwd=tmp_path)
    assert failed.returncode == 1
    assert failed.stderr.startswith("error: unknown config 'retinanet_ptnt_x_1x'")
