"""Labels written for annotation tools are read back by our readers, and by other programs."""

import json
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labelformat.formats.coco import COCOObjectDetectionInput
from labelformat.formats.pascalvoc import PascalVOCObjectDetectionInput
from labelformat.formats.yolov8 import YOLOv8ObjectDetectionInput
from pycocotools import mask as coco

from data import made
from data.made import read
from ptnt_mm.workbench.data.labels import LabelledImage, LabelledObject
from ptnt_mm.workbench.data.masks import encode_mask, outlines, run_lengths
from ptnt_mm.workbench.data.recognise import recognise
from ptnt_mm.workbench.data.tree import Tree
from ptnt_mm.workbench.data.writers import all_writers

WRITERS = list(all_writers().values())
WITH_MASKS = [writer for writer in WRITERS if writer.masks]
CLASSES = ('Zelle', 'Müll & "so"')
ROUNDING = 0.011  # pixels; files have two digits


def name(writer) -> str:
    return writer.format.name


def disc(x: int, y: int, radius: int) -> np.ndarray:
    """A mask of the size of the pictures."""
    pixels = np.zeros(made.SIZE[::-1], np.uint8)
    cv2.circle(pixels, (x, y), radius, 1, -1)
    return pixels.astype(bool)


def two_parts() -> np.ndarray:
    return disc(20, 20, 12) | disc(70, 40, 15)


def objects_of(i: int, with_masks: bool) -> tuple[LabelledObject, ...]:
    """The objects of picture i, which are none in the last."""
    if i == made.COUNT - 1:
        return ()
    boxes = [
        LabelledObject(CLASSES[0], (4.25 + i, 6.5, 36.5, 44), score=0.91),
        LabelledObject(CLASSES[1], (60, 20 + i, 16.25, 20), score=0.5),
    ]
    if not with_masks:
        return tuple(boxes)
    masks = [disc(30 + i, 30, 14), two_parts()]
    return tuple(
        replace(item, segmentation=outlines(encode_mask(mask)))
        for item, mask in zip(boxes, masks, strict=True)
    )


def written(root: Path, writer, with_masks: bool = False) -> list[LabelledImage]:
    """Write labels of pictures in subfolders, to where the format has them, and return them."""
    folder = root if writer.format.name in ('voc', 'labelme') else root / 'images'
    images = []
    for i in range(made.COUNT):
        path = made.draw(folder / 'ab'[i % 2] / f'im{i}.png', i)
        images.append(LabelledImage(path, made.SIZE, objects=objects_of(i, with_masks)))
    writer.write(CLASSES, images, folder, root)
    return images


@pytest.mark.parametrize('writer', WRITERS, ids=name)
def test_boxes_are_read_back(tmp_path: Path, writer):
    images = written(tmp_path, writer)
    labels = read(tmp_path)
    assert recognise(Tree(tmp_path)).format is writer.format
    assert not labels.problems and set(labels.classes) == set(CLASSES)
    found = {image.path: image for image in labels.images}
    assert found.keys() == {image.path for image in images}
    for image in images:
        assert found[image.path].size == image.size
        pairs = zip(found[image.path].objects, image.objects, strict=True)
        for item, other in pairs:
            assert item.label == other.label and item.segmentation is None
            assert item.box == pytest.approx(other.box, abs=2 * ROUNDING)


@pytest.mark.parametrize('writer', WITH_MASKS, ids=name)
def test_masks_are_read_back(tmp_path: Path, writer):
    """Also one of two parts, which YOLO has only as one polygon."""
    images = written(tmp_path, writer, with_masks=True)
    found = {image.path: image for image in read(tmp_path).images}
    for image in images:
        for item, other in zip(found[image.path].objects, image.objects, strict=True):
            pair = [run_lengths(x.segmentation, *made.SIZE[::-1]) for x in (item, other)]
            assert coco.iou(pair[:1], pair[1:], [0]).item() > 0.98, item.label


@pytest.mark.parametrize('writer', WITH_MASKS, ids=name)
def test_boxes_and_masks_may_be_mixed(tmp_path: Path, writer):
    images = written(tmp_path, writer)
    first = images[0]
    mask = outlines(encode_mask(disc(30, 30, 14)))
    mixed = (replace(first.objects[0], segmentation=mask), first.objects[1])
    root = images[0].path.parents[1]
    writer.write(CLASSES, [replace(first, objects=mixed), *images[1:]], root, tmp_path)
    found = {image.path: image for image in read(tmp_path).images}[first.path]
    assert [item.segmentation is not None for item in found.objects] == [True, False]


@pytest.mark.parametrize('writer', WRITERS, ids=name)
def test_a_box_at_the_edge_stays_inside(tmp_path: Path, writer):
    path = made.draw(tmp_path / 'images' / 'im0.png', 0)
    edge = LabelledObject('cell', (0, 0, *map(float, made.SIZE)))
    writer.write(
        ('cell',), [LabelledImage(path, made.SIZE, objects=(edge,))], path.parent, tmp_path
    )
    labels = read(tmp_path)
    (item,) = labels.images[0].objects
    assert not labels.problems and item.box == pytest.approx(edge.box, abs=0.5 + ROUNDING)


def test_scores_are_kept_where_there_is_a_place(tmp_path: Path):
    """Label Studio's converter of COCO fails without them; LabelMe shows descriptions."""
    files = {}
    for writer in WRITERS:
        written(tmp_path / writer.format.name, writer)
        files[writer.format.name] = Tree(tmp_path / writer.format.name).files
    (annotations,) = (file for file in files['coco'] if file.suffix == '.json')
    assert {a['score'] for a in json.loads(annotations.read_text())['annotations']} == {0.91, 0.5}
    shapes = json.loads((tmp_path / 'labelme' / 'a' / 'im0.json').read_text())['shapes']
    assert [shape['description'] for shape in shapes] == ['score 0.91', 'score 0.5']
    for text in (file.read_text() for file in files['yolo'] if file.parent.name in 'ab'
                 and file.suffix == '.txt'):  # fmt: skip
        assert all(len(line.split()) == 5 for line in text.splitlines())


def test_labelme_finds_the_images_from_its_files(tmp_path: Path):
    writer = all_writers()['labelme']
    path = made.draw(tmp_path / 'photos' / 'below' / 'im0.png', 0)
    image = LabelledImage(path, made.SIZE, objects=objects_of(0, False))
    writer.write(CLASSES, [image], tmp_path / 'photos', tmp_path / 'out' / 'labels')
    file = tmp_path / 'out' / 'labels' / 'below' / 'im0.json'
    content = json.loads(file.read_text())
    assert (file.parent / content['imagePath']).resolve() == path
    assert content['imageData'] is None and content['imageWidth'] == made.SIZE[0]


READERS = {
    'coco': lambda root: COCOObjectDetectionInput(root / 'coco' / 'annotations.json'),
    'yolo': lambda root: YOLOv8ObjectDetectionInput(root / 'yolo' / 'data.yaml', 'train'),
    'voc': lambda root: PascalVOCObjectDetectionInput(root / 'voc', ','.join(CLASSES)),
}
"""Of labelformat."""


@pytest.mark.parametrize('kind', ['coco', 'yolo', 'voc'])
def test_labelformat_reads_the_same(tmp_path: Path, kind: str):
    writer = all_writers()[kind]
    root = tmp_path / kind if kind == 'voc' else tmp_path / kind / 'images'
    images = [
        LabelledImage(made.draw(root / f'im{i}.png', i), made.SIZE, objects=objects_of(i, False))
        for i in range(2)
    ]
    writer.write(CLASSES, images, root, tmp_path / kind)
    if kind == 'yolo':  # it knows no lists of images
        settings_file = tmp_path / kind / 'data.yaml'
        assert 'val: train.txt' in settings_file.read_text()  # ultralytics demands it
        settings_file.write_text(settings_file.read_text().replace('train.txt', 'images'))
    found = {
        Path(label.image.filename).name: label.objects
        for label in READERS[kind](tmp_path).get_labels()
    }
    for image in images:
        for item, other in zip(found[image.path.name], image.objects, strict=True):
            x, y, width, height = other.box
            corners = (item.box.xmin, item.box.ymin, item.box.xmax, item.box.ymax)
            assert item.category.name == other.label
            assert corners == pytest.approx((x, y, x + width, y + height), abs=0.52)


# ---- Outlines


def overlap(mask: np.ndarray) -> float:
    """The IoU of a mask and its outlines."""
    encoded = encode_mask(mask)
    drawn = run_lengths(outlines(encoded), *mask.shape)
    return coco.iou([encoded], [drawn], [0]).item()


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(st.integers(5, 90), st.integers(5, 60)),
    st.tuples(st.integers(5, 40), st.integers(5, 40)),
    st.integers(0, 180),
)
def test_outlines_cover_their_masks(middle: tuple, radii: tuple, angle: int):
    """Also at the edge of the image, of which the mask may be all."""
    pixels = np.zeros(made.SIZE[::-1], np.uint8)
    cv2.ellipse(pixels, middle, radii, angle, 0, 360, 1, -1)
    assert overlap(pixels.astype(bool)) > 0.9


@pytest.mark.parametrize(('height', 'width'), [(1, 1), (1, 9), (9, 1), (2, 3)])
def test_small_masks_keep_their_pixels(height: int, width: int):
    pixels = np.zeros((20, 30), bool)
    pixels[5 : 5 + height, 7 : 7 + width] = True
    assert overlap(pixels) > 0.7


def test_outlines_are_few_points_of_all_parts_without_holes():
    mask = two_parts()
    polygons = outlines(encode_mask(mask))
    assert [min(points[::2]) > 50 for points in polygons] == [True, False]  # the larger first
    assert max(map(len, polygons)) < 2 * 25
    ring = disc(40, 30, 20) & ~disc(40, 30, 10)
    drawn = run_lengths(outlines(encode_mask(ring)), *ring.shape)
    assert coco.area(drawn) == pytest.approx(disc(40, 30, 20).sum(), rel=0.02)
    assert outlines(encode_mask(np.zeros((9, 9), bool))) == []
