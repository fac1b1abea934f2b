"""Every format is recognised and read; a fault costs no other label, and raises no traceback."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from repository import ROOT

from data import made
from data.formats import SAMPLES, TEXTS, WRONG
from data.formats.class_masks import class_masks, colour_masks
from data.formats.coco import coco, coco_entry, label_studio, roboflow_coco
from data.formats.csv import csv_keras
from data.formats.cvat import cvat, cvat_shapes
from data.formats.folders import class_folders
from data.formats.kitti import kitti
from data.formats.labelme import labelme
from data.formats.object_masks import object_masks
from data.formats.via import via
from data.formats.voc import voc
from data.formats.yolo import darknet, yolo, yolo_polygons
from data.made import Plant, Sample, read
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.cli.start import parser_of
from ptnt_mm.workbench.data.labels import Labels, Outcome
from ptnt_mm.workbench.data.recognise import read_labels, recognise, summary
from ptnt_mm.workbench.data.tree import Tree
from ptnt_mm.workbench.data.writers import WRITER_NAMES, all_writers
from ptnt_mm.workbench.inference.results import Results
from ptnt_mm.workbench.project.create import choose_task

NAME = attrgetter('name')


@pytest.fixture(scope='module')
def intact(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Sample], tuple[Path, Labels]]:
    """Write a sample and read it, once."""

    @cache
    def written(sample: Sample) -> tuple[Path, Labels]:
        root = sample.write(tmp_path_factory.mktemp(sample.name))
        return root, read(root)

    return written


def known_formats() -> list[str]:
    """The names in the docs, in the order in which formats are tried."""
    page = (ROOT / 'docs' / 'formats.md').read_text()
    return re.findall(r'^\| `([a-z][\w-]*)` \|', page, re.M)


def test_every_format_has_a_sample_and_is_in_the_help_and_the_docs():
    tested = {sample.format for sample in SAMPLES} | {text.values[0] for text in TEXTS}
    assert tested == set(known_formats()), 'tests/data/formats has a module for each'
    (option,) = (o for o in parser_of('new')._actions if '--format' in o.option_strings)
    assert option.help.partition('Known: ')[2].split(', ') == sorted(known_formats())
    assert tuple(all_writers()) == WRITER_NAMES  # their modules have the names of their formats


@pytest.mark.parametrize('sample', SAMPLES, ids=NAME)
def test_a_folder_is_recognised_and_its_labels_are_those_that_were_written(
    sample: Sample, intact: Callable
):
    root, labels = intact(sample)
    found = recognise(Tree(root))
    assert found.format.name == sample.format and found.why
    sample.holds(labels)
    splits = Counter(image.split for image in labels.images)
    assert splits == (sample.splits or {None: len(labels.images)})


def files_in(root: Path, files: dict[str, str | bytes]) -> Path:
    """Two pictures, with label files."""
    for i, name in enumerate(('a.jpg', 'b.jpg')):
        made.noise(root / name, i)
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def found_in(labels: Labels) -> dict[str, list[tuple]]:
    """The class and the box of each object, by the names of the images."""
    return {
        image.path.name: [(item.label, pytest.approx(item.box)) for item in image.objects]
        for image in labels.images
    }


@pytest.mark.parametrize(('name', 'files'), TEXTS)
def test_one_way_to_write_labels_is_as_good_as_another(tmp_path: Path, name: str, files: dict):
    root = files_in(tmp_path, files)
    assert recognise(Tree(root)).format.name == name
    labels = read(root)
    has_class = any(b'cat' in (root / file).read_bytes().replace(b'\0', b'') for file in files)
    label = 'cat' if has_class else 'object'
    assert found_in(labels) == {'a.jpg': [(label, made.BOX)], 'b.jpg': []}
    assert not labels.problems and not labels.notes


@pytest.mark.parametrize(('files', 'named'), WRONG)
def test_what_is_wrong_is_named_and_the_rest_is_used(tmp_path: Path, files: dict, named: str):
    labels = read(files_in(tmp_path, files))
    found = found_in(labels)
    assert found['a.jpg'][0] == ('cat', made.BOX) and 'b.jpg' in found
    (problem,) = labels.problems
    assert named in problem.detail and problem.file.name in files


PLANTED = [
    pytest.param(sample, kind, plant, id=f'{sample.name}-{name}')
    for sample in SAMPLES
    for kind in ('faults', 'harmless', 'emptied', 'fatal')
    for name, plant in getattr(sample, kind).items()
]


@pytest.mark.parametrize(('sample', 'kind', 'plant'), PLANTED)
def test_nothing_is_lost_in_silence(
    tmp_path: Path, intact: Callable, sample: Sample, kind: str, plant: Plant
):
    origin, whole = intact(sample)
    root = shutil.copytree(origin, tmp_path / 'data')
    plant(root)
    files = {file: file.read_bytes() for file in Tree(root).files}
    if kind == 'fatal':
        with pytest.raises(UserError, match=f'{root}.*none of it can be used'):
            read(root)
        return
    labels = read(root)
    used = {image.path for image in labels.images}
    named = {problem.file for problem in labels.problems}
    assert set(Tree(root).images) <= used | named | labels.aside
    # One fault is no reason to drop the rest.
    assert len(labels.images) >= len(whole.images) - 1
    if kind == 'faults':
        assert labels.problems, 'it was not noticed'
        assert summary(labels)
    else:
        before, after = (
            {image.path.stem: len(image.objects) for image in found.images}
            for found in (whole, labels)
        )
        assert after == before | (dict(im0=0) if kind == 'emptied' else {})
    assert {file: file.read_bytes() for file in Tree(root).files} == files
    assert not Path('/tmp/evil').exists()


def test_lists_of_voc_are_splits(tmp_path: Path):
    voc(tmp_path)
    lists = tmp_path / 'ImageSets' / 'Main'
    lists.mkdir(parents=True)
    for name, numbers in dict(train='01', val='2', trainval='0124', test='13').items():
        (lists / f'{name}.txt').write_text('\n'.join(f'im{i}' for i in numbers))
    labels = read(tmp_path)
    assert {image.path.stem: image.split for image in labels.images} == {
        'im0': 'train', 'im1': 'test', 'im2': 'val', 'im3': 'test', 'im4': None,
    }  # fmt: skip
    found = {problem.file.name: problem.detail.split(';')[0] for problem in labels.problems}
    assert found['train.txt'] == 'im1 is in train and test' and 'im5.xml' in found


@pytest.mark.parametrize(
    ('marks', 'names'),
    [(['1', '-1', ''], ['a', 'b', 'c']), (['', ' ', ''], ['photo 0', 'photo 1', 'other'])],
    ids=['marks', 'names that end like them'],
)
def test_marks_in_lists_of_voc(tmp_path: Path, marks: list[str], names: list[str]):
    lists = tmp_path / 'ImageSets' / 'Main'
    lists.mkdir(parents=True)
    for name in names:
        Image.new('RGB', (64, 48)).save(tmp_path / f'{name}.png')
        box = '<xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax>'
        content = f'<object><name>cat</name><bndbox>{box}</bndbox></object>'
        content = f'<annotation><filename>{name}.png</filename>{content}</annotation>'
        (tmp_path / f'{name}.xml').write_text(content)
    lines = [f'{name} {mark}' for name, mark in zip(names, marks, strict=True)]
    (lists / 'train.txt').write_text('\n'.join(lines))
    labels = read(tmp_path)
    assert {image.path.stem: image.split for image in labels.images} == dict.fromkeys(
        names, 'train'
    )
    assert not labels.problems


def test_lists_of_several_exports_count_for_their_own_images(tmp_path: Path):
    """All exports of CVAT have images of the same names."""
    for task in 'ab':
        root = class_masks(tmp_path / task)
        (root / 'images').rename(root / 'JPEGImages')
        (root / 'masks').rename(root / 'SegmentationClass')
        lists = root / 'ImageSets' / 'Segmentation'
        lists.mkdir(parents=True)
        for split, numbers in (('train', '0123'), ('val', '45')):
            chosen = numbers if task == 'a' else (str(5 - int(i)) for i in numbers)
            (lists / f'{split}.txt').write_text('\n'.join(f'im{i}' for i in chosen))
    found = {str(image.path.relative_to(tmp_path)): image.split for image in read(tmp_path).images}
    assert sorted(name for name, split in found.items() if split == 'val') == [
        'a/JPEGImages/im4.jpg', 'a/JPEGImages/im5.jpg', 'b/JPEGImages/im0.jpg',
        'b/JPEGImages/im1.jpg',
    ]  # fmt: skip
    assert len(found) == 12


def test_listed_label_files_without_labels_are_not_missing(tmp_path: Path):
    voc(tmp_path)
    lists = tmp_path / 'ImageSets' / 'Main'
    lists.mkdir(parents=True)
    (lists / 'trainval.txt').write_text('\n'.join(f'im{i}' for i in range(made.COUNT)))
    (tmp_path / 'Annotations' / 'im0.xml').write_text('')
    (tmp_path / 'Annotations' / 'im1.xml').write_text('<html></html>')
    (tmp_path / 'Annotations' / 'im2.xml').unlink()
    found = {problem.file.name: problem for problem in read(tmp_path).problems}
    assert found['im0.xml'].detail == 'it is empty'
    assert found['im1.xml'].detail == 'it has no <annotation>'
    assert 'missing' in found['im2.xml'].kind


def test_an_empty_label_file_is_called_empty(tmp_path: Path):
    voc(tmp_path)
    (tmp_path / 'Annotations' / 'im0.xml').write_text('')
    found = {problem.file.name: problem for problem in read(tmp_path).problems}
    assert found['im0.xml'].detail == 'it is empty'


def test_polygons_and_masks_are_kept(tmp_path: Path):
    for make in (yolo_polygons, cvat_shapes, label_studio, object_masks):
        labels = read(make(tmp_path / make.__name__))
        assert labels.has_masks(), make.__name__
    assert not read(yolo(tmp_path / 'boxes')).has_masks()


def rotated_coco(root: Path, **settings: Callable) -> Path:
    """COCO with other boxes or masks, made from left, top, width and height."""
    label_studio(root)
    content = json.loads((root / 'result.json').read_text())
    for annotation in content['annotations']:
        box = annotation['bbox']
        annotation |= dict(segmentation=[]) | {k: make(*box) for k, make in settings.items()}
    (root / 'result.json').write_text(json.dumps(content))
    return root


@pytest.mark.parametrize(
    'mask',
    [
        lambda x, y, w, h: [x, y, x + w, y, x + w, y + h],
        lambda x, y, w, h: [[x, y], [x + w, y], [x + w, y + h]],
        lambda x, y, w, h: [[str(value) for value in (x, y, x + w, y, x + w, y + h)]],
    ],
    ids=['flat', 'points', 'text'],
)
def test_polygons_of_another_form_are_objects_with_plain_ones(tmp_path: Path, mask: Callable):
    labels = read(rotated_coco(tmp_path, segmentation=mask))
    items = [item for image in labels.images for item in image.objects]
    assert items and not labels.problems
    for item in items:
        ((left, top, right, upper, _, lower),) = item.segmentation
        assert (left, top, right - left, lower - upper) == pytest.approx(item.box)


def rotated_labelme(root: Path, kind: str) -> Path:
    labelme(root)
    for file in root.rglob('*.json'):
        content = json.loads(file.read_text())
        content['shapes'] = [
            dict(label='cell', shape_type=kind, points=[[20, 5], [35, 20], [20, 35], [5, 20]])
        ]
        file.write_text(json.dumps(content))
    return root


def rotated_voc(root: Path) -> Path:
    """roLabelImg's boxes, beside an upright one."""
    voc(root)
    box = '<robndbox><cx>20</cx><cy>20</cy><w>30</w><h>10</h><angle>0.8</angle></robndbox>'
    for file in root.rglob('*.xml'):
        text = re.sub('<bndbox>.*?</bndbox>', box, file.read_text(), count=1, flags=re.DOTALL)
        file.write_text(text)
    return root


def rotated_yolo(root: Path) -> Path:
    yolo(root)
    for file in root.rglob('im*.txt'):
        file.write_text('0 0.5 0.1 0.9 0.5 0.5 0.9 0.1 0.5\n')
    return root


def upright(x: float, y: float, w: float, h: float) -> list[list[float]]:
    return [[x, y, x + w, y, x + w, y + h, x, y + h]]


ROTATED = {
    'rectangles in COCO': lambda root: rotated_coco(root, segmentation=upright),
    'closed rectangles': lambda root: rotated_coco(
        root, segmentation=lambda *box: [[*upright(*box)[0], *box[:2]]]
    ),
    'five numbers': lambda root: rotated_coco(
        root, bbox=lambda x, y, w, h: [x + w / 2, y + h / 2, w, h, 10.0]
    ),
    'eight numbers': lambda root: rotated_coco(root, bbox=lambda *box: upright(*box)[0]),
    'X-AnyLabeling': lambda root: rotated_labelme(root, 'rotation'),
    'LabelMe': lambda root: rotated_labelme(root, 'oriented_rectangle'),
    'roLabelImg': rotated_voc,
    'YOLO': rotated_yolo,
}


@pytest.mark.parametrize('kind', ROTATED)
def test_rotated_boxes_are_boxes_and_a_line_says_so(tmp_path: Path, kind: str):
    tree = Tree(ROTATED[kind](tmp_path))
    recognised = recognise(tree)
    labels = read_labels(tree, recognised)
    numbers = [len(image.objects) for image in labels.images]
    assert len(numbers) == made.COUNT and all(numbers)
    assert {problem.outcome for problem in labels.problems} <= {'clipped'}
    assert choose_task(recognised, labels, None) == 'detection'
    assert 'the upright box around each is used' in labels.notes[-1]
    if kind != 'roLabelImg':  # some of its boxes are upright
        assert choose_task(recognised, labels, 'instance') == 'instance'


def test_a_rarer_spelling_of_a_class_is_reported_where_it_is_used(tmp_path: Path):
    voc(tmp_path)
    (first, *_) = sorted(tmp_path.rglob('im*.xml'))
    first.write_text(first.read_text().replace('cell', 'Cell').replace('dot', 'd o t'))
    labels = read(tmp_path)
    assert {'Cell', 'cell', 'dot', 'd o t'} == set(labels.classes)
    assert {(p.file.stem, p.label, p.outcome) for p in labels.problems} == {
        ('im0', 'Cell', Outcome.KEPT),
        ('im0', 'd o t', Outcome.KEPT),
    }
    assert "'Cell' here, 'cell' in most images" in {p.detail for p in labels.problems}


def add_labels(root: Path, make: Callable[[Path], Path], count: int) -> None:
    """Add labels of the first images in another format."""
    other = make(root / 'other')
    if make is coco:
        content = json.loads((other / 'labels.json').read_text())
        content['annotations'] = [a for a in content['annotations'] if a['image_id'] < count]
        (root / 'labels.json').write_text(json.dumps(content))
    else:
        for i in range(count):
            (file,) = (file for file in other.rglob(f'im{i}.*') if file.suffix != '.png')
            file.rename(root / file.name)
    shutil.rmtree(other)


OTHERS = [
    (large, small)
    for large in (yolo, kitti, voc)
    for small in (voc, coco, labelme)
    if large is not small
]


@pytest.mark.parametrize(('large', 'small'), OTHERS, ids=lambda make: make.__name__)
@pytest.mark.parametrize('count', [1, 2, 3])
def test_a_format_with_labels_for_many_more_images_is_read(tmp_path: Path, large, small, count):
    root = large(tmp_path)
    add_labels(root, small, count)
    both = [large.__name__, small.__name__]
    first = next(name for name in known_formats() if name in both)
    found = recognise(Tree(root))
    assert found.format.name == (both[0] if 2 * count < made.COUNT else first)
    both.remove(found.format.name)
    assert f'`format={both[0]}`' in found.others[0]
    assert recognise(Tree(root), small.__name__).format.name == small.__name__


def test_a_format_that_cannot_be_read_is_not_replaced_by_a_stray_file(tmp_path: Path):
    file = coco(tmp_path) / 'labels.json'
    file.write_text(json.dumps(json.loads(file.read_text()) | dict(categories=[])))
    add_labels(tmp_path, labelme, 1)
    assert recognise(Tree(tmp_path)).format.name == 'coco'


def test_masks_are_searched_for_beside_label_files_only_in_a_folder_of_masks(tmp_path: Path):
    """Comparing the names of many pictures takes long."""
    images = voc(tmp_path) / 'JPEGImages'
    for i in range(made.COUNT):
        Image.fromarray(made.class_mask(i)).save(images / f'im{i}_mask.png')
    assert not recognise(Tree(tmp_path)).others
    (tmp_path / 'masks').mkdir()
    for file in images.glob('*_mask.png'):
        file.rename(tmp_path / 'masks' / file.name)
    (other,) = recognise(Tree(tmp_path)).others
    assert '`format=class-masks`' in other


@pytest.mark.parametrize('with_box', [True, False])
def test_polygons_of_voc_are_masks(tmp_path: Path, with_box: bool):
    voc(tmp_path)
    for file in tmp_path.rglob('*.xml'):
        corners = '<x1>5</x1><y1>6</y1><x2>30</x2><y2>6</y2><x3>9</x3><y3>30</y3>'
        polygon = f'<polygon>{corners}</polygon>'
        box = r'\g<0>' if with_box else ''
        text = re.sub('<bndbox>.*?</bndbox>', box + polygon, file.read_text(), flags=re.DOTALL)
        file.write_text(text)
    recognised = recognise(Tree(tmp_path))
    assert recognised.format.name == 'voc-polygons' and not recognised.others
    labels = read_labels(Tree(tmp_path), recognised)
    objects = [item for image in labels.images for item in image.objects]
    assert objects and all(item.segmentation == [[5, 6, 30, 6, 9, 30]] for item in objects)
    assert choose_task(recognised, labels, None) == 'instance'


def test_small_numbers_are_classes_unless_objects_are_asked_for(tmp_path: Path):
    tree = Tree(class_masks(tmp_path))
    found = recognise(tree)
    (other,) = found.others
    assert found.format.name == 'class-masks' and '`format=numbered-masks`' in other
    labels = read_labels(tree, recognise(tree, 'numbered-masks'))
    assert labels.has_masks() and {len(image.objects) for image in labels.images} == {2}


def test_the_group_of_roboflow_is_no_class(tmp_path: Path):
    assert read(roboflow_coco(tmp_path)).classes == list(made.NAMES)


@pytest.mark.parametrize(
    ('names', 'ids', 'keypoints', 'expected'),
    [
        (('car', 'car', 'bus'), (1, 2, 3), [], ['1, 2 are all called car']),
        (('car', 'car', 'bus'), (2, 2, 3), [], []),
        (('car', 'bus'), (1, 2), [5, 5, 2], ['keypoints of 2 objects']),
        (('car', 'bus'), (1, 2), [0, 0, 0], []),
    ],
)
def test_what_coco_files_have_and_a_project_has_not_is_noted(
    names: tuple, ids: tuple, keypoints: list, expected: list[str], tmp_path: Path
):
    made.draw(tmp_path / 'a.png', 0)
    boxes = [
        dict(id=i, image_id=1, category_id=key, bbox=[i, i, 9, 9], keypoints=keypoints)
        for i, key in enumerate(ids)
    ]
    content = dict(
        images=[coco_entry(1, 'a.png')],
        annotations=boxes,
        categories=[dict(id=i, name=name) for i, name in enumerate(names, 1)],
    )
    (tmp_path / 'x.json').write_text(json.dumps(content))
    notes = read(tmp_path).notes
    assert len(notes) == len(expected)
    assert all(part in note for part, note in zip(expected, notes, strict=True))


@pytest.mark.parametrize(
    ('values', 'classes', 'indices'),
    [
        ((0, 255, 255), ['background', 'object'], {0: 0, 255: 1}),
        ((0, 1, 255), ['background', 'class 1'], {0: 0, 1: 1}),
        ((0, 128, 255), ['class 0', 'class 128', 'class 255'], {0: 0, 128: 1, 255: 2}),
        ((1, 2, 3), ['class 1', 'class 2', 'class 3'], {1: 0, 2: 1, 3: 2}),
    ],
)
def test_greys_are_classes(tmp_path: Path, values, classes, indices):
    class_masks(tmp_path)
    for file in (tmp_path / 'masks').iterdir():
        pixels = np.array(values, np.uint8)[np.asarray(Image.open(file))]
        Image.fromarray(pixels).save(file)
    labels = read(tmp_path)
    assert (labels.classes, labels.mask_indices) == (classes, indices)


@pytest.mark.parametrize(
    ('file', 'content', 'classes'),
    [
        ('classes.txt', 'ground\ncell\n', ['ground', 'cell']),
        ('classes.txt', 'cell\n', ['background', 'cell']),
        ('classes.txt', 'a\nb\nc\n', ['background', 'object']),
        ('labelmap.txt', 'ground:0,0,0::\ncell:255,255,255::\n', ['ground', 'cell']),
        ('_classes.csv', 'Pixel Value, Class\n0, ground\n255, cell\n', ['ground', 'cell']),
    ],
)
def test_black_and_white_has_the_names_of_a_table(tmp_path: Path, file, content, classes):
    class_masks(tmp_path)
    for mask in (tmp_path / 'masks').iterdir():
        pixels = np.asarray(Image.open(mask))
        Image.fromarray((pixels > 0).astype('uint8') * 255).save(mask)
    (tmp_path / file).write_text(content)
    labels = read(tmp_path)
    assert (labels.classes, labels.mask_indices) == (classes, {0: 0, 255: 1})


def test_values_of_no_class_are_named_with_their_masks(tmp_path: Path):
    colour_masks(tmp_path)
    mask = next(tmp_path.rglob('im0_L.png'))
    Image.new('RGB', made.SIZE, (1, 2, 3)).save(mask)
    (problem,) = read(tmp_path).problems
    assert problem.file == mask and problem.detail == '1,2,3'


def test_numbers_that_are_not_fractions_are_not_boxes(tmp_path: Path):
    yolo(tmp_path)
    whole, one = (next(tmp_path.rglob(f'im{i}.txt')) for i in (0, 1))
    whole.write_text('0 40 30 20 20\n')
    one.write_text('0 0.5 0.5 0.2 0.2 0.93\n')
    labels = read(tmp_path)
    assert {(problem.file.stem, problem.outcome) for problem in labels.problems} == {
        ('im0', Outcome.LEFT_OUT),
        ('im1', Outcome.IN_PART),
    }
    assert 'im0' not in {image.path.stem for image in labels.images}


@pytest.mark.parametrize(
    ('make', 'file', 'good', 'bad'),
    [
        (voc, 'im0.xml', '<xmax>[^<]*', '<xmax>none'),
        (cvat, 'annotations.xml', 'xbr="[^"]*', 'xbr="none'),
        (labelme, 'im0.json', r'"points": \[', '"points": ["none", '),
        (label_studio, 'result.json', '"category_id": .', '"category_id": 9'),
    ],
    ids=['voc', 'cvat', 'labelme', 'coco'],
)
def test_images_that_lose_all_their_objects_are_left_out(
    tmp_path: Path, make, file: str, good: str, bad: str
):
    """Else they would be trained on as background."""
    whole = read(make(tmp_path))
    path = next(tmp_path.rglob(file))
    path.write_text(re.sub(good, bad, path.read_text(), count=2))  # the objects of im0
    labels = read(tmp_path)
    assert len(labels.images) == len(whole.images) - 1
    left_out = [p.file.stem for p in labels.problems if 'lost all' in p.kind]
    assert left_out == ['im0']


def test_an_image_whose_masks_are_all_unusable_is_left_out(tmp_path: Path):
    object_masks(tmp_path)
    for file in (tmp_path / 'im0' / 'masks').iterdir():
        file.write_bytes(b'')
    labels = read(tmp_path)
    assert 'im0' not in {image.path.stem for image in labels.images}
    assert any('lost all' in problem.kind for problem in labels.problems)


def test_files_that_are_cut_off_are_named(tmp_path: Path):
    labelme(tmp_path / 'a')
    file = next((tmp_path / 'a').rglob('*.json'))
    file.write_text(file.read_text()[:20])
    assert file in {problem.file for problem in read(tmp_path / 'a').problems}
    made.draw_all(tmp_path / 'b')
    (tmp_path / 'b' / 'annotations.json').write_text('{"images": [')
    with pytest.raises(UserError, match=r'annotations\.json: it is truncated'):
        recognise(Tree(tmp_path / 'b'))


def test_labels_that_are_not_known_are_answered_with_what_was_looked_for(tmp_path: Path):
    made.draw_all(tmp_path)
    (tmp_path / 'labels.parquet').write_bytes(b'PAR1')
    with pytest.raises(UserError) as error:
        recognise(Tree(tmp_path))
    assert '6 .png, 1 .parquet' in str(error.value)
    assert 'data.yaml' in str(error.value) and '"shapes"' in str(error.value)


def test_format_and_task_are_checked(tmp_path: Path):
    tree = Tree(yolo(tmp_path))
    with pytest.raises(UserError, match="unknown format 'yolov5'"):
        recognise(tree, name='yolov5')
    with pytest.raises(UserError, match="unknown task 'segment'"):
        recognise(tree, task='segment')
    with pytest.raises(UserError, match='`task=classification`'):
        recognise(tree, name='yolo', task='classification')


def test_a_task_without_labels_is_answered_with_what_there_is(tmp_path: Path):
    tree = Tree(voc(tmp_path))
    with pytest.raises(UserError) as error:
        recognise(tree, task='instance')
    said = str(error.value)
    assert '`task=instance` needs a mask for each object' in said
    assert f'{tmp_path} has only Pascal VOC (6 XML files with <annotation>) for detection' in said
    assert 'Leave out `task`' in said and 'labelme' in said
    with pytest.raises(UserError, match='but Pascal VOC is for detection. Leave out `task`'):
        recognise(tree, name='voc', task='instance')


@pytest.mark.parametrize(
    'make',
    [voc, coco, darknet, class_masks, class_folders],
    ids=lambda make: make.__name__,
)
def test_results_of_ptnt_infer_are_not_read(tmp_path: Path, make):
    """Drawn pictures have the names of the images."""
    before = read(make(tmp_path))
    results = Results(tmp_path / 'found')
    results.prepare()
    for image in before.images:
        drawn = results.drawn / image.path.relative_to(tmp_path)
        drawn.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(image.path, drawn)
    after = read(tmp_path)
    assert (after.images, after.classes) == (before.images, before.classes)
    assert 'results of ptnt infer, which are not read: found/predictions.json' in after.notes
    with pytest.raises(UserError, match='only results of ptnt infer'):
        Tree(tmp_path / 'found')


def test_different_images_of_one_name_are_listed(tmp_path: Path):
    voc(tmp_path)
    shutil.copytree(tmp_path / 'JPEGImages', tmp_path / 'old' / 'JPEGImages')
    for i in range(made.COUNT):
        made.draw(tmp_path / 'old' / 'JPEGImages' / f'im{i}.png', 10 + i)
    with pytest.raises(
        UserError, match=r'have this name: JPEGImages/im0\.png, old/JPEGImages/im0\.png'
    ):
        read(tmp_path)


@pytest.mark.parametrize(
    'make',
    [voc, coco, csv_keras, cvat, via, class_masks],
    ids=lambda make: make.__name__,
)
def test_equal_images_of_one_name_are_one(tmp_path: Path, make):
    before = read(make(tmp_path))
    for image in before.images:
        for folder in 'ab':
            (tmp_path / folder).mkdir(exist_ok=True)
            shutil.copy(image.path, tmp_path / folder)
        image.path.unlink()
    after = read(tmp_path)
    assert [image.objects for image in after.images] == [image.objects for image in before.images]
    assert {image.path.parent.name for image in after.images} == {'a'}
    kinds = [problem.kind for problem in after.problems]
    assert kinds.count('copies of images') == len(before.images)
