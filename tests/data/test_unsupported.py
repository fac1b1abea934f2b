"""Formats that are not read are named, with a way to convert them."""

import json
import re
import time
from pathlib import Path

import pytest

from data.made import noise, read
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.data.recognise import recognise
from ptnt_mm.workbench.data.tree import Tree


def draw(file: Path) -> Path:
    return noise(file, size=(32, 24))


_VIA_3 = {
    'project': {'pid': '__VIA_PROJECT_ID__', 'rev': '__VIA_PROJECT_REV_ID__'},
    'attribute': {'1': {'aname': 'class', 'type': 4}},
    'file': {'1': {'fid': '1', 'fname': 'a.jpg', 'type': 2, 'loc': 1, 'src': 'a.jpg'}},
    'metadata': {'1_x': {'vid': '1', 'flg': 0, 'z': [], 'xy': [2, 1, 2, 8, 9], 'av': {'1': 'cat'}}},
}

UNSUPPORTED = {
    'VIA 3': ('via3.json', _VIA_3, 'JSON of VIA 3'),
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
        'CSV boxes',
    ),
    'makesense': ('labels.csv', 'cat,6,4,8,9,a.jpg,32,24\ndog,1,2,3,4,a.jpg,32,24\n', 'CSV boxes'),
    'Label Studio CSV': (
        'project.csv',
        'id,image,label\n1,/data/a.jpg,"[{""x"": 4.5, ""rectanglelabels"": [""cat""]}]"\n',
        'CSV of Label Studio',
    ),
    'classes of images': ('train.csv', 'file,label\na.jpg,cat\nb.jpg,dog\n', 'classes of images'),
    'DOTA': ('labelTxt/a.txt', 'imagesource:X\ngsd:0.1\n1 2 9 2 9 8 1 8 plane 0\n', 'DOTA'),
    'WIDER FACE': ('gt.txt', '0--Parade/a.jpg\n1\n1 2 8 9 0 0 0 0 0 0 \n', 'text with boxes'),
    'VisDrone': ('annotations/a.txt', '1,2,8,9,1,4,0,0\n3,4,8,9,0,4,0,0\n', 'VisDrone'),
    'keras-yolo3': (
        'train.txt', 'images/a.jpg 1,2,9,11,0 3,4,9,11,1\nimages/b.jpg\n', 'text with boxes'
    ),
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
        'JSON with boxes',
    ),
    'Label Studio': (
        'project.json',
        [{'id': 1, 'data': {'image': '/data/upload/1/a.jpg'}, 'annotations': [{'result': [
            {'from_name': 'label', 'type': 'rectanglelabels', 'value': {'x': 1}}]}]}],
        'Label Studio',
    ),
    'Label Studio JSON-MIN': (
        'min.json',
        [{'image': '/data/upload/1/a.jpg', 'id': 1, 'annotator': 1, 'lead_time': 3.1,
          'label': [{'x': 1, 'y': 2, 'rectanglelabels': ['cat']}]}],
        'Label Studio',
    ),
    'QuPath': (
        'a.geojson',
        {'type': 'FeatureCollection', 'features': [
            {'type': 'Feature', 'properties': {'objectType': 'annotation'}}]},
        'QuPath',
    ),
    'COCO without categories': (
        'x.json',
        {'images': [{'id': 1, 'file_name': 'a.jpg'}],
         'annotations': [{'image_id': 1, 'bbox': [1, 2, 3, 4]}]},
        'COCO JSON with other keys',
    ),
    'Roboflow, two classes': (
        '_classes.csv', 'filename, early, late\na.jpg, 1, 0\nb.jpg, 0, 1\n', 'a column for each'
    ),
    'Roboflow, five classes': (
        '_classes.csv', 'filename,a,b,c,d,e\na.jpg,1,0,0,0,1\nb.jpg,0,1,0,0,0\n', 'a column for'
    ),
    'run lengths in another order': (
        'train.csv', 'id,annotation,width\na,26 3 50 4,32\nb,1 2,32\n', 'run lengths'
    ),
    'YouTube-VIS': (
        'train.json',
        {'videos': [{'file_names': ['v/a.jpg']}], 'annotations': [{'bboxes': [[1, 2, 3, 4]]}]},
        'JSON with boxes',
    ),
    'boxes of an unknown XML': ('a.xml', '<x><o x="1"><rbox>1 2 3 4</rbox></o></x>', 'XML with'),
    'TFRecord': ('train.tfrecord', 'x', 'TFRecord'),
    'MATLAB, all in one': ('labels.mat', 'MATLAB 5.0 MAT-file', 'MATLAB files'),
    'NumPy': ('masks.npz', 'PK', 'NumPy arrays'),
    'parquet': ('train.parquet', 'PAR1', 'a table of images and labels'),
    'an unknown form': ('x.json', [{'pic': 'a.jpg', 'what': 1}, {'pic': 'b.jpg'}], 'unknown'),
}  # fmt: skip


def refused(root: Path) -> str:
    """The message about a folder whose labels are not read."""
    with pytest.raises(UserError) as error:
        recognise(Tree(root))
    return str(error.value)


@pytest.mark.parametrize('kind', UNSUPPORTED)
def test_what_was_seen_is_named(tmp_path: Path, kind: str):
    file, content, name = UNSUPPORTED[kind]
    for image in ('a.jpg', 'b.jpg'):
        draw(tmp_path / 'images' / image)
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    said = refused(tmp_path)
    assert re.search(rf'(?s)Found, but not supported:.*{name}.*{path.name}.*convert', said)
    assert said.count('To convert: ') == 1


@pytest.mark.parametrize('header', ['image,Mask RLE', 'image,defect_EncodedPixels'])
def test_run_lengths_in_columns_of_other_names_are_named(tmp_path: Path, header: str):
    draw(tmp_path / 'a.jpg')
    (tmp_path / 'train.csv').write_text(f'{header}\na.jpg,26 3 50 4\n')
    with pytest.raises(UserError, match='run lengths .train.csv.* ImageId and EncodedPixels'):
        recognise(Tree(tmp_path))


def test_run_lengths_without_a_column_of_images_are_an_error_with_the_columns(tmp_path: Path):
    draw(tmp_path / 'a.jpg')
    (tmp_path / 'train.csv').write_text('idx,rle\na.jpg,26 3 50 4\n')
    with pytest.raises(UserError, match='its columns are idx, rle: expected ImageId'):
        read(tmp_path)


def test_tags_of_cvat_are_classes_of_images(tmp_path: Path):
    draw(tmp_path / 'a.jpg')
    (tmp_path / 'a.xml').write_text(
        '<annotations><image id="0" name="a.jpg" width="32" height="24"><tag label="cat"/></image>'
        '</annotations>'
    )
    with pytest.raises(UserError, match=r'tags, which are classes of whole images.*ImageNet.*1 im'):
        read(tmp_path)


@pytest.mark.parametrize(
    ('suffix', 'shown'), [('mat', r'scipy\.io\.loadmat'), ('npy', r'numpy\.load')]
)
@pytest.mark.parametrize('name', ['masks/{}', 'truth/GT_{}_mask'])
def test_arrays_for_each_image_are_labels_even_beside_folders(
    tmp_path: Path, name: str, suffix: str, shown: str
):
    for i, folder in enumerate(('indoor', 'outdoor', 'indoor')):
        draw(tmp_path / folder / f'{i}.jpg')
        array = tmp_path / f'{name.format(i)}.{suffix}'
        array.parent.mkdir(exist_ok=True)
        array.write_bytes(b'\0')
    with pytest.raises(UserError, match=rf'(?s)may.*masks.*{shown}.*fromarray.*--format folders'):
        recognise(Tree(tmp_path))


def test_folders_are_no_classes_beside_labels_of_objects(tmp_path: Path):
    for folder in ('monday', 'tuesday'):
        for name in ('a.jpg', 'b.jpg'):
            draw(tmp_path / folder / name)
        (tmp_path / folder / 'via3.json').write_text(json.dumps(_VIA_3))
    with pytest.raises(UserError, match='(?s)VIA.*--format folders'):
        recognise(Tree(tmp_path))
    assert recognise(Tree(tmp_path), 'folders').format.name == 'folders'


@pytest.mark.parametrize(
    ('file', 'text', 'name'),
    [
        (
            'label_02/{}.txt',
            '0 0 Car 0 0 -1.5 1.5 2 30 40.2 1.5 1.6 3.8 -2 1.6 12.4 -1.6',
            'KITTI tr',
        ),
        ('instances_txt/{}.txt', '0 2001 2 96 128 WSV:2d000l0O', 'MOTS'),
        (
            'xml/{}.xml',
            '<sequence name="x"><frame num="1"><target id="1"/></frame></sequence>',
            'XML with boxes',
        ),
        ('{}/groundtruth_rect.txt', '198,214,34,81', 'OTB'),
        ('{}/groundtruth.txt', '198\t214\t34\t81', 'OTB'),
        ('{}/gt/gt.txt', '1,1,912,484,97,109,0,7,1', 'MOT'),
        ('{}/gt.txt', '1,2,30,2,30,20,1,20', 'MOT'),
        ('annotations/{}.txt', '1,0,593,43,174,190,0,0,0,0', 'VisDrone'),
    ],
)
def test_folders_of_frames_are_no_classes_beside_labels_of_videos(
    tmp_path: Path, file: str, text: str, name: str
):
    for sequence in ('0000', 'car'):
        for i in range(3):
            draw(tmp_path / 'frames' / sequence / f'{i:06d}.png')
        path = tmp_path / file.format(sequence)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{text}\n{text}\n')
    with pytest.raises(UserError, match=f'(?s){name}.*--format folders'):
        recognise(Tree(tmp_path))


@pytest.mark.parametrize(
    ('other', 'is_short'),
    [(None, True), ('README.md', True), ('LICENSE', True), ('photo.heic', True), ('a.txt', False)],
)
def test_of_photographs_alone_no_format_is_listed(
    tmp_path: Path, other: str | None, is_short: bool
):
    for i in range(3):
        draw(tmp_path / f'{i}.jpg')
    if other:
        (tmp_path / other).write_text('not labels')
    said = '3 images and no labels.*ptnt pretrain' if is_short else 'Supported:.*a data.yaml'
    with pytest.raises(UserError, match=f'(?s){said}'):
        recognise(Tree(tmp_path))


def test_text_that_may_be_labels_is_named_beside_class_folders(tmp_path: Path):
    for folder in ('cat', 'dog'):
        draw(tmp_path / folder / f'{folder}.jpg')
        (tmp_path / folder / 'own.txt').write_text('frame1 person 12 13 40 50\n')
    (other,) = recognise(Tree(tmp_path)).others
    assert 'text with boxes (cat/own.txt, dog/own.txt)' in other


@pytest.mark.parametrize(
    'line',
    [
        ' '.join(f'{i:08}.jpg' for i in range(4000)),
        ','.join(f'{i:08}.jpg' for i in range(4000)),
        '01' * 2**15,
        'x' * 2**16,
    ],
    ids=['names', 'cells', 'digits', 'letters'],
)
@pytest.mark.parametrize('suffix', ['txt', 'csv'])
def test_long_lines_are_searched_in_little_time(tmp_path: Path, line: str, suffix: str):
    draw(tmp_path / 'a.jpg')
    (tmp_path / f'a.{suffix}').write_text(line)
    start = time.process_time()
    refused(tmp_path)
    assert time.process_time() - start < 1


def test_long_rows_are_recognised(tmp_path: Path):
    runs = ' '.join(f'{i} 2' for i in range(1000, 9000, 10))
    (tmp_path / 'a.csv').write_text(f'id,annotation\na,{runs}\n')
    (tmp_path / 'b.csv').write_text(f'file,x\na.jpg{",0" * 900}\n')
    draw(tmp_path / 'a.jpg')
    said = refused(tmp_path)
    assert 'CSV with masks as run lengths (a.csv)' in said
    assert 'CSV with a column for each class (b.csv)' in said and said.count('To convert') == 2


def test_two_files_of_each_folder_are_opened(tmp_path: Path):
    for folder, text in (('a', 'a note'), ('b', 'a note'), ('c', 'frame1 person 12 13 40 50')):
        (tmp_path / folder).mkdir()
        for i in range(30):
            (tmp_path / folder / f'{i}.txt').write_text(text)
    draw(tmp_path / 'a.jpg')
    said = refused(tmp_path)
    assert 'text with boxes (c/0.txt, c/1.txt)' in said and said.count('To convert') == 1


@pytest.mark.parametrize(
    ('name', 'line'),
    [
        ('a.HEIC', '1 .heic picture left out: .*pillow-heif'),
        ('a.avif', '1 .avif picture left out'),
        ('a.jp2', '1 .jp2 picture left out: save'),
        ('a.dcm', 'DICOM.*pydicom'),
        ('a.b.nii.gz', '1 .nii.gz picture left out: .*volumes'),
    ],
)
def test_pictures_that_are_not_read_are_counted(tmp_path: Path, name: str, line: str):
    for folder in ('cat', 'dog'):
        draw(tmp_path / folder / 'x.jpg')
    draw(tmp_path / 'x.png').rename(tmp_path / 'cat' / name)
    (note,) = read(tmp_path).notes
    assert re.search(line, note)
    for file in tmp_path.rglob('*.jpg'):
        file.unlink()
    with pytest.raises(UserError, match=line):
        recognise(Tree(tmp_path))


def test_gifs_jfif_and_names_that_begin_with_a_space_are_read(tmp_path: Path):
    for folder in (' cat', 'dog '):
        draw(tmp_path / folder / ' a.jpg').rename(tmp_path / folder / ' a.jfif')
        draw(tmp_path / folder / 'b.gif')
    labels = read(tmp_path)
    assert labels.classes == ['cat', 'dog'] and not labels.notes
    assert sorted(image.path.name for image in labels.images) == [' a.jfif'] * 2 + ['b.gif'] * 2


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


def test_the_first_line_of_a_refused_table_is_shown(tmp_path: Path):
    draw(tmp_path / 'a.jpg')
    (tmp_path / 'boxes.csv').write_text('file,x_center,ymin,breadth,kind\na.jpg,9,9,5,cat\n')
    with pytest.raises(UserError, match='boxes.csv.*line: file,x_center,ymin,breadth,kind.*xmin'):
        recognise(Tree(tmp_path))
