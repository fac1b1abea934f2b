"""The demo set's objects as a classifier's pictures."""

import json
from pathlib import Path

import pytest
from PIL import Image

from demo.crops import make_crops
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.data.demo.dataset import DemoSpec, make_demo_data

from .workplace import load_tool


@pytest.fixture(scope='module')
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('data') / 'demo'
    make_demo_data(folder, DemoSpec(train=3, val=2))
    return folder


@pytest.fixture
def crops(demo: Path, tmp_path: Path) -> Path:
    assert load_tool('make_demo_crops').main([str(demo), str(tmp_path / 'crops')]) == 0
    return tmp_path / 'crops'


def test_every_object_is_a_square_picture_in_its_classs_folder(demo: Path, crops: Path):
    for split in ('train', 'val'):
        content = json.loads((demo / 'annotations' / f'instances_{split}.json').read_text())
        names = {one['id']: one['name'] for one in content['categories']}
        files = {one['id']: one['file_name'] for one in content['images']}
        for one in content['annotations']:
            name = f'{Path(files[one["image_id"]]).stem}_{one["id"]}.jpg'
            with Image.open(crops / split / names[one['category_id']] / name) as image:
                width, height = image.size
                assert width == height >= max(one['bbox'][2:]) - 1 or width == height >= 180
        assert len(list((crops / split).rglob('*.jpg'))) == len(content['annotations'])


def test_crops_are_made_once_and_never_over_other_files(demo: Path, crops: Path, tmp_path: Path):
    assert make_crops(demo, crops).endswith('is up to date.')
    other = tmp_path / 'other'
    make_demo_data(other, DemoSpec(train=2, val=2, seed=1))
    with pytest.raises(UserError, match='crops of another demo set: pass --overwrite'):
        make_crops(other, crops)
    assert make_crops(other, crops, overwrite=True).startswith('Made')
    (tmp_path / 'mine').mkdir()
    with pytest.raises(UserError, match='contains no crops of a demo set: choose another'):
        make_crops(demo, tmp_path / 'mine', overwrite=True)
    with pytest.raises(UserError, match='make_demo_data.py .*nowhere'):
        make_crops(tmp_path / 'nowhere', tmp_path / 'new')
