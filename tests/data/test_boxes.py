"""Wrong boxes are found as they are written, and sound boxes are left alone."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from data import made
from data.formats.class_masks import class_masks
from data.formats.csv import csv_keras
from data.formats.kitti import kitti
from data.formats.via import via, via_exported
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.data.boxes import (
    CENTRE_AND_SIZE,
    CORNER_AND_SIZE,
    CORNERS,
    Boxes,
    Listed,
    find_cause,
    judge,
    judge_repeats,
    of_stored_pixels,
)
from ptnt_mm.workbench.data.labels import Labels
from ptnt_mm.workbench.data.recognise import summary

FORMS = (CORNER_AND_SIZE, CORNERS, CENTRE_AND_SIZE)
WIDE, TALL = (640, 480), (300, 500)


def drawn(seed: int, count: int = 60, size: tuple[int, int] = WIDE) -> tuple[np.ndarray, ...]:
    """The corners of boxes anywhere in their images, (N, 4), and the sizes of these, (N, 2)."""
    rng = np.random.default_rng(seed)
    sizes = np.tile(np.array(size, float), (count, 1))
    sides = rng.uniform(0.03, 0.6, (count, 2)) * sizes
    first = rng.uniform(0, 1, (count, 2)) * (sizes - sides)
    return np.hstack([first, first + sides]), sizes


def as_boxes(corners: np.ndarray, sizes: np.ndarray) -> Boxes:
    return Boxes(CORNER_AND_SIZE.write(corners), sizes)


@pytest.mark.parametrize('seed', range(5))
@pytest.mark.parametrize('written', FORMS, ids=lambda form: form.text)
@pytest.mark.parametrize('read', FORMS, ids=lambda form: form.text)
def test_the_form_in_which_boxes_are_written_is_named(read, written, seed: int):
    corners, sizes = drawn(seed)
    cause = find_cause(as_boxes(read.read(written.write(corners)), sizes), read)
    if read is written:
        assert cause is None
    else:
        assert cause.what.endswith(written.text) and read.text in cause.advice


@pytest.mark.parametrize('form', FORMS, ids=lambda form: form.text)
def test_exchanged_axes_are_named(form):
    corners, sizes = drawn(0, size=TALL)
    turned = form.read(form.write(corners)[:, [1, 0, 3, 2]])
    assert find_cause(as_boxes(turned, sizes), form).what.endswith(form.exchanged)
    # In a square, both orders fit.
    corners, sizes = drawn(0, size=(300, 300))
    turned = form.read(form.write(corners)[:, [1, 0, 3, 2]])
    assert find_cause(as_boxes(turned, sizes), form) is None


@pytest.mark.parametrize(
    ('change', 'value'),
    [
        (lambda corners: corners / np.tile(WIDE, 2), 'between 0 and 1'),
        (lambda corners: corners * 2, 'of a different size'),
        (lambda corners: corners + [500, 0, 500, 0], 'of the width'),
        # The second half is from a program that writes corners.
        (
            lambda corners: np.vstack([corners[:30], CORNER_AND_SIZE.read(corners[30:])]),
            'these fit when read as [x1, y1, x2, y2]',
        ),
        # One typo more does not hide the cause.
        (lambda corners: np.vstack([CORNER_AND_SIZE.read(corners[:-1]), [[np.nan] * 4]]), '[x1, '),
        (lambda corners: np.vstack([CORNER_AND_SIZE.read(corners[:-1]), [[-9, 9, 4, 12]]]), '[x1,'),
    ],
    ids=['shares', 'twice the size', 'moved', 'joined', 'not finite', 'a typo'],
)
def test_other_causes_are_named(change, value: str):
    corners, sizes = drawn(1)
    cause = find_cause(as_boxes(change(corners), sizes), CORNER_AND_SIZE)
    assert value in cause.what and cause.chosen.sum() > 5


@pytest.mark.parametrize('seed', range(20))
@pytest.mark.parametrize(
    'change',
    [
        # Half of all boxes reach over the border by a few pixels.
        lambda rng, corners: corners + rng.uniform(-6, 6, corners.shape) * (rng.random() < 0.5),
        # One in twenty is a typo.
        lambda rng, corners: corners * np.where(rng.random((len(corners), 1)) < 0.05, 3, 1),
        # All objects fill their images.
        lambda rng, corners: np.tile(np.array([2, 3, 630, 470.0]), (len(corners), 1)),
        # All are in the upper left quarter.
        lambda rng, corners: corners / 2,
    ],
    ids=['careless', 'typos', 'full', 'corner'],
)
def test_sound_boxes_have_no_cause(change, seed: int):
    rng = np.random.default_rng(seed)
    corners, sizes = drawn(seed)
    for form in FORMS:
        assert find_cause(as_boxes(change(rng, corners), sizes), form) is None


@pytest.mark.parametrize(
    ('change', 'is_found'),
    [
        (lambda corners: corners / np.tile(WIDE, 2), True),
        (lambda corners: CORNER_AND_SIZE.read(corners), True),
        (lambda corners: corners * 2, False),  # so few may be careless
        (lambda corners: np.array([[0, 0, 1.0, 1.0]]), False),
    ],
    ids=['shares', 'another form', 'another size', 'one box'],
)
def test_few_boxes_have_a_cause_only_if_it_is_certain(change, is_found: bool):
    corners = change(np.array([[50, 40, 300, 200], [200, 300, 630, 470], [350, 250, 600, 400.0]]))
    sizes = np.tile(np.array(WIDE, float), (len(corners), 1))
    assert bool(find_cause(as_boxes(corners, sizes), CORNER_AND_SIZE)) is is_found


@pytest.mark.parametrize(
    ('box', 'area', 'faults'),
    [
        ([np.inf, 0, 5, 5], 25, {'boxes not finite': False}),
        ([50, 50, -5, 5], 25, {'boxes of negative size': False}),
        ([50, 50, 0, 5], 0, {'boxes less than 1 pixel wide or high': False}),
        ([700, 50, 20, 20], 400, {'boxes outside of their images': False}),
        ([639.5, 50, 20, 20], 400, {'boxes with less than 1 pixel inside their images': False}),
        ([600, 50, 60, 20], 1200, {'boxes partly outside their images': True}),
        ([600, 50, 20, 20], -1, {'areas of 0 or less': False}),
        ([600, 50, 20, 20], 605, {'areas that do not match the boxes in pixels': True}),
        ([600, 50, 20, 20], 0.3, {'areas that do not match the boxes in pixels': True}),
        (
            [600, 50, 60, 20],
            9e9,
            {
                'boxes partly outside their images': True,
                'areas that do not match the boxes in pixels': True,
            },
        ),
        ([600, 50, 41, 20], 820, {}),
        ([0, 0, 640, 480], 1, {'areas that do not match the boxes in pixels': True}),
    ],
)
def test_a_box_that_is_dropped_has_no_later_fault(box: list, area: float, faults: dict):
    values, sizes = np.array([box], float), np.array([WIDE], float)
    boxes = Boxes(values, sizes, np.array([area], float), are_measured=True)
    assert {rule.what: rule.is_kept for rule, chosen in judge(boxes) if chosen} == faults
    # Training needs areas above 0, and `ptnt new` writes its own.
    for others, left in ((Boxes(values, sizes), 'boxes'), (Boxes(values, sizes, boxes.areas), '')):
        found = {rule.what for rule, chosen in judge(others) if chosen}
        assert found == {w for w in faults if w.startswith(left) and 'do not match' not in w}


@pytest.mark.parametrize(
    ('others', 'faults'),
    [
        ([Listed('a', 'cat')], {'objects listed twice': [1]}),
        (
            [Listed('a', 'cat', mask=[[1]])] * 2,
            {'objects listed again with another mask': [1], 'objects listed twice': [2]},
        ),
        (
            [Listed('a', 'cat', mask=[[2]])],
            {'objects listed again with another mask': [1]},
        ),
        ([Listed('a', 'cat', is_ignored=True), Listed('b', 'cat')], {}),
        ([Listed('a', 'dog')], {'boxes listed again as a different class': [1]}),
        # In some public data sets, few objects have two classes.
        ([Listed('a', 'dog'), *(Listed(str(i), 'cat') for i in range(18))], {}),
    ],
)
def test_repeated_objects(others: list[Listed], faults: dict):
    found = judge_repeats([Listed('a', 'cat'), *others])
    listed = {rule.what: np.flatnonzero(chosen).tolist() for rule, chosen in found if chosen.any()}
    assert listed == faults


# Data sets


def coco(root: Path, count: int = 12, **changes: object) -> dict:
    """Draw images, and return a file of three objects in each."""
    corners, _ = drawn(3, 3 * count, (96, 64))
    (root / 'images').mkdir(parents=True)
    for i in range(count):
        Image.new('RGB', (96, 64), (i, 90, 90)).save(root / 'images' / f'im{i}.png')
    images = [dict(id=i, file_name=f'im{i}.png', width=96, height=64) for i in range(count)]
    annotations = [
        dict(id=i, image_id=i // 3, category_id=1 + i % 2, bbox=box, area=9, iscrowd=0)
        for i, box in enumerate(CORNER_AND_SIZE.write(corners).round(1).tolist())
    ]
    categories = [dict(id=1, name='car'), dict(id=2, name='van')]
    return dict(images=images, annotations=annotations, categories=categories) | changes


def read(root: Path, content: dict | None = None) -> Labels:
    if content is not None:
        (root / 'labels.json').write_text(json.dumps(content))
    return made.read(root)


def test_boxes_are_examined_before_they_are_clipped(tmp_path: Path):
    content = coco(tmp_path)
    for entry in content['annotations']:
        x, y, width, height = entry['bbox']
        entry['bbox'] = [x, y, x + width, y + height]
    with pytest.raises(UserError, match=r'labels\.json: .* of 36 .*\[x1, y1, x2, y2\].*\(96x64\)'):
        read(tmp_path, content)


@pytest.mark.parametrize('joined', [6, 12])
def test_image_ids_of_two_joined_files_are_an_error(tmp_path: Path, joined: int):
    content = coco(tmp_path)
    for i, entry in enumerate(content['images']):
        entry['id'] = i % joined
    if joined == 12:
        assert len(read(tmp_path, content).images) == 12
        return
    with pytest.raises(UserError, match=r'6 of 6 image ids .*0 is im0\.png and im6\.png'):
        read(tmp_path, content)


def test_images_of_one_id_are_skipped_together(tmp_path: Path):
    content = coco(tmp_path, 30)
    content['images'][29]['id'] = 0
    labels = read(tmp_path, content)
    assert len(labels.images) == 28
    assert any('im0.png and im29.png' in line for line in summary(labels))


@pytest.mark.parametrize(
    ('ids', 'values'),
    [
        ([0, 1], 'from 1, but the names start at 0'),
        ([2, 3], 'from 1, but the names start at 2'),
        ([1, 1], "'van'"),
    ],
    ids=['from 0', 'from 2', 'one id'],
)
def test_category_ids_that_mean_something_else_are_an_error(tmp_path: Path, ids, values: str):
    content = coco(tmp_path)
    for category, number in zip(content['categories'], ids, strict=True):
        category['id'] = number
    with pytest.raises(UserError, match=values):
        read(tmp_path, content)


COUNTED = 'from 1, but the names start at 0.* add a name for 3 if'


def yolo(root: Path, classes: list[int]) -> Labels:
    """Read images with an object of each class; three classes have names."""
    for folder in ('images', 'labels'):
        (root / folder).mkdir(parents=True)
    Image.new('RGB', (96, 64)).save(root / 'images' / 'im0.png')
    (root / 'data.yaml').write_text('train: images\nnames: [car, van, bus]\n')
    lines = [f'{index} 0.{place} 0.5 0.2 0.2' for place, index in enumerate(classes, start=2)]
    (root / 'labels' / 'im0.txt').write_text('\n'.join(lines))
    return read(root)


@pytest.mark.parametrize('classes', [[1, 2, 3], [2, 3], [3]])
def test_classes_counted_from_1_are_an_error(tmp_path: Path, classes: list[int]):
    """Also if there is no object of the first."""
    with pytest.raises(UserError, match=COUNTED):
        yolo(tmp_path / 'yolo', classes)
    content = coco(tmp_path / 'coco')
    content['categories'] = [dict(id=i, name=name) for i, name in enumerate(['car', 'van', 'bus'])]
    for i, entry in enumerate(content['annotations']):
        entry['category_id'] = classes[i % len(classes)]
    with pytest.raises(UserError, match=COUNTED):
        read(tmp_path / 'coco', content)


def test_one_class_without_a_name_is_reported(tmp_path: Path):
    labels = yolo(tmp_path, [0, 1, 3])
    (image,) = labels.images
    assert [found.label for found in image.objects] == ['car', 'van']
    assert any('objects of an unknown class' in line for line in summary(labels))


def test_one_image_with_two_entries_has_the_objects_of_both(tmp_path: Path):
    content = coco(tmp_path)
    content['images'].append(dict(content['images'][0], id=99))
    content['annotations'][4]['image_id'] = 99
    labels = read(tmp_path, content)
    assert sorted(len(image.objects) for image in labels.images) == [2, *[3] * 10, 4]


def test_objects_that_cannot_be_used_are_counted_by_class(tmp_path: Path):
    content = coco(tmp_path)
    for entry in content['annotations'][::7]:
        entry['bbox'] = [200, 200, 9, 9]
    (line,) = summary(read(tmp_path, content))
    assert (
        line.startswith('6 boxes outside of their images') and '(3 car, 3 van): labels.json' in line
    )


@pytest.mark.parametrize(
    ('mask', 'what'),
    [
        ([[0.1, 0.1, 0.3, 0.1, 0.3, 0.3]], 'masks without a pixel'),
        ([[1, 1, 5, 5]], 'objects with polygons of fewer than 3 points'),
        (dict(size=[96, 64], counts=[6144]), 'masks not the size of their images'),
        ([[0, 0, 3, 0, 3, 3, 0, 3]], 'masks not where their boxes are'),
        ('0,0,3,3', 'masks that cannot be drawn'),
    ],
)
def test_masks_have_the_rules_of_ptnt_check(tmp_path: Path, mask: object, what: str):
    content = coco(tmp_path)
    content['annotations'][0] |= dict(bbox=[40, 20, 30, 30], segmentation=mask)
    (line,) = summary(read(tmp_path, content))
    assert line.startswith(what) and '(1 car): labels.json' in line


def test_a_box_of_zeros_is_that_around_the_mask(tmp_path: Path):
    content = coco(tmp_path)
    polygon = [[30, 10, 50, 10, 50, 30]]
    content['annotations'][0] |= dict(bbox=[0, 0, 0, 0], segmentation=polygon)
    labels = read(tmp_path, content)
    assert not labels.problems and (30, 10, 20, 20) in {o.box for o in labels.images[0].objects}


def turn(root: Path, count: int) -> None:
    """Give the first images an EXIF entry that rotates them; their objects stay where they are."""
    exif = Image.Exif()
    exif[0x0112] = 8
    for file in sorted(root.rglob('im*.*'))[:count]:
        Image.open(file).save(file, exif=exif)


def coco_without_sizes(root: Path) -> Path:
    content = coco(root)
    content['images'] = [dict(id=e['id'], file_name=e['file_name']) for e in content['images']]
    (root / 'labels.json').write_text(json.dumps(content))
    return root


@pytest.mark.parametrize('make', [csv_keras, via, via_exported, kitti, coco_without_sizes])
def test_boxes_of_images_as_stored_are_an_error(tmp_path: Path, make):
    turn(make(tmp_path), 4)
    with pytest.raises(UserError, match='(?s)all in images that EXIF data rotates.*exiftool'):
        made.read(tmp_path)


def test_one_box_of_an_image_as_stored_is_a_note(tmp_path: Path):
    turn(csv_keras(tmp_path), 1)
    (note,) = made.read(tmp_path).notes
    assert note.startswith('warning') and '1 of 12 boxes not inside their images' in note
    assert 'EXIF data rotates' in note and 'exiftool' in note


def test_masks_of_images_as_stored_are_said(tmp_path: Path):
    turn(class_masks(tmp_path) / 'images', 1)
    (problem,) = (p for p in made.read(tmp_path).problems if p.file.name == 'im0.png')
    assert 'rotated by its EXIF data' in problem.detail and 'exiftool' in problem.detail


@pytest.mark.parametrize(
    ('turned', 'change', 'is_found'),
    [
        (range(0, 60, 3), lambda values: values, True),
        (range(60), lambda values: values, True),
        # A few other mistakes.
        (range(0, 60, 3), lambda values: np.vstack([[600.0, 9, 99, 9], values[1:]]), True),
        (range(0, 60, 3), lambda values: values * 2, False),
        (range(0, 30), lambda values: values + [400, 0, 0, 0], False),
        # They were drawn on the images as seen.
        (range(0, 60, 3), lambda values: values[:, [1, 0, 3, 2]], False),
    ],
)
def test_boxes_of_images_as_stored_are_told_from_others(turned: range, change, is_found: bool):
    corners, sizes = drawn(0)
    is_turned = np.isin(np.arange(60), turned)
    values = CORNER_AND_SIZE.write(corners)
    values[is_turned] = change(values)[is_turned]
    boxes = Boxes(values, np.where(is_turned[:, None], sizes[:, ::-1], sizes))
    cause = of_stored_pixels(boxes, is_turned)
    assert (cause is not None) == is_found
    if is_found:
        assert not cause.chosen[~is_turned].any()


def test_an_image_in_several_splits_is_one_problem(tmp_path: Path):
    file = tmp_path / 'images' / 'a.png'
    file.parent.mkdir()
    Image.new('RGB', (32, 24)).save(file)
    content = dict(
        images=[dict(id=1, file_name='images/a.png', width=32, height=24)],
        annotations=[dict(id=1, image_id=1, category_id=1, bbox=[2, 3, 9, 9])],
        categories=[dict(id=1, name='cell')],
    )
    for name in ('test', 'train_a', 'train_b', 'val'):
        (tmp_path / f'{name}.json').write_text(json.dumps(content))
    problems = [one for one in made.read(tmp_path).problems if 'splits' in one.kind]
    assert [(one.file, one.detail) for one in problems] == [(file, 'train, val; test is kept')]
