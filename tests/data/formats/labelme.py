"""LabelMe."""

import base64
import io
import json
from pathlib import Path

from PIL import Image

from ..made import COUNT, SIZE, Sample, boxes_of, draw_all
from ..planting import ESCAPE, cut, drop, edit, put, rewrite


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


SAMPLES = [
    Sample(
        labelme,
        faults={
            'cut': cut('*.json'),
            'shapes is a dict': edit('*.json', put('shapes', {})),
            'path in a dict': rewrite(
                '*.json', '"imagePath": ".*?"', '"meta": {"imagePath": "im0.png"}'
            ),
            'no label': edit('*.json', drop('shapes', 0, 'label')),
            'points of words': edit('*.json', put('shapes', 0, 'points', [['a', 'b']] * 3)),
            'a circle of three points': edit('*.json', put('shapes', 0, 'shape_type', 'circle')),
            'mask is no picture': edit('*.json', put('shapes', 1, 'mask', 'AAAA')),
            'path leads out': edit('*.json', put('imagePath', ESCAPE)),
            'another size': edit('*.json', put('imageWidth', 300)),
        },
    ),
]
