"""The demo data set: correct annotations, repeatable, and never over foreign files."""

import importlib.util
import json
import shutil
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from pycocotools import mask as coco_mask
from pycocotools.coco import COCO

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.cli.main import run
from ptnt_mm.workbench.data.demo import dataset, photographs, scenes, sprites
from ptnt_mm.workbench.data.demo.dataset import DemoSpec, make_demo_data
from ptnt_mm.workbench.data.demo.scenes import CLASSES, compose

SPEC = DemoSpec(train=8, val=4, seed=0)


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp('data') / 'demo'
    make_demo_data(folder, SPEC)
    return folder


@pytest.fixture
def copy(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / 'demo'))


def contents(folder):
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob('*') if path.is_file()
    }


# ---- What is made


@pytest.mark.parametrize('split', ['train', 'val'])
def test_annotations_agree_with_pictures_and_semantic_maps(made, split):
    api = COCO(str(made / 'annotations' / f'instances_{split}.json'))
    assert [category['name'] for category in api.loadCats(api.getCatIds())] == list(CLASSES)
    assert len(api.imgs) == getattr(SPEC, split)
    for image in api.imgs.values():
        picture = cv2.imread(str(made / split / image['file_name']))
        assert picture.shape == (image['height'], image['width'], 3)
        name = Path(image['file_name']).with_suffix('.png').name
        semantic = cv2.imread(str(made / 'semantic' / split / name), cv2.IMREAD_UNCHANGED)
        assert semantic.dtype == np.uint8 and semantic.shape == picture.shape[:2]
        of_instances = np.zeros_like(semantic)
        for entry in api.imgToAnns[image['id']]:
            mask = api.annToMask(entry).astype(bool)
            assert not of_instances[mask].any(), 'two objects own one pixel'
            of_instances[mask] = entry['category_id']
            rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
            left, top, width, height = entry['bbox']
            assert (left, left + width - 1) == (columns[0], columns[-1])
            assert (top, top + height - 1) == (rows[0], rows[-1])
            assert entry['area'] == mask.sum() > 0
            assert entry['iscrowd'] == 0
        assert np.array_equal(of_instances, semantic)


def test_meta_explains_the_semantic_values(made):
    meta = json.loads((made / 'meta.json').read_text())
    assert meta['semantic_classes'] == ['background', *CLASSES]
    assert len(meta['semantic_palette']) == len(meta['semantic_classes'])
    assert meta['arguments'] == dict(train=8, val=4, seed=0)


@pytest.mark.parametrize('split', ['train', 'val'])
def test_all_classes_sizes_and_orientations_occur(split):
    seen_labels, seen_sizes, seen_shapes = set(), [0, 0, 0], set()
    for index in range(30):
        scene = compose(0, split, index)
        seen_labels |= set(scene.labels)
        seen_shapes.add(np.sign(scene.owner.shape[0] - scene.owner.shape[1]))
        for number in range(1, len(scene.labels) + 1):
            area = (scene.owner == number).sum()
            seen_sizes[int(area >= 32**2) + int(area >= 96**2)] += 1
    assert seen_labels == set(range(len(CLASSES)))
    assert min(seen_sizes) >= 6, seen_sizes
    assert {-1, 1} <= seen_shapes, 'landscape and portrait pictures'


@pytest.mark.parametrize('seed', range(4))
def test_no_object_is_hidden_or_cut_too_much(seed):
    table = scenes._Table(np.random.default_rng(seed), 'train')
    for _ in range(12):
        table.add_object(60)
        table.add_clutter()
    visible = np.bincount(table.owner.ravel(), minlength=len(table.labels) + 1)[1:]
    assert len(table.labels) >= 3
    assert (visible >= 0.7 * np.array(table.full_areas)).all()
    assert (visible < table.full_areas).any(), 'nothing occludes anything'


def test_equal_specs_give_equal_bytes(made, tmp_path):
    make_demo_data(tmp_path / 'again', SPEC)
    assert contents(tmp_path / 'again') == contents(made)


def test_a_picture_depends_on_seed_split_and_number_only(made, tmp_path):
    make_demo_data(tmp_path / 'fewer', DemoSpec(train=3, val=1, seed=0))
    third = 'train/000003.jpg'
    assert (tmp_path / 'fewer' / third).read_bytes() == (made / third).read_bytes()
    pictures = [compose(seed, 'train', 0).image for seed in (0, 1)]
    pictures.append(compose(0, 'val', 0).image)
    assert len({picture.tobytes() for picture in pictures}) == 3


def test_splits_share_no_background_and_no_coin():
    for train in photographs.BACKGROUNDS['train']:
        for val in photographs.BACKGROUNDS['val']:
            apart = train.region[2] <= val.region[0] or train.region[0] >= val.region[2]
            assert train.file != val.file or apart
    train, val = photographs.coins('train'), photographs.coins('val')
    assert (len(train), len(val)) == (18, 6)
    assert not {cutout.rgb.tobytes() for cutout in train} & {c.rgb.tobytes() for c in val}


def test_large_coins_are_not_enlarged_from_small_ones():
    smallest = [
        min(
            sprites.coin(np.random.default_rng(seed), 'train', size, np.zeros(2)).alpha.sum()
            for seed in range(20)
        )
        for size in (60, 61)
    ]
    assert smallest[1] > 1.2 * smallest[0]


# ---- Polygons


def decoded(mask):
    outlines = list(dataset.polygons(mask))
    return coco_mask.decode(coco_mask.merge(coco_mask.frPyObjects(outlines, *mask.shape)))


def test_polygons_cover_holes_single_pixels_and_lines():
    mask = np.zeros((24, 30), bool)
    mask[2:20, 2:20] = True
    mask[5:8, 5:8] = mask[10:15, 9:17] = False  # two holes
    mask[12, 12] = True  # an island in one
    mask[0, 29] = mask[23, :] = True  # a corner and a border line
    assert np.array_equal(decoded(mask), mask)


# ---- The folder


def test_up_to_date_folder_is_left_alone(made):
    before = (made / 'meta.json').stat().st_mtime_ns
    assert 'up to date' in make_demo_data(made, SPEC)
    assert (made / 'meta.json').stat().st_mtime_ns == before


def test_other_arguments_need_overwrite(copy):
    with pytest.raises(UserError, match=r"'seed': 0.*'seed': 5.*`overwrite=True`"):
        make_demo_data(copy, DemoSpec(1, 1, seed=5))
    assert make_demo_data(copy, DemoSpec(1, 1, seed=5), overwrite=True).startswith('Overwrote ')
    assert [path.name for path in (copy / 'train').iterdir()] == ['000001.jpg']
    assert [path.name for path in copy.parent.iterdir()] == ['demo']


def test_incomplete_folder_is_remade(copy, made):
    (copy / 'val' / '000002.jpg').unlink()
    message = '1 file(s) were missing, for example val/000002.jpg. Remade '
    assert make_demo_data(copy, SPEC).startswith(message)
    assert contents(copy) == contents(made)


def test_changed_files_need_overwrite(copy):
    (copy / 'annotations' / 'instances_val.json').write_text('{}')
    with pytest.raises(UserError, match='changed since .*instances_val.json.*`overwrite=True`'):
        make_demo_data(copy, SPEC)
    make_demo_data(copy, SPEC, overwrite=True)
    assert 'up to date' in make_demo_data(copy, SPEC)


def test_added_files_are_never_deleted(copy):
    (copy / 'notes.txt').write_text('mine')
    assert 'up to date' in make_demo_data(copy, SPEC)
    message = r'1 file\(s\) that were added to it, for example notes.txt'
    with pytest.raises(UserError, match=message):
        make_demo_data(copy, DemoSpec(1, 1), overwrite=True)
    assert (copy / 'notes.txt').read_text() == 'mine'


@pytest.mark.parametrize('meta', [None, '{"generator": "another"}', 'no json'])
def test_foreign_folder_is_refused(tmp_path, meta):
    (tmp_path / 'photo.jpg').write_bytes(b'mine')
    if meta is not None:
        (tmp_path / 'meta.json').write_text(meta)
    before = contents(tmp_path)
    with pytest.raises(UserError, match='is not a demo data set'):
        make_demo_data(tmp_path, SPEC, overwrite=True)
    assert contents(tmp_path) == before


@pytest.mark.parametrize('failure', [KeyboardInterrupt, RuntimeError])
def test_interrupted_run_leaves_the_old_folder_and_nothing_else(copy, monkeypatch, failure):
    before = contents(copy)

    encode, calls = cv2.imencode, count()

    def interrupted(suffix, *arguments):
        if next(calls) == 3:
            raise failure
        return encode(suffix, *arguments)

    monkeypatch.setattr(cv2, 'imencode', interrupted)
    with pytest.raises(failure):
        make_demo_data(copy, DemoSpec(4, 1), overwrite=True)
    assert contents(copy) == before
    assert [path.name for path in copy.parent.iterdir()] == ['demo']


# ---- Bad input


@pytest.mark.parametrize('flag', ['--train=-3', '--val=0', '--seed=-1', '--seed=x'])
def test_senseless_numbers_are_refused(flag: str, tmp_path, capsys):
    with pytest.raises(SystemExit):
        run('demo', [str(tmp_path / 'demo'), flag])
    assert repr(flag.partition('=')[2]) in capsys.readouterr().err


def test_missing_space_is_reported_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr('shutil.disk_usage', lambda path: SimpleNamespace(free=10))
    with pytest.raises(UserError, match=r'no space left for .*about 1 MB are needed'):
        make_demo_data(tmp_path / 'demo', DemoSpec(16, 4))
    assert not any(tmp_path.iterdir())


def test_missing_scikit_image_is_named(tmp_path, monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, 'find_spec', lambda name: None if name == 'skimage' else find_spec(name)
    )
    photographs.folder.cache_clear()
    with pytest.raises(UserError, match='pip install scikit-image'):
        make_demo_data(tmp_path / 'demo', SPEC)
    assert not any(tmp_path.iterdir())


# ---- The command


def test_command_makes_the_set_and_reports_errors(tmp_path, capsys):
    arguments = [str(tmp_path / 'demo'), '--train', '2', '--val', '1', '--seed', '3']
    assert run('demo', arguments) == 0
    assert '2 train and 1 val pictures, seed 3' in capsys.readouterr().out.replace('\n', ' ')
    assert run('demo', [*arguments[:-1], '4']) == 1
    assert 'Pass --overwrite' in capsys.readouterr().err
    assert run('demo', [*arguments[:-1], '4', '--overwrite']) == 0
