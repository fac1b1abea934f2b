"""Formats that are not read are named, with a way to convert them."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ptnt_mm.labels.foreign import foreign_labels
from ptnt_mm.labels.recognise import read_labels, recognise
from ptnt_mm.labels.tree import Tree
from ptnt_mm.utils.errors import UserError


def draw(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (24, 32, 3), np.uint8)).save(file)
    return file


_VIA_3 = {
    'project': {'pid': '__VIA_PROJECT_ID__', 'rev': '__VIA_PROJECT_REV_ID__'},
    'attribute': {'1': {'aname': 'class', 'type': 4}},
    'file': {'1': {'fid': '1', 'fname': 'a.jpg', 'type': 2, 'loc': 1, 'src': 'a.jpg'}},
    'metadata': {'1_x': {'vid': '1', 'flg': 0, 'z': [], 'xy': [2, 1, 2, 8, 9], 'av': {'1': 'cat'}}},
}

FOREIGN = {
    'VIA 3': ('via3.json', _VIA_3, 'VIA .* JSON'),
    'VIA 2 CSV': (
        'via.csv',
        '#filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,'
        'region_attributes\na.jpg,99,"{}",1,0,"{""name"":""rect"",""x"":1}","{}"\n',
        'VIA .* CSV',
    ),
    'boxes in one cell': (
        'train.csv',
        'image_id,width,height,bbox,source\na,32,24,"[1.0, 2.0, 8.0, 9.0]",x\n',
        'CSV boxes',
    ),
    'Open Images': (
        'boxes.csv',
        'ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax\na,x,/m/0,1,0.1,0.2,0.1,0.2\n',
        'Open Images',
    ),
    'classes of images': ('train.csv', 'file,label\na.jpg,cat\nb.jpg,dog\n', 'classes of images'),
    'DOTA': ('labelTxt/a.txt', 'imagesource:X\ngsd:0.1\n1 2 9 2 9 8 1 8 plane 0\n', 'DOTA'),
    'WIDER FACE': ('gt.txt', '0--Parade/a.jpg\n1\n1 2 8 9 0 0 0 0 0 0 \n', 'WIDER'),
    'VisDrone': ('annotations/a.txt', '1,2,8,9,1,4,0,0\n3,4,8,9,0,4,0,0\n', 'VisDrone'),
    'keras-yolo3': ('train.txt', 'images/a.jpg 1,2,9,11,0 3,4,9,11,1\nimages/b.jpg\n', 'lists'),
    'Supervisely': (
        'ds/ann/a.jpg.json',
        {'description': '', 'size': {'height': 24, 'width': 32}, 'tags': [],
         'objects': [{'classTitle': 'cat', 'points': {'exterior': [[1, 2], [9, 11]]}}]},
        'Supervisely',
    ),
    'Labelbox': (
        'export.ndjson', {'data_row': {'id': 'x', 'external_id': 'a.jpg'}, 'projects': {}},
        'Labelbox',
    ),
    'Create ML': (
        'labels.json',
        [{'image': 'a.jpg', 'annotations': [
            {'label': 'cat', 'coordinates': {'x': 5, 'y': 6, 'width': 8, 'height': 9}}]}],
        'Create ML',
    ),
    'BDD100K': (
        'det.json',
        [{'name': 'a.jpg', 'labels': [
            {'category': 'car', 'box2d': {'x1': 1, 'y1': 2, 'x2': 9, 'y2': 11}}]}],
        'BDD',
    ),
    'Label Studio': (
        'project.json',
        [{'id': 1, 'data': {'image': '/data/upload/1/a.jpg'}, 'annotations': [{'result': [
            {'from_name': 'label', 'type': 'rectanglelabels', 'value': {'x': 1}}]}]}],
        'Label Studio',
    ),
    'TFRecord': ('train.tfrecord', 'x', 'TFRecord'),
    'an unknown form': ('x.json', [{'pic': 'a.jpg', 'what': 1}, {'pic': 'b.jpg'}], 'unknown'),
}  # fmt: skip


@pytest.mark.parametrize('kind', FOREIGN)
def test_what_was_seen_is_named(tmp_path: Path, kind: str):
    file, content, name = FOREIGN[kind]
    for image in ('a.jpg', 'b.jpg'):
        draw(tmp_path / 'images' / image)
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(UserError, match=rf'(?s)Seen, but not read:.*{name}.*{path.name}.*convert'):
        recognise(Tree(tmp_path))
    assert len(foreign_labels(Tree(tmp_path))) == 1


def test_xml_of_the_web_version_of_labelme_is_not_voc(tmp_path: Path):
    draw(tmp_path / 'a.jpg')
    (tmp_path / 'a.xml').write_text(
        '<annotation><filename>a.jpg</filename><object><name>cat</name><polygon>'
        '<pt><x>1</x><y>2</y></pt><pt><x>9</x><y>2</y></pt><pt><x>9</x><y>8</y></pt>'
        '</polygon></object></annotation>'
    )
    tree = Tree(tmp_path)
    with pytest.raises(UserError, match='(?s)nothing in it can be used.*LabelMe XML.*label_me'):
        read_labels(tree, recognise(tree))


def test_folders_are_no_classes_beside_labels_of_objects(tmp_path: Path):
    for folder in ('monday', 'tuesday'):
        for name in ('a.jpg', 'b.jpg'):
            draw(tmp_path / folder / name)
        (tmp_path / folder / 'via3.json').write_text(json.dumps(_VIA_3))
    with pytest.raises(UserError, match='(?s)VIA.*--format folders'):
        recognise(Tree(tmp_path))
    assert recognise(Tree(tmp_path), 'folders').format.name == 'folders'


def test_a_table_beside_class_folders_is_named_and_not_refused(tmp_path: Path):
    """Stanford Cars and others have boxes in a table, and a folder for each class."""
    for folder in ('cat', 'dog'):
        draw(tmp_path / folder / f'{folder}.jpg')
    (tmp_path / 'boxes.csv').write_text('image,bbox\ncat/cat.jpg,1 2 9 11\ndog/dog.jpg,1 2 9 11\n')
    found = recognise(Tree(tmp_path))
    assert found.format.name == 'folders'
    assert [line for line in found.others if 'CSV boxes (boxes.csv)' in line]


def test_lists_of_classes_beside_class_folders_are_not_worth_a_line(tmp_path: Path):
    for folder in ('cat', 'dog'):
        draw(tmp_path / folder / f'{folder}.jpg')
    (tmp_path / 'train.txt').write_text('cat/cat.jpg 0\ndog/dog.jpg 1\n')
    (tmp_path / 'labels.csv').write_text('cat/cat.jpg,cat\ndog/dog.jpg,dog\n')
    (tmp_path / 'setid.mat').write_bytes(b'MATLAB 5.0 MAT-file')
    assert not recognise(Tree(tmp_path)).others


def test_the_columns_of_a_refused_table_are_named(tmp_path: Path):
    draw(tmp_path / 'a.jpg')
    (tmp_path / 'boxes.csv').write_text('file,x_center,ymin,breadth,kind\na.jpg,9,9,5,cat\n')
    with pytest.raises(UserError) as refused:
        recognise(Tree(tmp_path))
    line = next(line for line in str(refused.value).splitlines() if 'boxes.csv' in line)
    seen, unknown, missing = re.search(
        'columns: (.*); not .*: (.*); missing: (.*?)\\.', line
    ).groups()
    assert seen == 'file, x_center, ymin, breadth, kind'
    assert unknown == 'x_center, breadth, kind'
    assert missing == 'xmin, xmax, ymax'


def test_a_refused_table_without_a_header_has_no_columns_to_name(tmp_path: Path):
    draw(tmp_path / 'a.jpg')
    (tmp_path / 'boxes.csv').write_text('a.jpg,1,2,9,11\n')
    with pytest.raises(UserError) as refused:
        recognise(Tree(tmp_path))
    assert 'missing:' not in str(refused.value)
