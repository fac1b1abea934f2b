"""A segmenter's report: figures by hand, confusion, and the order of images."""

import base64
import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.pages.report.training_run import read_run

from .made_runs import make_segmenter
from .shown import report, table

# Two images of 2 x 4 pixels; 255 does not count.
TRUTH = np.array([[[0, 0, 0, 0], [1, 1, 255, 255]], [[0, 0, 0, 0], [0, 0, 0, 0]]], np.uint8)
FOUND = np.array([[[0, 0, 1, 1], [1, 1, 1, 1]], [[0, 0, 0, 0], [0, 0, 0, 0]]], np.uint8)


def report_of(folder: Path, truth=TRUTH, found=FOUND, **data):
    return read_run(make_segmenter(folder, 'maps', truth, found, **data), 'maps').read_report()


def test_by_hand(tmp_path: Path):
    report = report_of(tmp_path)
    assert report.confusion[0] == ['ball', 'cup']
    assert report.confusion[1].tolist() == [[10, 2], [0, 2]]
    ball, cup = report.of_classes()
    assert ball == dict(
        Class='ball', pixels=pytest.approx(12 / 14), IoU=pytest.approx(10 / 12),
        accuracy=pytest.approx(10 / 12),
    )  # fmt: skip
    assert (cup['IoU'], cup['accuracy']) == (0.5, 1)
    assert report.summary == pytest.approx(
        dict(mIoU=(10 / 12 + 0.5) / 2, mAcc=11 / 12, aAcc=12 / 14)
    )
    assert report.headline() == dict(mIoU=report.summary['mIoU'])
    assert report.test_split == f'{tmp_path}/maps_data/images, 2 images'


def test_images_lack_what_their_own_iou_lacks(tmp_path: Path):
    report = report_of(tmp_path)
    bad, good = report.images()
    assert (bad.name, bad.cost, good.cost) == ('0.jpg', 0.5, 0)
    details = report.details(bad)
    assert details['classes'] == dict(ball=0.5, cup=0.5) and details['score'] == 0.5
    assert details['truth'].startswith('data:image/png;base64,')
    assert report.details(good)['classes'] == dict(ball=1), 'there is no cup'


def test_indices_that_begin_at_1(tmp_path: Path):
    # As ADE20K: 0 in the files of the ground truth does not count, and mmseg adds 1 to its maps.
    truth = np.where(TRUTH == 255, 0, TRUTH + 1).astype(np.uint8)
    report = report_of(tmp_path, truth, FOUND + 1, reduce_zero_label=True)
    assert report.confusion[1].tolist() == [[10, 2], [0, 2]]


def test_a_class_that_is_nowhere(tmp_path: Path):
    report = report_of(tmp_path, np.zeros_like(TRUTH), np.zeros_like(FOUND))
    assert [row['IoU'] for row in report.of_classes()] == [1, None]
    assert report.summary['mIoU'] == 1


def test_a_map_of_another_size(tmp_path: Path):
    with pytest.raises(UserError, match=r'0\.png has \(3, 4\) pixels .* ground truth \(2, 4\)'):
        report_of(tmp_path, found=np.zeros((2, 3, 4), np.uint8))


@pytest.mark.parametrize('file', ['maps_data/masks/1.png', 'maps/predictions/1.png'])
def test_a_map_that_cannot_be_read(tmp_path: Path, file: str):
    run = read_run(make_segmenter(tmp_path, 'maps', TRUTH, FOUND), 'maps')
    (tmp_path / file).write_text('notes')
    with pytest.raises(UserError, match=f'{file} cannot be read: not an image'):
        run.read_report()


def test_the_size_of_an_image_is_known_without_decoding_it(tmp_path: Path):
    report = report_of(tmp_path)
    (tmp_path / 'maps_data' / 'images' / '0.jpg').unlink()
    assert report.size(next(report.images())) == dict(width=4, height=2)


def test_maps_are_named_by_images_without_their_folders(tmp_path: Path):
    work_dir = make_segmenter(tmp_path, 'maps', TRUTH, FOUND)
    for part, ending in (('images', 'jpg'), ('masks', 'png')):
        folder = tmp_path / 'maps_data' / part
        (folder / 'more').mkdir()
        (folder / f'0.{ending}').rename(folder / 'more' / f'1.{ending}')
    with pytest.raises(UserError, match='in several folders share names'):
        read_run(work_dir, 'maps').has_predictions()


@pytest.mark.parametrize('number', [1, 2, 3, 4, 16, 17, 255])
def test_ignored_pixels_are_transparent(tmp_path: Path, number: int):
    maps = np.array([[[0, number - 1, 255]] * 2], np.uint8)
    report = report_of(tmp_path, maps, maps, classes=tuple(map(str, range(number))))
    (image,) = report.images()
    content = base64.b64decode(report.details(image)['truth'].partition(',')[2])
    pixels, _ = np.asarray(Image.open(io.BytesIO(content)).convert('RGBA'))
    palette = [*map(tuple, report.colours.values())]
    assert [tuple(pixel[:3].tolist()) for pixel in pixels[:2]] == [palette[0], palette[-1]]
    assert pixels[:, 3].tolist() == [255, 255, 0]


def test_classes_of_other_colours_have_a_legend_of_their_own(tmp_path: Path):
    one, other = (make_segmenter(tmp_path, name, TRUTH, FOUND) for name in ('one', 'other'))

    def legend(page: str) -> list[str]:
        _, _, gallery = page.partition('id="segments"')
        return re.findall('([^<>]+)</li>', gallery.partition('</ul>')[0])

    page = report(tmp_path / 'page.html', one, other)
    assert legend(page) == ['ball', 'cup']
    headings = [heading for heading, _ in table(page, 'regions')]
    assert headings[:5] == ['class', 'pixels', 'one: IoU', 'other: IoU', 'difference']
    assert dict(table(page, 'regions'))['difference'] == [('0.0 %', '')] * 2
    (config,) = other.glob('*/vis_data/config.py')
    palette = "test_dataloader['dataset']['metainfo']['palette'] = [(9, 9, 9), (0, 9, 9)]"
    config.write_text(f'{config.read_text()}{palette}\n')
    page = report(tmp_path / 'page.html', one, other)
    assert legend(page) == ['one', 'ball', 'cup', 'other', 'ball', 'cup']
