"""A mask for each object: its class is in its name, and none is lost without a remark."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from data.made import read
from ptnt_mm.workbench.data.recognise import recognise
from ptnt_mm.workbench.data.tree import Tree

from . import drawn

COUNT = 6
CLASSES = ('Circle', 'square', 'traffic_light')


def draw(root: Path, image: str, mask: str, value: int = 255) -> None:
    """Draw images with an object of each class, and a mask of each; ``value`` is its own."""
    for i in range(COUNT):
        names = dict(i=100 + i, w='abcdef'[i], s='train' if i < 4 else 'val')
        drawn.put(drawn.photograph(i, 3), root / image.format(**names))
        for n, label in enumerate(CLASSES):
            pixels = (drawn.indices(i, 3) == n + 1).astype(np.uint8) * np.uint8(value)
            drawn.put(Image.fromarray(pixels), root / mask.format(**names, n=n, c=label))


@pytest.mark.parametrize(
    ('image', 'mask'),
    [
        ('images/{i}.jpeg', 'annotations/{i}_{c}_{n}.png'),
        ('images/{i}.jpg', 'annotations/{i}_{n}_{c}.png'),
        ('images/IMG_{i}_a.jpg', 'masks/IMG_{i}_a-{c}-{n}.png'),
        ('images/{i}_image.jpg', 'masks/{i}_mask_{c}_{n}.png'),
        ('images/img_{i}.jpg', 'masks/mask_{i}_{c}_{n}.png'),
        ('images/{w}pic.jpg', 'masks/{w}pic_{c}_{n}.png'),
        ('{s}/images/{i}.jpg', '{s}/annotations/{i}_{c}_{n}.png'),
        ('{s}_images/{i}.jpg', '{s}_masks/{i}_{c}_{n}.png'),
        ('images/{i}.jpg', 'masks/{i}_{c}_{n}.jpg'),
        ('images/{i}.jpg', 'masks/{c}/{i}_{n}.png'),
        # No word shows that they are masks.
        ('{i}.jpg', '{i}_{c}_{n}.png'),
        ('data/{i}.png', 'data/{i}_{c}_{n}.png'),
        ('shapes/{i}.jpg', 'objects/{i}_{c}_{n}.png'),
        # A folder for each image.
        ('images/{i}.jpg', 'masks/{i}/{c}_{n}.png'),
        ('images/{i}.jpg', 'masks/{i}/{i}_{c}_{n}.png'),
        ('{i}/images/{i}.png', '{i}/masks/{c}{n}.png'),
        ('{s}/images/{i}.jpg', '{s}/masks/{i}/{c}.png'),
    ],
)
def test_the_class_of_an_object_is_in_the_name_of_its_mask(tmp_path: Path, image: str, mask: str):
    draw(tmp_path, image, mask, 255 if mask.endswith('.jpg') else 3)
    labels = read(tmp_path)
    assert not labels.problems and not labels.notes
    assert labels.classes == list(CLASSES)
    counts = Counter(item.label for image in labels.images for item in image.objects)
    assert counts == dict.fromkeys(CLASSES, COUNT) and labels.has_masks()
    assert {image.split for image in labels.images} == (
        {'train', 'val'} if '{s}' in image else {None}
    )


@pytest.mark.parametrize(
    ('image', 'mask', 'label'),
    [
        ('images/{i}.jpg', 'masks/{i}_{n}.png', 'object'),
        ('images/{i}.jpg', 'masks/{i}_mask_{n}.png', 'object'),
        ('images/{i}.jpg', 'masks/{i}_nucleus{n}.png', 'nucleus'),
        ('images/{i}.jpg', 'masks/{i}/{n}.png', 'object'),
        ('images/{i}.jpg', 'masks/{i}/a{n}b{n}c{i}.png', 'object'),
    ],
)
def test_numbers_and_random_letters_are_no_classes(
    tmp_path: Path, image: str, mask: str, label: str
):
    draw(tmp_path, image, mask)
    labels = read(tmp_path)
    assert labels.classes == [label] and not labels.problems
    assert {len(image.objects) for image in labels.images} == {3}


def pixels_of(kind: str, i: int, n: int) -> np.ndarray:
    pixels = drawn.indices(i, 3)
    if kind == 'alike':
        return np.roll((pixels > 0).astype(np.uint8) * 255, n, axis=1)
    return (pixels == n + 1).astype(np.uint8) * np.uint8(n + 1 if kind == 'classes' else 255)


@pytest.mark.parametrize(
    ('masks', 'kind', 'classes'),
    [
        # Of two annotators, or computed in several ways.
        (['masks/annotator1/{}.png', 'masks/annotator2/{}.png'], 'alike', 1),
        (['masks/{}_seg_1.png', 'masks/{}_seg_2.png'], 'alike', 1),
        # An area of each class.
        (['masks/{}_circle.png', 'masks/{}_square.png', 'masks/{}_lamp.png'], 'apart', 3),
        (['masks/circle/{}.png', 'masks/square/{}.png'], 'apart', 2),
        # The value is the class.
        (['masks/{}_0.png', 'masks/{}_1.png', 'masks/{}_2.png'], 'classes', 1),
    ],
)
def test_of_other_masks_one_is_read_with_a_remark(
    tmp_path: Path, masks: list[str], kind: str, classes: int
):
    for i in range(COUNT):
        drawn.put(drawn.photograph(i, 3), tmp_path / 'images' / f'{i}x.jpg')
        for n, mask in enumerate(masks):
            drawn.put(Image.fromarray(pixels_of(kind, i, n)), tmp_path / mask.format(f'{i}x'))
    notes = [note for note in read(tmp_path).notes if 'with another mask' in note]
    assert notes and all(note.startswith(f'{COUNT} images') for note in notes)
    assert '/0x' in notes[0] and "`pairs='" in notes[0] and '`format=object-masks`' in notes[-1]
    labels = read(tmp_path, 'object-masks')
    assert len(labels.classes) == classes and not labels.problems
    assert {len(image.objects) for image in labels.images} == {len(masks)}


def test_a_few_images_with_a_second_mask_are_counted(tmp_path: Path):
    """As in a data set of ultrasound images: NAME_mask.png, and few NAME_mask_1.png."""
    for i in range(COUNT):
        drawn.put(drawn.photograph(i), tmp_path / f'benign ({i}).png')
        for n in range(2 if i in (2, 4) else 1):
            mask = Image.fromarray(pixels_of('apart', i, n))
            drawn.put(mask, tmp_path / f'benign ({i})_mask{f"_{n}" if n else ""}.png')
    labels = read(tmp_path)
    (note,) = labels.notes
    assert len(labels.images) == COUNT and not labels.problems
    assert note.startswith('2 images with another mask: benign (2)_mask.png is read, and not')
    objects = [len(image.objects) for image in read(tmp_path, 'object-masks').images]
    assert sorted(objects) == [1] * (COUNT - 2) + [2, 2]


def test_masks_of_classes_and_of_objects_are_no_objects_of_one_format(tmp_path: Path):
    for i in range(COUNT):
        drawn.put(drawn.photograph(i), tmp_path / 'JPEGImages' / f'{i}.jpg')
        for folder in ('SegmentationClass', 'SegmentationObject'):
            mask = drawn.with_palette(drawn.indices(i) * np.uint8(1 + (folder[-1] == 's')))
            drawn.put(mask, tmp_path / folder / f'{i}.png')
    note = read(tmp_path).notes[0]
    assert 'SegmentationClass/0.png is read, and not SegmentationObject/0.png' in note
    assert 'object-masks' not in note


def test_objects_may_be_asked_for(tmp_path: Path):
    draw(tmp_path, 'images/{i}.jpg', 'masks/{i}_{c}.png')
    assert recognise(Tree(tmp_path)).format.name == 'class-masks'
    assert recognise(Tree(tmp_path), task='instance').format.name == 'object-masks'
    assert read(tmp_path, task='instance').classes == list(CLASSES)
