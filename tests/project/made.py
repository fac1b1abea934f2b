"""Small data sets in every format: written by labelformat, or laid out as other tools' docs say."""

import base64
import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from labelformat.formats.coco import COCOObjectDetectionOutput
from labelformat.formats.cvat import CVATObjectDetectionOutput
from labelformat.formats.kitti import KittiObjectDetectionOutput
from labelformat.formats.labelformat import LabelformatObjectDetectionInput
from labelformat.formats.pascalvoc import PascalVOCObjectDetectionOutput
from labelformat.formats.yolov8 import YOLOv8ObjectDetectionOutput
from labelformat.model.bounding_box import BoundingBox
from labelformat.model.category import Category
from labelformat.model.image import Image as LabelImage
from labelformat.model.object_detection import ImageObjectDetection, SingleObjectDetection
from PIL import Image, ImageDraw

from ptnt_mm.workbench.data.labels import Labels
from ptnt_mm.workbench.data.recognise import read_labels, recognise
from ptnt_mm.workbench.data.tree import Tree

SIZE = (96, 64)
NAMES = ('cell', 'dot')
COUNT = 6


def boxes_of(i: int) -> list[tuple[str, tuple[float, float, float, float]]]:
    """The objects of image i: classes and corners."""
    return [('cell', (4 + i, 6, 40 + i, 50)), ('dot', (60, 20 + i, 76, 40 + i))]


def read(root: Path, name: str | None = None, task: str | None = None) -> Labels:
    """The labels of a folder, as ptnt new reads them."""
    tree = Tree(root)
    return read_labels(tree, recognise(tree, name, task))


def draw(file: Path, i: int) -> Path:
    """Draw image i with its objects; all differ."""
    rng = np.random.default_rng(i)
    image = Image.fromarray(rng.integers(0, 90, (*SIZE[::-1], 3), np.uint8))
    pen = ImageDraw.Draw(image)
    for name, corners in boxes_of(i):
        pen.rectangle(corners, fill=(200, 40, 40) if name == 'cell' else (40, 200, 90))
    file.parent.mkdir(parents=True, exist_ok=True)
    image.save(file)
    return file


def draw_all(folder: Path, suffix: str = '.png', first: int = 0, count: int = COUNT) -> list[Path]:
    return [draw(folder / f'im{i}{suffix}', i) for i in range(first, first + count)]


def as_labelformat(suffix: str = '.png') -> LabelformatObjectDetectionInput:
    """The same objects in labelformat's classes."""
    categories = [Category(i, name) for i, name in enumerate(NAMES)]
    images = [LabelImage(i, f'im{i}{suffix}', *SIZE) for i in range(COUNT)]
    labels = [
        ImageObjectDetection(
            image,
            [
                SingleObjectDetection(categories[NAMES.index(name)], BoundingBox(*corners))
                for name, corners in boxes_of(image.id)
            ],
        )
        for image in images
    ]
    return LabelformatObjectDetectionInput(categories, images, labels)


def coco(root: Path) -> Path:
    """labelformat's COCO: annotations have no ids."""
    draw_all(root / 'images')
    COCOObjectDetectionOutput(root / 'labels.json').save(as_labelformat())
    return root


def voc(root: Path) -> Path:
    """labelformat's VOC, as in VOCdevkit."""
    draw_all(root / 'JPEGImages')
    PascalVOCObjectDetectionOutput(root / 'Annotations').save(as_labelformat())
    return root


def voc_beside(root: Path) -> Path:
    """XML next to the images, in train and valid: Roboflow's VOC."""
    for split, first in (('train', 0), ('valid', 4)):
        draw_all(root / split, first=first, count=4 if split == 'train' else 2)
    PascalVOCObjectDetectionOutput(root / 'all').save(as_labelformat())
    for i in range(COUNT):
        (root / 'all' / f'im{i}.xml').rename(root / ('train' if i < 4 else 'valid') / f'im{i}.xml')
    (root / 'all').rmdir()
    return root


def yolo(root: Path) -> Path:
    """labelformat's YOLOv8."""
    draw_all(root / 'images')
    YOLOv8ObjectDetectionOutput(root / 'data.yaml', 'train').save(as_labelformat())
    return root


def yolo_line(index: int, corners: tuple[float, ...]) -> str:
    left, top, right, bottom = corners
    width, height = SIZE
    centre = ((left + right) / 2 / width, (top + bottom) / 2 / height)
    return ' '.join(map(str, (index, *centre, (right - left) / width, (bottom - top) / height)))


def write_yolo_labels(folder: Path, numbers: range) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for i in numbers:
        lines = [yolo_line(NAMES.index(name), corners) for name, corners in boxes_of(i)]
        (folder / f'im{i}.txt').write_text('\n'.join(lines) + '\n')


def yolo_roboflow(root: Path) -> Path:
    """Roboflow's YOLO: paths lead out of the folder, as if the settings were one folder below."""
    for split, numbers in (('train', range(4)), ('valid', range(4, COUNT))):
        for i in numbers:
            draw(root / split / 'images' / f'im{i}.png', i)
        write_yolo_labels(root / split / 'labels', numbers)
    (root / 'data.yaml').write_text(
        'train: ../train/images\nval: ../valid/images\ntest: ../test/images\n'
        f'nc: 2\nnames: {list(NAMES)}\n\nroboflow:\n  workspace: none\n'
    )
    return root


def yolo_lists(root: Path) -> Path:
    """CVAT's 'Ultralytics YOLO': lists of images, and names by number."""
    for i in range(COUNT):
        draw(root / 'images' / 'all' / f'im{i}.png', i)
    write_yolo_labels(root / 'labels' / 'all', range(COUNT))
    for split, numbers in (('train', range(4)), ('val', range(4, COUNT))):
        names = (f'./images/all/im{i}.png' for i in numbers)
        (root / f'{split}.txt').write_text('\n'.join(names) + '\n')
    (root / 'data.yaml').write_text(
        'path: .\ntrain: train.txt\nval:\n  - val.txt\nnames:\n  0: cell\n  1: dot\n'
    )
    return root


def darknet(root: Path) -> Path:
    """CVAT's 'YOLO 1.1' and labelImg: labels next to the images, names in a file."""
    draw_all(root / 'obj_train_data')
    write_yolo_labels(root / 'obj_train_data', range(COUNT))
    (root / 'obj.names').write_text('cell\ndot\n')
    (root / 'obj.data').write_text('classes = 2\nnames = data/obj.names\n')
    return root


def yolo_polygons(root: Path) -> Path:
    """ultralytics' segments: polygons, with a box among them."""
    yolo(root)
    for i in range(COUNT):
        (name, (left, top, right, bottom)), (_, dot) = boxes_of(i)
        # Four corners would be those of a rotated box.
        points = (left, top, (left + right) / 2, top, right, top, right, bottom, left, bottom)
        scaled = (value / SIZE[k % 2] for k, value in enumerate(points))
        polygon = ' '.join(map(str, (NAMES.index(name), *scaled)))
        corners = (dot[0], dot[1], dot[2], dot[1], dot[2], dot[3], dot[0], dot[3])
        other = ' '.join(str(value / SIZE[k % 2]) for k, value in enumerate(corners))
        second = yolo_line(1, dot) if i == 0 else f'1 {other}'
        (root / 'labels' / f'im{i}.txt').write_text(f'{polygon}\n{second}\n')
    return root


def cvat(root: Path) -> Path:
    """labelformat's CVAT."""
    draw_all(root / 'images')
    CVATObjectDetectionOutput(root).save(as_labelformat())
    return root


def cvat_shapes(root: Path) -> Path:
    """'CVAT for images 1.1' as CVAT's documentation shows it: polygon, mask, ellipse, points."""
    draw_all(root / 'images')
    images = []
    for i in range(COUNT):
        (_, (left, top, right, bottom)), (_, dot) = boxes_of(i)
        points = f'{left},{top};{right},{top};{right},{bottom};{left},{bottom}'
        width, height = dot[2] - dot[0], dot[3] - dot[1]
        images.append(
            f'<image id="{i}" name="im{i}.png" subset="{"Train" if i < 4 else "Validation"}" '
            f'width="{SIZE[0]}" height="{SIZE[1]}">'
            f'<polygon label="cell" source="manual" occluded="0" points="{points}" z_order="0">'
            '</polygon>'
            f'<mask label="dot" source="manual" occluded="0" rle="0, {width * height}" '
            f'left="{dot[0]}" top="{dot[1]}" width="{width}" height="{height}" z_order="0"></mask>'
            '<points label="dot" points="3,3" z_order="0"></points></image>'
        )
    (root / 'annotations.xml').write_text(
        '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n<version>1.1</version>\n<meta>'
        '<task><labels><label><name>cell</name></label><label><name>dot</name></label></labels>'
        f'</task></meta>\n{"".join(images)}\n</annotations>\n'
    )
    return root


def labelme(root: Path) -> Path:
    """LabelMe 5: a polygon, a rectangle and, in the first image, a mask instead of it."""
    draw_all(root)
    for i in range(COUNT):
        (_, (left, top, right, bottom)), (_, dot) = boxes_of(i)
        rectangle = dict(
            label='dot', points=[dot[:2], dot[2:]], group_id=None, shape_type='rectangle', flags={}
        )
        if i == 0:
            stream = io.BytesIO()
            Image.new('1', (dot[2] - dot[0], dot[3] - dot[1]), 1).save(stream, 'PNG')
            mask = base64.b64encode(stream.getvalue()).decode()
            rectangle |= dict(shape_type='mask', mask=mask)
        polygon = dict(
            label='cell',
            points=[[left, top], [right, top], [right, bottom], [left, bottom]],
            group_id=None,
            shape_type='polygon',
            flags={},
        )
        content = dict(
            version='5.4.1',
            flags={},
            shapes=[polygon, rectangle],
            imagePath=f'im{i}.png',
            imageData=None,
            imageHeight=SIZE[1],
            imageWidth=SIZE[0],
        )
        (root / f'im{i}.json').write_text(json.dumps(content))
    return root


def coco_entry(i: int, name: str) -> dict:
    return dict(id=i, file_name=name, width=SIZE[0], height=SIZE[1])


def coco_annotations(numbers: range, first: int = 0) -> list[dict]:
    """Annotations as tools write them, with ids, polygons and areas."""
    annotations = []
    for i in numbers:
        for name, (left, top, right, bottom) in boxes_of(i):
            width, height = right - left, bottom - top
            # Four corners would be those of a rotated box.
            outline = (left, top, right, top, right, bottom, left, bottom, left, top + height / 2)
            annotations.append(
                dict(
                    id=len(annotations) + 1,
                    image_id=i,
                    category_id=first + NAMES.index(name),
                    bbox=[left, top, width, height],
                    area=width * height,
                    segmentation=[list(outline)],
                    iscrowd=0,
                )
            )
    return annotations


def roboflow_coco(root: Path) -> Path:
    """Roboflow's COCO: a file in each split, and a first category without objects."""
    categories = [dict(id=0, name='cells', supercategory='none')]
    categories += [
        dict(id=i, name=name, supercategory='cells') for i, name in enumerate(NAMES, start=1)
    ]
    for split, numbers in (('train', range(4)), ('valid', range(4, COUNT))):
        for i in numbers:
            draw(root / split / f'im{i}.png', i)
        annotations = coco_annotations(numbers, 1)
        for annotation in annotations:
            annotation['segmentation'] = []
        content = dict(
            info=dict(year='2024'),
            licenses=[],
            categories=categories,
            images=[coco_entry(i, f'im{i}.png') for i in numbers],
            annotations=annotations,
        )
        (root / split / '_annotations.coco.json').write_text(json.dumps(content))
    return root


def label_studio(root: Path) -> Path:
    """Label Studio's COCO export: result.json next to images, with paths of the server."""
    draw_all(root / 'images')
    content = dict(
        images=[
            coco_entry(i, f'../../label-studio/media/upload/1\\im{i}.png') for i in range(COUNT)
        ],
        categories=[dict(id=i, name=name) for i, name in enumerate(NAMES)],
        annotations=coco_annotations(range(COUNT)),
        info=dict(contributor='Label Studio'),
    )
    (root / 'result.json').write_text(json.dumps(content))
    return root


def write_rows(file: Path, rows: Iterable[Sequence], delimiter: str = ',') -> Path:
    with file.open('w', newline='') as stream:
        csv.writer(stream, delimiter=delimiter).writerows(rows)
    return file


def csv_tensorflow(root: Path) -> Path:
    """The header of TensorFlow's scripts, in files called after their split."""
    draw_all(root / 'images')
    header = ['filename', 'width', 'height', 'class', 'xmin', 'ymin', 'xmax', 'ymax']
    for split, numbers in (('train', range(4)), ('val', range(4, COUNT))):
        rows = [(f'im{i}.png', *SIZE, name, *box) for i in numbers for name, box in boxes_of(i)]
        write_rows(root / f'{split}_labels.csv', [header, *rows])
    return root


def csv_keras(root: Path) -> Path:
    """keras-retinanet: no header; an image without objects is not in the other tests' count."""
    draw_all(root / 'images')
    rows = [(f'images/im{i}.png', *box, name) for i in range(COUNT) for name, box in boxes_of(i)]
    write_rows(root / 'annotations.csv', rows)
    return root


def csv_spreadsheet(root: Path) -> Path:
    """A table in any order, as a European spreadsheet saves it: semicolons, a mark, CRLF."""
    draw_all(root / 'images')
    rows = [(box[3], name, *box[:3], f'im{i}') for i in range(COUNT) for name, box in boxes_of(i)]
    file = write_rows(
        root / 'table.csv', [('Y max', 'Label', 'X_min', 'Y_min', 'X_max', 'Image ID'), *rows], ';'
    )
    file.write_bytes(b'\xef\xbb\xbf' + file.read_bytes())
    return root


def csv_automl(root: Path) -> Path:
    """Google AutoML: the set, an address, shares of the image; two corners, or all four."""
    draw_all(root / 'images')
    rows = []
    for i in range(COUNT):
        for name, corners in boxes_of(i):
            left, top, right, bottom = (value / SIZE[k % 2] for k, value in enumerate(corners))
            others = (right, top), (left, bottom)
            (x2, y2), (x4, y4) = others if i else (('', ''), ('', ''))
            where = ('TRAIN' if i < 4 else 'VALIDATE', f'gs://bucket/set/im{i}.png', name)
            rows.append((*where, left, top, x2, y2, right, bottom, x4, y4))
    write_rows(root / 'export.csv', rows)
    return root


def via_image(i: int) -> dict:
    """An image of VIA 2: a polygon and a rectangle, with two attributes."""
    (_, (left, top, right, bottom)), (_, dot) = boxes_of(i)
    polygon = dict(
        name='polygon',
        all_points_x=[left, right, right, left],
        all_points_y=[top, top, bottom, bottom],
    )
    rectangle = dict(name='rect', x=dot[0], y=dot[1], width=dot[2] - dot[0], height=20)
    shapes = dict(cell=polygon, dot=rectangle)
    regions = [
        dict(shape_attributes=shape, region_attributes=dict(kind=name, remark='checked'))
        for name, shape in shapes.items()
    ]
    return dict(filename=f'im{i}.png', size=1000 + i, regions=regions, file_attributes={})


def via(root: Path) -> Path:
    """VIA 2: a saved project, whose attribute is a list of options."""
    draw_all(root / 'images')
    kinds = dict(type='radio', description='', options=dict(dot='', cell='a cell'))
    content = dict(
        _via_settings=dict(core=dict(default_filepath='C:\\pictures\\')),
        _via_img_metadata={f'im{i}.png{1000 + i}': via_image(i) for i in range(COUNT)},
        _via_attributes=dict(region=dict(kind=kinds, remark=dict(type='text')), file={}),
    )
    (root / 'via_project.json').write_text(json.dumps(content))
    return root


def via_exported(root: Path) -> Path:
    """VIA 1: exported annotations, regions by number, one attribute."""
    draw_all(root)
    content = {}
    for i in range(COUNT):
        image = via_image(i)
        for region in image['regions']:
            del region['region_attributes']['remark']
        content[f'im{i}.png'] = image | dict(regions=dict(enumerate(image['regions'])))
    (root / 'via_region_data.json').write_text(json.dumps(content))
    return root


def kitti(root: Path) -> Path:
    """labelformat's KITTI, with the pictures of the right camera, which have the same names."""
    draw_all(root / 'image_2')
    draw_all(root / 'image_3')
    KittiObjectDetectionOutput(root / 'label_2').save(as_labelformat())
    return root


def object_masks(root: Path) -> Path:
    """As in the Data Science Bowl: <id>/images/<id>.png and <id>/masks/*.png."""
    for i in range(COUNT):
        draw(root / f'im{i}' / 'images' / f'im{i}.png', i)
        for k, (_, (left, top, right, bottom)) in enumerate(boxes_of(i)):
            pixels = np.zeros(SIZE[::-1], np.uint8)
            pixels[top:bottom, left:right] = 255
            file = root / f'im{i}' / 'masks' / f'{k}.png'
            file.parent.mkdir(exist_ok=True)
            Image.fromarray(pixels).save(file)
    return root


def class_mask(i: int) -> np.ndarray:
    """0, 1 for cells and 2 for dots, (H, W)."""
    pixels = np.zeros(SIZE[::-1], np.uint8)
    for name, (left, top, right, bottom) in boxes_of(i):
        pixels[top:bottom, left:right] = NAMES.index(name) + 1
    return pixels


def class_masks(root: Path) -> Path:
    """Grey values that are indices, in images and masks."""
    draw_all(root / 'images', '.jpg')
    (root / 'masks').mkdir()
    for i in range(COUNT):
        Image.fromarray(class_mask(i)).save(root / 'masks' / f'im{i}.png')
    return root


def numbered_masks(root: Path) -> Path:
    """As for Cellpose and StarDist: 16 bits, a number for each object."""
    draw_all(root / 'images', '.tif')
    (root / 'masks').mkdir()
    for i in range(COUNT):
        pixels = np.zeros(SIZE[::-1], np.uint16)
        for number, (_, (left, top, right, bottom)) in enumerate(boxes_of(i), start=255):
            pixels[top:bottom, left:right] = number
        Image.fromarray(pixels).save(root / 'masks' / f'im{i}.tif')
    return root


def colour_masks(root: Path) -> Path:
    """CamVid: colours, a table, and folders of splits."""
    colours = np.array([(0, 0, 0), (64, 0, 128), (0, 0, 255)], np.uint8)
    for i in range(COUNT):
        split = 'train' if i < 4 else 'val'
        draw(root / split / f'im{i}.png', i)
        (root / f'{split}_labels').mkdir(exist_ok=True)
        Image.fromarray(colours[class_mask(i)]).save(root / f'{split}_labels' / f'im{i}_L.png')
    (root / 'class_dict.csv').write_text('name,r,g,b\nVoid,0,0,0\ncell,64,0,128\ndot,0,0,255\n')
    return root


def class_folders(root: Path) -> Path:
    """A folder for each class."""
    for i in range(COUNT * 2):
        draw(root / NAMES[i % 2] / f'im{i}.png', i)
    return root


BOXES: tuple[Callable[[Path], Path], ...] = (
    *(coco, voc, voc_beside, yolo, yolo_roboflow, yolo_lists, darknet, yolo_polygons, cvat),
    *(cvat_shapes, labelme, roboflow_coco, label_studio, object_masks, numbered_masks),
    *(csv_tensorflow, csv_keras, csv_spreadsheet, csv_automl, via, via_exported, kitti),
)
"""The data sets with the objects of :func:`boxes_of`."""

ALL = (*BOXES, class_masks, colour_masks, class_folders)
