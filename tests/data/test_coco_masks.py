"""Masks out of COCO's files, compared with the demo set's own and with hand-drawn ones."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip('pycocotools')

from pycocotools import mask as coco

from demo.dataset import PALETTE, DemoSpec, make
from ptnt_mm.data.coco_masks import draw_mask, run_lengths, write_masks
from ptnt_mm.utils.errors import UserError

IMAGE = dict(id=1, file_name='a.jpg', height=6, width=8)
LABELS = {7: 1, 9: 2}
CATEGORIES = [dict(id=7, name='ball'), dict(id=9, name='cup')]


def _rectangle(left: int, top: int, right: int, bottom: int) -> list[list[float]]:
    return [[left, top, right, top, right, bottom, left, bottom]]


def _object(number: int, category: int, mask: Any, **others: object) -> dict:
    return dict(id=number, image_id=1, category_id=category, segmentation=mask, **others)


def _file(folder: Path, **changes: Any) -> Path:
    content = dict(
        images=[IMAGE],
        annotations=[_object(1, 7, _rectangle(0, 0, 4, 4))],
        categories=CATEGORIES,
    )
    file = folder / 'instances.json'
    file.write_text(json.dumps({**content, **changes}))
    return file


def _values(file: Path) -> np.ndarray:
    return np.array(Image.open(file))


def test_masks_of_the_demo_set_are_its_semantic_maps(tmp_path: Path):
    demo = tmp_path / 'demo'
    make(demo, DemoSpec(train=12, val=1))
    names = write_masks(demo / 'annotations' / 'instances_train.json', tmp_path / 'masks')
    assert names == ('background', 'ball', 'coin', 'crate', 'cup')
    maps = sorted((demo / 'semantic' / 'train').iterdir())
    assert [file.name for file in maps] == sorted(
        p.name for p in (tmp_path / 'masks').glob('*.png')
    )
    assert (tmp_path / 'masks' / 'mask_classes.txt').read_text().splitlines() == list(names)
    for file in maps:
        # Their polygons are those of what is visible, and cover it to the pixel.
        assert (_values(tmp_path / 'masks' / file.name) == _values(file)).all()


def test_masks_have_colours_and_mmseg_reads_their_indices(tmp_path: Path):
    transforms = pytest.importorskip('mmseg.datasets.transforms')
    crowd = _object(2, 9, _rectangle(6, 0, 8, 6), iscrowd=1)
    annotations = [_object(1, 7, _rectangle(0, 0, 4, 4)), crowd]
    write_masks(_file(tmp_path, annotations=annotations), tmp_path / 'masks')
    file = tmp_path / 'masks' / 'a.png'
    image = Image.open(file)
    assert image.mode == 'P'
    shown = np.array(image.convert('RGB'))
    assert [tuple(shown[0, x]) for x in (5, 0, 7)] == [PALETTE[0], PALETTE[1], (255, 255, 255)]
    results = dict(seg_map_path=str(file), reduce_zero_label=False, seg_fields=[])
    labels = transforms.LoadAnnotations()(results)['gt_seg_map']
    assert sorted(np.unique(labels)) == [0, 1, 255]
    assert (labels[:4, :4] == 1).all() and (labels[:, 6:] == 255).all()


@pytest.mark.parametrize('turned', [False, True])
def test_small_objects_are_drawn_over_large_ones_whatever_their_order(turned: bool):
    small, large = _rectangle(1, 1, 3, 3), _rectangle(0, 0, 8, 6)
    objects = [_object(1, 7, small), _object(2, 9, large)]
    pixels = draw_mask(IMAGE, objects[::-1] if turned else objects, LABELS)
    assert (pixels[1:3, 1:3] == 1).all() and (pixels == 2).sum() == 48 - 4


def test_objects_are_drawn_over_crowds():
    crowd = _object(1, 7, _rectangle(0, 0, 2, 2), iscrowd=1)
    pixels = draw_mask(IMAGE, [_object(2, 9, _rectangle(0, 0, 8, 3)), crowd], LABELS)
    assert (pixels[:3] == 2).all() and not (pixels == 255).any()
    assert (draw_mask(IMAGE, [crowd], LABELS)[:2, :2] == 255).all()


@pytest.mark.parametrize('compressed', [False, True])
def test_run_lengths_are_drawn(compressed: bool):
    wanted = np.zeros((6, 8), np.uint8)
    wanted[2:5, 3] = 1
    if compressed:
        mask = coco.encode(np.asfortranarray(wanted))
        mask['counts'] = mask['counts'].decode()
    else:
        # Column by column: three columns and two rows of nothing, three pixels, the rest.
        mask = dict(size=[6, 8], counts=[20, 3, 25])
    assert (draw_mask(IMAGE, [_object(1, 7, mask)], LABELS) == wanted).all()


def test_an_object_of_several_polygons_is_one():
    mask = [*_rectangle(0, 0, 2, 2), *_rectangle(4, 0, 6, 2)]
    pixels = draw_mask(IMAGE, [_object(1, 9, mask)], LABELS)
    assert (pixels == 2).sum() == 8


def test_an_image_without_objects_is_background():
    assert not draw_mask(IMAGE, [], LABELS).any()


def test_indices_follow_the_order_of_the_categories(tmp_path: Path):
    file = _file(tmp_path, categories=CATEGORIES[::-1])
    assert write_masks(file, tmp_path / 'masks') == ('background', 'cup', 'ball')
    assert _values(tmp_path / 'masks' / 'a.png')[0, 0] == 2


def test_indices_follow_the_order_that_is_asked_for(tmp_path: Path):
    names = write_masks(_file(tmp_path), tmp_path / 'masks', classes=['cup', 'ball'])
    assert names == ('background', 'cup', 'ball')
    assert _values(tmp_path / 'masks' / 'a.png')[0, 0] == 2


@pytest.mark.parametrize(
    ('classes', 'words'),
    [
        (['ball', 'cups'], "--classes: unknown category 'cups': did you mean 'cup'"),
        (['background', 'ball', 'cup'], "unknown category 'background'"),
        (['ball'], '--classes lacks categories of .*instances.json: cup. Name all of them'),
        (['ball', 'cup', 'ball'], '--classes names some twice: ball'),
    ],
)
def test_an_order_names_every_category_once(tmp_path: Path, classes: list[str], words: str):
    with pytest.raises(UserError, match=words):
        write_masks(_file(tmp_path), tmp_path / 'masks', classes=classes)
    assert not (tmp_path / 'masks').exists()


def test_folders_side_by_side_have_one_order(tmp_path: Path):
    masks = tmp_path / 'masks'
    write_masks(_file(tmp_path), masks / 'train')
    turned = _file(tmp_path, categories=CATEGORIES[::-1])
    with pytest.raises(UserError, match='masks/train has masks of 0 background, 1 ball, 2 cup, '):
        write_masks(turned, masks / 'val')
    assert [path.name for path in masks.iterdir()] == ['train']
    write_masks(turned, masks / 'val', classes=['ball', 'cup'])
    assert (_values(masks / 'val' / 'a.png') == _values(masks / 'train' / 'a.png')).all()
    # Alone it may have any; below another folder, too.
    write_masks(turned, tmp_path / 'others' / 'val')


def test_masks_lie_in_folders_as_the_images_do(tmp_path: Path):
    file = _file(tmp_path, images=[dict(IMAGE, file_name='night/a.jpeg')])
    write_masks(file, tmp_path / 'masks')
    assert (tmp_path / 'masks' / 'night' / 'a.png').is_file()


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        (dict(annotations=[_object(3, 7, [])]), "without a usable 'segmentation': .* in id 3"),
        (dict(annotations=[_object(3, 7, [[1, 2, 3, 4]])]), r'1 of 1 .*expected polygons'),
        (dict(annotations=[_object(3, 7, dict(counts=[48]))]), "without a usable 'segmentation'"),
        (
            dict(annotations=[_object(3, 7, dict(counts=[48], size=[8, 6]))]),
            r'id 3 in a.jpg cannot be drawn: its size is \[8, 6\], that of the image \[6, 8\]',
        ),
        (
            dict(annotations=[_object(3, 7, dict(counts=[4], size=[6, 8]))]),
            'it counts 4 pixels of 48',
        ),
        (dict(annotations=[_object(3, 8, [[0, 0, 1, 0, 1, 1]])]), 'category_id is not in the file'),
        (dict(images=[dict(id=1, file_name='a.jpg')]), "without a usable 'height'"),
        (dict(images=[], annotations=[]), 'lists no image'),
        (dict(images=[dict(IMAGE, file_name='../a.jpg')]), r'outside of the folder: \.\./a.jpg'),
        (
            dict(images=[IMAGE, dict(IMAGE, id=2, file_name='a.png')]),
            'several images for one mask: a.png',
        ),
        (dict(categories=[], annotations=[]), 'has 0 categories'),
        (
            dict(categories=[dict(id=i, name=f'c{i}') for i in range(255)]),
            'has 255 categories: masks have room for 1 to 254',
        ),
        (
            dict(categories=[*CATEGORIES, dict(id=1, name='cup')]),
            'several classes of one name: cup',
        ),
        (dict(categories=[*CATEGORIES, dict(id=1, name='background')]), 'one name: background'),
        (dict(annotations=3), 'has no list annotations'),
    ],
)
def test_what_cannot_be_drawn_is_named_and_nothing_is_written(
    tmp_path: Path, changes: dict, words: str
):
    with pytest.raises(UserError, match=f'(?s){words}'):
        write_masks(_file(tmp_path, **changes), tmp_path / 'masks')
    assert [path.name for path in tmp_path.iterdir()] == ['instances.json']


def test_nothing_is_replaced_unasked(tmp_path: Path):
    file, masks = _file(tmp_path), tmp_path / 'masks'
    masks.mkdir()
    # A folder that is empty holds nothing to be lost.
    write_masks(file, masks)
    (masks / 'a.png').rename(masks / 'old.png')
    with pytest.raises(UserError, match='exists: choose another name, or give --overwrite'):
        write_masks(file, masks)
    write_masks(file, masks, overwrite=True)
    assert sorted(path.name for path in masks.iterdir()) == ['a.png', 'mask_classes.txt']


def _add_photograph(folder: Path) -> None:
    Image.new('RGB', (8, 6), (90, 90, 90)).save(folder / 'mine.png')


def _add_mask_of_others(folder: Path) -> None:
    image = Image.new('P', (8, 6))
    image.putpalette([9, 9, 9, 8, 8, 8])
    image.save(folder / 'mine.png')


@pytest.mark.parametrize(
    'add',
    [
        _add_photograph,
        _add_mask_of_others,
        lambda folder: Image.new('L', (8, 6)).save(folder / 'mine.png'),
        lambda folder: (folder / 'mine.png').touch(),
        lambda folder: (folder / 'mine.jpg').touch(),
    ],
)
@pytest.mark.parametrize('among_masks', [False, True])
def test_what_was_not_drawn_here_is_never_replaced(
    tmp_path: Path, add: Callable[[Path], None], among_masks: bool
):
    folder = tmp_path / 'folder'
    if among_masks:
        write_masks(_file(tmp_path), folder)
        folder /= 'below'
    folder.mkdir()
    add(folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(UserError, match=r'other files than masks drawn by this tool.*mine\.'):
        write_masks(_file(tmp_path), tmp_path / 'folder', overwrite=True)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_file_is_never_replaced(tmp_path: Path):
    (tmp_path / 'file').touch()
    with pytest.raises(UserError, match='it is a file'):
        write_masks(_file(tmp_path), tmp_path / 'file', overwrite=True)


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path):
    (tmp_path / 'file').touch()
    with pytest.raises(UserError, match='cannot be written'):
        write_masks(_file(tmp_path), tmp_path / 'file' / 'masks')


def _encoded(pixels: np.ndarray) -> dict:
    return coco.encode(np.asfortranarray(pixels.astype(np.uint8)))


@pytest.mark.parametrize('share', [0, 0.01, 0.3, 0.9, 1])
@pytest.mark.parametrize('size', [(1, 1), (7, 5), (40, 300)])
def test_compressed_run_lengths_count_each_pixel(share: float, size: tuple[int, int]):
    pixels = np.random.default_rng(0).random(size) < share
    mask = _encoded(pixels)
    assert coco.area(run_lengths(mask, *size)) == pixels.sum()
    as_text = dict(mask, counts=mask['counts'].decode())
    assert coco.area(run_lengths(as_text, *size)) == pixels.sum()
    # pycocotools would fill the rest with whatever is in memory.
    for short in (mask['counts'][:-1], b'', mask['counts'] + b'1'):
        with pytest.raises(ValueError, match='it counts|cut off'):
            run_lengths(dict(mask, counts=short), *size)


def test_runs_of_negative_length_are_refused():
    # 10, -5 and 20 pixels: as many as the image has.
    with pytest.raises(ValueError, match='Invalid RLE'):
        run_lengths(dict(size=[5, 5], counts=':Kd0'), 5, 5)
