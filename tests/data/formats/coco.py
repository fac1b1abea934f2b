"""COCO: labelformat's, Roboflow's and Label Studio's."""

import json
from pathlib import Path

from labelformat.formats.coco import COCOObjectDetectionOutput

from ..made import COUNT, NAMES, SIZE, Sample, as_labelformat, boxes_of, draw, draw_all
from ..planting import ESCAPE, cut, drop, edit, put, replace


def coco(root: Path) -> Path:
    """labelformat's COCO: annotations have no ids."""
    draw_all(root / 'images')
    COCOObjectDetectionOutput(root / 'labels.json').save(as_labelformat())
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


def one_box_each(lefts: dict[str, int], size: tuple[int, int] | None = None) -> str:
    """A cat in each image, whose left side tells whose it is."""
    sides = dict(zip(('width', 'height'), size, strict=True)) if size else {}
    names = list(lefts)
    return json.dumps(
        dict(
            images=[dict(id=i, file_name=name, **sides) for i, name in enumerate(names)],
            annotations=[
                dict(id=i, image_id=i, category_id=1, bbox=[lefts[name], 5, 20, 35])
                for i, name in enumerate(names)
            ],
            categories=[dict(id=1, name='cat')],
        )
    )


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


def _name_by_address(content: dict) -> None:
    """As in LVIS."""
    for entry in content['images']:
        name = entry.pop('file_name').rpartition('\\')[2]
        entry['coco_url'] = f'http://images.cocodataset.org/train2017/{name}'


def _singular(content: dict) -> None:
    content['annotation'] = content.pop('annotations')
    for entry in content['images']:
        entry['filename'] = entry.pop('file_name')


SAMPLES = [
    Sample(coco),
    Sample(roboflow_coco, splits={'train': 4, 'val': 2}),
    Sample(
        label_studio,
        faults={
            'entries are words': edit('*.json', put('annotations', 0, 'box')),
            'annotation of an unknown image': edit('*.json', put('annotations', 0, 'image_id', 99)),
            'neither box nor mask': edit(
                '*.json', put('annotations', 0, dict(id=1, image_id=0, category_id=0))
            ),
            'image without a name': edit('*.json', drop('images', 0, 'file_name')),
            'path leads out': edit('*.json', put('images', 0, 'file_name', ESCAPE)),
            'absolute path': edit('*.json', put('images', 0, 'file_name', '/etc/passwd.png')),
            'same image twice': edit('*.json', put('images', 1, 'file_name', 'im0.png')),
            'category without a name': edit('*.json', drop('categories', 0, 'name')),
        },
        harmless={
            'names that are addresses': edit('*.json', _name_by_address),
            'keys in the singular': edit('*.json', _singular),
            'no box': edit('*.json', drop('annotations', 0, 'bbox')),
            'no size': edit('*.json', drop('images', 0, 'width')),
            'ids are words': edit('*.json', put('images', 0, 'id', '0')),
        },
        fatal={
            'cut': cut('*.json'),
            'list': replace('*.json', b'["images", "annotations", "categories"]'),
            'images is a dict': edit('*.json', put('images', {})),
        },
    ),
]
