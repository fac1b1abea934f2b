"""The demo set's objects as a classifier's pictures, and the picture of its confusions."""

import json
from pathlib import Path

import pytest
from drawn_figures import catch_figures
from PIL import Image

from demo import confusion
from demo.confusion import draw_confusion
from demo.crops import make_crops
from ptnt_mm.demo.dataset import DemoSpec, make_demo_data
from ptnt_mm.inference.results import FORMAT
from ptnt_mm.utils.errors import UserError


@pytest.fixture(scope='module')
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('data') / 'demo'
    make_demo_data(folder, DemoSpec(train=3, val=2))
    return folder


@pytest.fixture
def crops(demo: Path, tmp_path: Path) -> Path:
    make_crops(demo, tmp_path / 'crops')
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
    with pytest.raises(UserError, match='crops of another demo set: give --overwrite'):
        make_crops(other, crops)
    assert make_crops(other, crops, overwrite=True).startswith('Made')
    (tmp_path / 'mine').mkdir()
    with pytest.raises(UserError, match='contains no crops of a demo set: choose another'):
        make_crops(demo, tmp_path / 'mine', overwrite=True)
    with pytest.raises(UserError, match='make_demo_data.py .*nowhere'):
        make_crops(tmp_path / 'nowhere', tmp_path / 'new')


def predicted(folder: Path, guesses: dict[str, tuple[str, float]]) -> Path:
    images = [
        dict(file=file, classes=[dict(label=label, index=0, score=score)])
        for file, (label, score) in guesses.items()
    ]
    file = folder / 'predictions.json'
    file.write_text(json.dumps(dict(format=FORMAT, images=images)))
    return file


def test_mistakes_are_counted_and_the_surest_come_first(tmp_path: Path, monkeypatch):
    guesses = {
        'ball/1.jpg': ('ball', 0.9),
        'ball/2.jpg': ('cup', 0.6),
        'cup/1.jpg': ('ball', 0.8),
        'cup/2.jpg': ('cup', 0.5),
    }
    for name in guesses:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new('RGB', (20, 20)).save(tmp_path / name)
    figures = catch_figures(monkeypatch, confusion)
    out = draw_confusion(predicted(tmp_path, guesses), tmp_path, tmp_path / 'confusion.png')
    assert out.read_bytes().startswith(b'\x89PNG')
    table, *mistakes = figures[0].axes
    assert [text.get_text() for text in table.texts] == ['1', '1', '1', '1']
    headings = [axes.get_title() for axes in mistakes]
    assert headings == ['cup, as ball 80 %', 'ball, as cup 60 %']
    assert figures[0].texts[0].get_text().startswith('50.0 % of 4 pictures')


@pytest.mark.parametrize('content', ['{', '[]', '{"format": "x", "images": []}'])
def test_what_holds_no_predictions_of_a_classifier_is_refused(tmp_path: Path, content: str):
    (tmp_path / 'predictions.json').write_text(content)
    with pytest.raises(UserError, match='contains no predictions of a classifier'):
        draw_confusion(tmp_path / 'predictions.json', tmp_path, tmp_path / 'a.png')
