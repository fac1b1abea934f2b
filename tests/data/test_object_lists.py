"""CSV tables, VIA and KITTI: columns, encodings, attributes, regions without labels."""

import json
from pathlib import Path

import numpy as np
import pytest

from data.formats.csv import csv_tensorflow
from data.formats.voc import voc
from data.made import BOX, noise, read
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.data.boxes import REPEAT_RULES, Listed
from ptnt_mm.workbench.data.labels import Labels, ignored_regions
from ptnt_mm.workbench.data.recognise import recognise
from ptnt_mm.workbench.data.tree import Tree


def draw(root: Path, *names: str) -> Path:
    for i, name in enumerate(names or ('a.jpg', 'b.jpg')):
        noise(root / name, i)
    return root


def found(labels: Labels) -> dict[str, list[tuple]]:
    """The classes and boxes of each image."""
    return {
        image.path.name: [(item.label, item.box) for item in image.objects]
        for image in labels.images
    }


def test_decimal_commas_need_no_header(tmp_path: Path):
    content = 'a.jpg;10,5;5;30,5;35,25;cat\nb.jpg;10,5;5;30,5;35;cat\n'
    (draw(tmp_path) / 'boxes.csv').write_text(content)
    assert found(read(tmp_path))['a.jpg'] == [('cat', (10.5, 5, 20, 30.25))]


@pytest.mark.parametrize(
    ('encoding', 'notes'), [('utf-8', 0), ('utf-8-sig', 0), ('utf-16', 0), ('cp1252', 1)]
)
def test_class_names_keep_their_letters(tmp_path: Path, encoding: str, notes: int):
    content = 'file,x1,y1,x2,y2,class\na.jpg,10,5,30,35,Müller\n'
    (draw(tmp_path) / 'boxes.csv').write_bytes(content.encode(encoding))
    labels = read(tmp_path)
    assert labels.classes == ['Müller'] and len(labels.notes) == notes


def test_a_table_without_classes_has_one(tmp_path: Path):
    (draw(tmp_path) / 'boxes.csv').write_text('image,xmin,ymin,xmax,ymax\na.jpg,10,5,30,35\n')
    assert read(tmp_path).classes == ['object']


def test_rows_are_named_by_their_lines_in_the_file(tmp_path: Path):
    content = (
        'a.jpg,10,5,30,35,cat\n\n,,,,,\n"b.jpg",10,5,30,35,"cat\nor dog"\na.jpg,x,5,30,35,cat\n'
    )
    (draw(tmp_path) / 'boxes.csv').write_text(content)
    (problem,) = read(tmp_path).problems
    assert 'line 6' in problem.detail


def test_sizes_of_boxes_instead_of_images_are_explained(tmp_path: Path):
    content = 'file,xmin,ymin,xmax,ymax,class,width,height\na.jpg,10,5,30,35,cat,20,30\n'
    (draw(tmp_path) / 'boxes.csv').write_text(content)
    with pytest.raises(UserError, match='20 x 30.*width.*rename'):
        read(tmp_path)


def test_an_image_with_only_wrong_rows_is_no_background(tmp_path: Path):
    (draw(tmp_path) / 'x.csv').write_text('a.jpg,10,5,30,35,cat\nb.jpg,10,5,30,x,cat\n')
    assert list(found(read(tmp_path))) == ['a.jpg']


def test_an_open_quote_loses_no_image_in_silence(tmp_path: Path):
    (draw(tmp_path) / 'x.csv').write_text('a.jpg,10,5,30,35,cat\n"b.jpg,10,5,30,35,cat\n')
    labels = read(tmp_path)
    assert {'b.jpg'} < {problem.file.name for problem in labels.problems}


def test_shares_in_a_table_of_pixels_are_refused(tmp_path: Path):
    content = ''.join(f'{name}.jpg,0.1,0.1,0.3,0.7,cat\n' for name in 'ab')
    (draw(tmp_path) / 'x.csv').write_text(content)
    with pytest.raises(UserError, match=r'x\.csv.*between 0 and 1'):
        read(tmp_path)


@pytest.mark.parametrize(
    'content',
    [
        'ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax\na,x,/m/0,1,0.1,0.2,0.1,0.2\n',
        'image,bbox,label\na.jpg,"[10, 5, 20, 30]",cat\n',
        'image,x,y,w,h,label\na.jpg,10,5,20,30,cat\nb.jpg,10,5,20,30,cat\n',
        'a.jpg,cat\nb.jpg,dog\n',
        'name,r,g,b\ncat,1,2,3\n',
        '',
    ],
)
def test_other_tables_are_no_boxes(tmp_path: Path, content: str):
    (draw(tmp_path) / 'x.csv').write_text(content)
    with pytest.raises(UserError):
        recognise(Tree(tmp_path), 'csv')


def test_boxes_in_a_table_come_before_folders_and_after_files_of_one_image(tmp_path: Path):
    """The table of TensorFlow's scripts is made from VOC's files, which are more exact."""
    for folder in ('cat', 'dog'):
        draw(tmp_path / 'a', f'{folder}/{folder}.jpg')
    (tmp_path / 'a' / 'x.csv').write_text(
        'cat/cat.jpg,10,5,30,35,cat\ndog/dog.jpg,10,5,30,35,dog\n'
    )
    assert recognise(Tree(tmp_path / 'a')).format.name == 'csv'
    csv_tensorflow(voc(tmp_path / 'b'))
    both = recognise(Tree(tmp_path / 'b'))
    assert both.format.name == 'voc' and any('csv' in line for line in both.others)


def region(attributes: dict, **shape: object) -> dict:
    shape = shape or dict(name='rect', x=10, y=5, width=20, height=30)
    return dict(shape_attributes=shape, region_attributes=attributes)


def via(root: Path, *regions: dict, attributes: dict | None = None) -> Path:
    """A project of one image, or its exported annotations."""
    images = {'a.jpg9': dict(filename='a.jpg', size=9, regions=list(regions), file_attributes={})}
    project = dict(_via_img_metadata=images, _via_attributes=dict(region=attributes))
    (draw(root) / 'via.json').write_text(json.dumps(images if attributes is None else project))
    return root


SHAPES = {
    'polygon': (
        dict(all_points_x=[10, 20, 30, 30, 10], all_points_y=[5, 5, 5, 35, 35]), BOX,
    ),
    'circle': (dict(cx=30, cy=20, r=10), (20, 10, 20, 20)),
    'ellipse': (dict(cx=50, cy=25, rx=20, ry=10, theta=0), (30, 15, 40, 20)),
}  # fmt: skip


@pytest.mark.parametrize('name', SHAPES)
def test_outlines_of_via_are_masks(tmp_path: Path, name: str):
    shape, box = SHAPES[name]
    labels = read(via(tmp_path, region({'class': 'cat'}, name=name, **shape)))
    assert labels.has_masks()
    assert found(labels)['a.jpg'][0][1] == pytest.approx(box, abs=0.5)


def test_angles_of_via_are_radians_clockwise(tmp_path: Path):
    """A quarter turn exchanges the radii; after an eighth, the right end is the lower one."""
    shape = dict(name='ellipse', cx=50, cy=25, rx=20, ry=2)
    boxes = []
    for i, theta in enumerate((np.pi / 2, np.pi / 4)):
        labels = read(via(tmp_path / str(i), region({'class': 'cat'}, theta=theta, **shape)))
        (item,) = labels.images[0].objects
        boxes.append(item.box)
    assert boxes[0] == pytest.approx((48, 5, 4, 40), abs=0.5)
    (points,) = item.segmentation
    right = max(range(0, len(points), 2), key=points.__getitem__)
    assert points[right + 1] > 25


def test_a_list_of_images_of_via_is_named(tmp_path: Path):
    via(tmp_path, region({'class': 'cat'}))
    entry = dict(filename='b.jpg', regions=[], file_attributes={})
    (tmp_path / 'other.json').write_text(json.dumps(dict(_via_img_metadata=[entry])))
    (problem,) = [item for item in read(tmp_path).problems if item.file.name == 'other.json']
    assert 'found a list' in problem.detail


def test_regions_without_attributes_are_objects(tmp_path: Path):
    """As in the balloons of many tutorials."""
    assert read(via(tmp_path, region({}))).classes == ['object']


@pytest.mark.parametrize(
    ('attributes', 'chosen'),
    [
        (dict(remark='blurred', Class='cat'), 'cat'),
        (dict(remark='blurred', species='cat'), 'cat'),
        (dict(species=dict(cat=True, dog=False)), 'cat'),
        (dict(species=' cat '), 'cat'),
        (dict(species=7), '7'),
    ],
)
def test_one_attribute_is_the_class(tmp_path: Path, attributes: dict, chosen: str):
    declared = dict(remark=dict(type='text'), species=dict(type='dropdown', options=dict(cat='')))
    labels = read(via(tmp_path, region(attributes), attributes=declared))
    assert [label for label, _ in found(labels)['a.jpg']] == [chosen]
    assert len(labels.notes) == len(attributes) - 1


def test_numbers_of_options_have_names(tmp_path: Path):
    """VIA imports COCO's categories as options by their ids."""
    declared = dict(species=dict(type='radio', options={'2': 'dog', '1': 'cat', '3': ''}))
    labels = read(
        via(tmp_path, region(dict(species='1')), region(dict(species='3')), attributes=declared)
    )
    assert labels.classes == ['dog', 'cat', '3']
    assert {label for label, _ in found(labels)['a.jpg']} == {'cat', '3'}


def kitti_line(label: str, *corners: float) -> str:
    return f'{label} 0.00 0 -1.57 {" ".join(map(str, corners))} 1.5 1.6 3.4 1.8 1.4 8.4 0.01\n'


def test_regions_of_kitti_without_labels_are_ignored_for_every_class(tmp_path: Path):
    draw(tmp_path, 'training/image_2/a.jpg', 'training/image_2/b.jpg', 'testing/image_2/c.jpg')
    labels_of = tmp_path / 'training' / 'label_2'
    labels_of.mkdir()
    (labels_of / 'a.txt').write_text(
        kitti_line('Car', 10, 5, 30, 35) + kitti_line('DontCare', 50, 5, 60, 15)
    )
    (labels_of / 'b.txt').write_text(kitti_line('Van', 10, 5, 30, 35).strip() + ' 0.93\n')
    labels = read(tmp_path)
    assert labels.classes == ['Car', 'Van']
    assert {image.split for image in labels.images} == {'train'}
    ignored = [item for image in labels.images for item in image.objects if item.ignored]
    assert [(item.label, item.box) for item in ignored] == [
        (name, (50, 5, 10, 10)) for name in labels.classes
    ]
    assert ignored_regions(labels) == '1 DontCare'
    assert {problem.file.name for problem in labels.problems} == {'c.jpg'}


def test_ignored_regions_of_several_classes_are_no_contradiction():
    (rule,) = [rule for rule in REPEAT_RULES if 'different class' in rule.what]
    twice = [Listed('here', name, is_ignored) for is_ignored in (True, False) for name in 'ab']
    assert rule.applies_to(twice).tolist() == [False, False, False, True]


def test_wrong_lines_of_kitti_make_no_classes(tmp_path: Path):
    (draw(tmp_path, 'image_2/a.jpg') / 'label_2').mkdir()
    (tmp_path / 'label_2' / 'a.txt').write_text(
        kitti_line('Car', 10, 5, 30, 35) + kitti_line('DontCare', 50, 5, 60, 15) + 'Cra 0 1\n'
    )
    (image,) = (labels := read(tmp_path)).images
    assert labels.classes == ['Car'] and [item.label for item in image.objects] == ['Car', 'Car']
    assert [problem.label for problem in labels.problems] == ['Cra']
