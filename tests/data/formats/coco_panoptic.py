"""COCO's panoptic labels."""

import json
from pathlib import Path

import numpy as np
from PIL import Image

from ..made import COUNT, NAMES, SIZE, Sample, boxes_of, draw
from ..planting import ESCAPE, cut, drop, edit, put, remove, resize


def coco_panoptic(root: Path) -> Path:
    """A PNG for each image, whose colours are the numbers of its segments."""
    annotations: dict[str, list] = dict(train=[], val=[])
    (root / 'annotations').mkdir(parents=True)
    for i in range(COUNT):
        split = 'train' if i < 4 else 'val'
        draw(root / split / f'im{i}.jpg', i)
        colours = np.zeros((*SIZE[::-1], 3), np.uint8)
        segments = []
        for k, (name, (left, top, right, bottom)) in enumerate(boxes_of(i), start=1):
            colours[top:bottom, left:right] = (k, i, 0)
            segments.append(dict(id=k + 256 * i, category_id=NAMES.index(name) + 5))
        masks = root / 'annotations' / f'panoptic_{split}'
        masks.mkdir(exist_ok=True)
        Image.fromarray(colours).save(masks / f'im{i}.png')
        entry = dict(image_id=i, file_name=f'im{i}.png', segments_info=segments)
        annotations[split].append(entry)
    for split, entries in annotations.items():
        content = dict(
            images=[dict(id=e['image_id'], file_name=f'im{e["image_id"]}.jpg') for e in entries],
            annotations=entries,
            categories=[dict(id=i, name=name) for i, name in enumerate(NAMES, start=5)],
        )
        (root / 'annotations' / f'panoptic_{split}.json').write_text(json.dumps(content))
    return root


_SEGMENT = 'annotations', 0, 'segments_info', 0
_TRAIN = '*train.json'

SAMPLES = [
    Sample(
        coco_panoptic,
        splits={'train': 4, 'val': 2},
        faults={
            'image missing': remove('train/im0.jpg'),
            'mask missing': remove('panoptic_train/im0.png'),
            'mask cut': cut('panoptic_train/im0.png'),
            'mask of a different size': resize('panoptic_train/im0.png'),
            'unknown image': edit(_TRAIN, put('annotations', 0, 'image_id', 99)),
            'unknown category': edit(_TRAIN, put(*_SEGMENT, 'category_id', 99)),
            'unknown segment': edit(_TRAIN, put(*_SEGMENT, 'id', 9)),
            'segment is a word': edit(_TRAIN, put(*_SEGMENT, 'cell')),
            'no segments': edit(_TRAIN, drop('annotations', 0, 'segments_info')),
            'path leads out': edit(_TRAIN, put('images', 0, 'file_name', ESCAPE)),
        },
    )
]
