"""Large training images are cut into tiles, with their objects."""

import errno
import json
import math
import os
import threading
import time
import tracemalloc
from collections import Counter
from pathlib import Path

import cv2
import mmcv
import numpy as np
import pytest
import tifffile
from data.formats.class_masks import colour_masks
from data.formats.folders import class_folders
from data.formats.yolo import darknet
from mmengine.registry import DATASETS, DefaultScope
from PIL import Image
from pycocotools import mask as coco

from ptnt_mm.api import create_project, report_data
from ptnt_mm.deploy.decoding import read_values
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Severity, of_kind
from ptnt_mm.workbench.check.inspection import check
from ptnt_mm.workbench.config.read import read_config
from ptnt_mm.workbench.data.image_files import decoded
from ptnt_mm.workbench.data.labels import LabelledImage, LabelledObject
from ptnt_mm.workbench.data.masks import RunLengths, encode_mask, run_lengths
from ptnt_mm.workbench.data.tiles import Tiling
from ptnt_mm.workbench.project.cut import LEAST_SHARE, Cut, cut_images

TILING = Tiling(64, 0.25)  # neighbours begin 48 pixels apart
SIZE = (150, 100)


def colours(width: int = SIZE[0], height: int = SIZE[1]) -> np.ndarray:
    """Smooth colours that differ everywhere, (H, W, 3) uint8."""
    y, x = np.mgrid[:height, :width]
    channels = [x * 255 / width, y * 255 / height, (x + y) * 255 / (width + height)]
    return np.dstack(channels).astype(np.uint8)


def save(file: Path, image: Image.Image | None = None, **options) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    (image or Image.fromarray(colours())).save(file, **options)
    return file


def cut_one(tmp_path: Path, *objects: LabelledObject, tiling: Tiling = TILING, **options) -> Cut:
    image = LabelledImage(save(tmp_path / 'data' / 'a.png'), SIZE, objects=objects, **options)
    return cut_images([image], tiling, tmp_path / 'data', tmp_path / 'tiles')


def place_of(tile: LabelledImage) -> tuple[int, int]:
    """Left and top of a tile in its image."""
    left, top = tile.path.stem.split('_')[-2:]
    return int(left), int(top)


# ---- Pixels


def exif(orientation: int) -> Image.Exif:
    data = Image.Exif()
    data[0x0112] = orientation
    return data


def sixteen_bits(file: Path) -> Path:
    cv2.imwrite(str(file), colours().astype(np.uint16) * 200)
    return file


def grey_floats(file: Path) -> Path:
    tifffile.imwrite(file, colours()[..., 0].astype(np.float32) / 255)
    return file


def signed(file: Path) -> Path:
    tifffile.imwrite(file, colours()[..., 0].astype(np.int16) - 1000)
    return file


def colour_floats(file: Path) -> Path:
    tifffile.imwrite(file, colours().astype(np.float32) / 255, photometric='rgb')
    return file


def grey(file: Path) -> Path:
    return save(file, Image.fromarray(colours()).convert('L'))


def palette(file: Path) -> Path:
    return save(file, Image.fromarray(colours()).convert('P'))


def transparent(file: Path) -> Path:
    image = Image.fromarray(colours())
    image.putalpha(99)
    return save(file, image)


def inks(file: Path) -> Path:
    return save(file, Image.fromarray(colours()).convert('CMYK'), quality=95)


def on_its_side(file: Path) -> Path:
    return save(file, exif=exif(6), quality=95)


@pytest.mark.parametrize(
    ('write', 'name', 'suffix'),
    [
        (save, 'a.png', '.png'),
        (save, 'a.bmp', '.png'),
        (save, 'a.tif', '.png'),
        (save, 'a.webp', '.png'),
        (save, 'a.JPG', '.jpg'),
        (grey, 'a.png', '.png'),
        (grey, 'a.jpg', '.jpg'),
        (palette, 'a.png', '.png'),
        (transparent, 'a.png', '.png'),
        (inks, 'a.jpg', '.jpg'),
        (on_its_side, 'a.jpg', '.jpg'),
        (sixteen_bits, 'a.png', '.png'),
        (grey_floats, 'a.tif', '.tif'),
        (colour_floats, 'a.tif', '.tif'),
        (signed, 'a.tif', '.tif'),
    ],
)
def test_a_tile_is_loaded_as_that_part_of_its_image(tmp_path: Path, write, name: str, suffix: str):
    file = write(tmp_path / name)
    whole = read_values(file.read_bytes())
    size = whole.shape[1::-1]
    box = LabelledObject('a', (0, 0, *size))
    image = LabelledImage(file, size, objects=(box,))
    cut = cut_images([image], TILING, tmp_path, tmp_path / 'tiles')
    assert len(cut.images) == len(TILING.windows(*size))
    assert cut.size == sum(tile.path.stat().st_size for tile in cut.images)
    for tile in cut.images:
        left, top = place_of(tile)
        assert tile.path.suffix == suffix
        part = whole[top : top + tile.size[1], left : left + tile.size[0]]
        values = read_values(tile.path.read_bytes())
        assert values.dtype == whole.dtype and values.shape[1::-1] == tile.size
        assert np.abs(values.astype(float) - part).max() <= (12 if suffix == '.jpg' else 0)
    if whole.dtype == np.uint8:  # the hosts' loader
        assert (mmcv.imread(str(file)) == whole).all()
        values = read_values(tile.path.read_bytes())
        assert (mmcv.imread(str(tile.path)) == values).all()


def test_images_no_larger_than_a_tile_are_copied_byte_for_byte(tmp_path: Path):
    small = Image.fromarray(colours(64, 40))
    file = save(tmp_path / 'below' / 'a.jpg', small, exif=exif(3))
    empty = LabelledImage(file, (64, 40), 'train')
    large = LabelledImage(save(tmp_path / 'b.png'), SIZE, 'train')
    cut = cut_images([empty, large], TILING, tmp_path, tmp_path / 'tiles')
    copied, *others = cut.images
    assert copied.path == tmp_path / 'tiles' / 'below' / 'a.jpg'
    assert copied.path.read_bytes() == file.read_bytes()
    assert not copied.tile_of and {tile.tile_of for tile in others} == {'b.png'}
    assert cut.sources == 1


def test_one_image_at_a_time_is_in_memory(tmp_path: Path):
    size = (900, 600)
    images = [
        LabelledImage(
            save(tmp_path / f'{i}.png', Image.fromarray(colours(*size))),
            size,
            objects=(LabelledObject('a', (0, 0, *SIZE)),),
        )
        for i in range(4)
    ]
    peaks = []
    for count in (1, 4):
        tracemalloc.start()
        cut_images(images[:count], Tiling(300, 0), tmp_path, tmp_path / f'tiles of {count}')
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + math.prod(size)


@pytest.mark.parametrize(('size', 'is_large'), [((6000, 6000), True), (SIZE, False)])
def test_large_images_are_decoded_one_at_a_time(tmp_path: Path, size: tuple, is_large: bool):
    files = [save(tmp_path / f'{i}.png', Image.new('1', size)) for i in range(3)]
    now, most = Counter(), []

    def use(image: Image.Image) -> None:
        now['open'] += 1
        most.append(now['open'])
        time.sleep(0.05)
        now['open'] -= 1

    threads = [threading.Thread(target=decoded, args=(file, use)) for file in files]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (max(most) == 1) is is_large


def test_an_image_that_cannot_be_decoded_is_named(tmp_path: Path):
    file = tmp_path / 'a.png'
    file.write_bytes(b'no image')
    with pytest.raises(UserError, match=r'a\.png'):
        cut_images([LabelledImage(file, SIZE)], TILING, tmp_path, tmp_path / 'tiles')


# ---- Objects


def objects_at(cut: Cut, left: int, top: int) -> list[LabelledObject]:
    (found,) = [tile for tile in cut.images if place_of(tile) == (left, top)]
    return list(found.objects)


@pytest.mark.parametrize(
    ('inside', 'expected'),
    [
        (16, dict(box=(48, 10, 16, 10), ignored='')),
        (8, dict(box=(56, 10, 8, 10), ignored='')),
        (1.75, dict(box=(62.25, 10, 1.75, 10), ignored='')),  # 11 %
        (1.5, dict(box=(62.5, 10, 1.5, 10), ignored='cut')),
        (0.75, None),  # less than a pixel
        (0, None),
        (-1, None),
    ],
)
def test_a_box_at_a_border_is_cut_by_its_share(tmp_path: Path, inside: float, expected):
    assert LEAST_SHARE == 0.1
    item = LabelledObject('a', (64 - inside, 10, 16, 10))
    cut = cut_one(tmp_path, item)
    (*found,) = objects_at(cut, 0, 0)
    assert found == ([LabelledObject('a', **expected)] if expected else [])
    # It is whole in the next tile, and counts there.
    (whole,) = objects_at(cut, 48, 0)
    assert whole == LabelledObject('a', (16 - inside, 10, 16, 10))
    is_part = bool(expected) and inside < 16
    assert (cut.parts, cut.ignored) == (int(is_part), int(is_part and bool(expected['ignored'])))


def test_an_object_longer_than_a_tile_has_a_part_in_each(tmp_path: Path):
    cut = cut_one(tmp_path, LabelledObject('a', (10, 20, 130, 30)))
    boxes = {place_of(tile): [item.box for item in tile.objects] for tile in cut.images}
    assert boxes[0, 0] == [(10, 20, 54, 30)]
    assert boxes[48, 0] == [(0, 20, 64, 30)]
    assert boxes[86, 0] == [(0, 20, 54, 30)]
    assert not any(item.ignored for tile in cut.images for item in tile.objects if tile.objects)


def test_crowds_stay_crowds(tmp_path: Path):
    cut = cut_one(tmp_path, LabelledObject('a', (50, 10, 30, 10), ignored='iscrowd'))
    found = [item for tile in cut.images for item in tile.objects]
    assert found and all(item.ignored for item in found)
    assert cut.ignored == 0 and cut.empty == 1


def ring() -> np.ndarray:
    y, x = np.mgrid[: SIZE[1], : SIZE[0]]
    distance = np.hypot(x - 80, y - 50)
    return (distance < 40) & (distance > 25)


POLYGONS = [[20.5, 10, 120, 30.25, 70, 90], [130, 5, 149, 5, 149, 60.5]]


@pytest.mark.parametrize(
    'mask',
    [
        POLYGONS,
        RunLengths(encode_mask(ring())),
        encode_mask(ring()),
        dict(size=[100, 150], counts=[5000, 37, 63, 100, 150, 5, 9645]),
    ],
    ids=['polygons', 'run lengths of ptnt_mm', 'compressed', 'uncompressed'],
)
def test_masks_are_those_of_the_whole_image(tmp_path: Path, mask):
    drawn = run_lengths(mask, SIZE[1], SIZE[0])
    pixels = coco.decode(drawn)
    item = LabelledObject('a', tuple(map(float, coco.toBbox(drawn))), mask)
    cut = cut_one(tmp_path, item)
    for left, top, right, bottom in TILING.windows(*SIZE):
        part = pixels[top:bottom, left:right]
        tiles = [tile for tile in cut.images if place_of(tile) == (left, top)]
        found = [item for tile in tiles for item in tile.objects]
        height, width = part.shape
        box = cv2.boundingRect(part)
        if not found:
            assert not part.any()
            continue
        (part_of,) = found
        assert bool(part_of.ignored) is bool(part.sum() < LEAST_SHARE * pixels.sum())
        assert part_of.box == box
        assert (coco.decode(run_lengths(part_of.segmentation, height, width)) == part).all()


def test_polygons_inside_a_tile_stay_polygons(tmp_path: Path):
    points = [60.5, 20, 80, 22, 70, 40.25]
    cut = cut_one(tmp_path, LabelledObject('a', (60.5, 20, 19.5, 20.25), [points]))
    (item,) = objects_at(cut, 48, 0)
    assert item.box == (12.5, 20, 19.5, 20.25)
    assert item.segmentation == [[12.5, 20, 32, 22, 22, 40.25]]


def test_a_mask_outside_of_the_part_of_its_box_is_not_there(tmp_path: Path):
    """The box of a diagonal object begins in a tile where none of its pixels are."""
    triangle = [[120.0, 10, 120, 60, 20, 60]]
    cut = cut_one(tmp_path, LabelledObject('a', (20, 10, 100, 50), triangle), tiling=Tiling(32, 0))
    assert not [item for tile in cut.images if place_of(tile) == (0, 0) for item in tile.objects]


# ---- Tiles without objects


def test_as_many_tiles_without_objects_are_kept_as_with_objects(tmp_path: Path):
    size = (640, 64)
    boxes = dict(a=[(70, 10, 20, 20)], b=[], c=[(70, 10, 20, 20), (330, 10, 20, 20)])
    images = [
        LabelledImage(
            save(tmp_path / f'{name}.png', Image.fromarray(colours(*size))),
            size,
            objects=tuple(LabelledObject('a', box) for box in of_image),
        )
        for name, of_image in boxes.items()
    ]
    cut = cut_images(images, Tiling(64, 0), tmp_path, tmp_path / 'tiles')
    empty = [tile for tile in cut.images if not tile.objects]
    assert len(cut.images) == 6 and len(empty) == cut.empty == 3
    assert cut.dropped == 30 - 6
    # Every image has a tile, and those of one are not all neighbours.
    assert {tile.tile_of for tile in cut.images} == {'a.png', 'b.png', 'c.png'}
    again = cut_images(images, Tiling(64, 0), tmp_path, tmp_path / 'again')
    assert [t.path.name for t in again.images] == [t.path.name for t in cut.images]


# ---- Projects


def large_images(root: Path, task: str = 'detection', suffix: str = '.png', count: int = 5) -> Path:
    """Images of 1500 x 1000 pixels with 30 objects of 11 to 15 pixels each, in COCO's format."""
    rng = np.random.default_rng(0)
    images, annotations = [], []
    for i in range(count):
        pixels = np.full((1000, 1500, 3), 40 + 20 * i, np.uint8)
        cv2.line(pixels, (100 * i, 0), (1400 - 200 * i, 999), (200, 30 * i, 90), 60)
        name = f'{"ab"[i % 2]}/slide {i}{suffix}'
        for x, y, side in zip(
            *rng.integers(0, (1480, 980), (30, 2)).T.tolist(),
            rng.integers(11, 16, 30).tolist(),
            strict=True,
        ):
            cv2.rectangle(pixels, (x, y), (x + side - 1, y + side - 1), (0, 255, 0), -1)
            corners = [x, y, x + side, y, x + side, y + side, x, y + side]
            annotations.append(
                dict(
                    id=len(annotations) + 1,
                    image_id=i,
                    category_id=1,
                    bbox=[x, y, side, side],
                    area=side * side,
                    iscrowd=0,
                    **(dict(segmentation=[corners]) if task == 'instance' else {}),
                )
            )
        save(root / 'images' / name, Image.fromarray(pixels))
        images.append(dict(id=i, file_name=name, width=1500, height=1000))
    content = dict(images=images, annotations=annotations, categories=[dict(id=1, name='cell')])
    (root / 'labels.json').write_text(json.dumps(content))
    return root


def entries_of(project: Path, split: str) -> list[dict]:
    return json.loads((project / 'labels' / f'{split}.json').read_text())['images']


@pytest.mark.parametrize('task', ['detection', 'instance'])
def test_a_project_of_large_images_trains_on_tiles(untried, tmp_path: Path, task: str):
    lines: list[str] = []
    detector = None if task == 'detection' else 'condinst'  # which needs 16 pixels
    data = large_images(tmp_path / 'data', task)
    file = create_project(
        data, tmp_path / 'project', detector=detector, on_line=lines.append, epochs=1
    )
    data.rename(tmp_path / 'elsewhere')  # the tiles stay
    config = read_config(file, None, tmp_path / 'elsewhere')
    assert config.val_cfg == dict(type='TiledValLoop', tile=config.tile, overlap=0.2)
    assert config.test_cfg == dict(type='TiledTestLoop', tile=config.tile, overlap=0.2)
    shown = '\n'.join(lines)
    assert f'{config.tile} x {config.tile} pixels' in shown and '4 to train on' in shown
    with DefaultScope.overwrite_default_scope('mmdet'):
        settings = config.train_dataloader.dataset
        train = DATASETS.build(settings)
        sample = train[0]
    names = [Path(train.get_data_info(i)['img_path']) for i in range(len(train))]
    assert all(name.is_file() and name.is_relative_to(tmp_path / 'project') for name in names)
    assert len(names) == len(entries_of(tmp_path / 'project', 'train')) > 4
    assert sample['inputs'].shape[1:] and len(sample['data_samples'].gt_instances)
    if task == 'detection':
        assert not of_kind(check(config), Severity.ERROR)
    # Validation is on whole images.
    assert {entry['width'] for entry in entries_of(tmp_path / 'project', 'val')} == {1500}
    assert 'tile_of' not in entries_of(tmp_path / 'project', 'val')[0]


def test_a_project_with_tiles_can_be_moved_and_continued(untried, tmp_path: Path):
    data = large_images(tmp_path / 'data')
    create_project(data, tmp_path / 'one', tile=400)
    train = entries_of(tmp_path / 'one', 'train')
    assert {entry['tile_of'] for entry in train} <= {
        str(file.relative_to(data)) for file in (data / 'images').rglob('*.png')
    }
    (tmp_path / 'one').rename(tmp_path / 'moved')
    large_images(data, count=9)
    create_project(data, tmp_path / 'two', like=tmp_path / 'moved', tile=500)
    create_project(data, tmp_path / 'whole', like=tmp_path / 'two', tile=0)

    def splits(project: Path) -> dict[str, str]:
        return {
            entry.get('tile_of', entry['file_name']): split
            for split in ('train', 'val')
            for entry in entries_of(tmp_path / project, split)
        }

    before, after = splits('moved'), splits('two')
    assert len(before) == 5 and len(after) == 9
    assert {name: after[name] for name in before} == before
    assert splits('whole') == after
    assert not (tmp_path / 'whole' / 'labels' / 'tiles').exists()
    assert read_config(tmp_path / 'whole' / 'config.py').val_cfg.type == 'ValLoop'


def test_the_page_about_the_data_names_tiles(untried, tmp_path: Path):
    file = create_project(large_images(tmp_path / 'data'), tmp_path / 'project', tile=400)
    page = report_data(read_config(file)).read_text()
    assert 'tiles in train' in page and 'slide 0.png_0_0.png' in page or 'slide 1.png_' in page


def test_few_pixels_are_reported(untried, tmp_path: Path):
    data, lines = large_images(tmp_path / 'data'), []
    create_project(data, tmp_path / 'whole', tile=0, on_line=lines.append)
    assert [line for line in lines if 'warning' in line and 'tile' in line]
    lines.clear()
    create_project(data, tmp_path / 'tiles', on_line=lines.append)
    assert not [line for line in lines if 'warning' in line and 'pixels' in line]


@pytest.mark.parametrize('value', [31, -1, 640.0, '640', True, False])
def test_a_side_is_an_integer_from_32_or_0(tmp_path: Path, value: object):
    data = darknet(tmp_path / 'data')
    with pytest.raises(UserError, match=f'`tile={value!r}`'):
        create_project(data, tmp_path / 'project', tile=value)
    assert not (tmp_path / 'project').exists()


@pytest.mark.parametrize('make', [colour_masks, class_folders])
def test_other_tasks_have_no_tiles(tmp_path: Path, make):
    with pytest.raises(UserError, match='`tile=64`'):
        create_project(make(tmp_path / 'data'), tmp_path / 'project', tile=64)
    assert not (tmp_path / 'project').exists()


def test_a_tile_larger_than_every_image_is_refused(untried, tmp_path: Path):
    with pytest.raises(UserError, match='`tile=96`.*96 x 64'):
        create_project(darknet(tmp_path / 'data'), tmp_path / 'project', tile=96)
    assert sorted(path.name for path in tmp_path.iterdir()) == ['data']


def test_a_full_disk_leaves_nothing_behind(untried, tmp_path: Path, monkeypatch):
    data = large_images(tmp_path / 'data')
    written, replace = [], os.replace

    def fill(source: Path, file: Path) -> None:
        if len(written) > 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(file)
        replace(source, file)

    monkeypatch.setattr(os, 'replace', fill)
    with pytest.raises(UserError, match='No space left'):
        create_project(data, tmp_path / 'project', tile=400)
    assert all('tiles' in str(file) for file in written)
    assert written and sorted(path.name for path in tmp_path.iterdir()) == ['data']
