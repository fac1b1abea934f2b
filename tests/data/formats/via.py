"""VIA 1 and 2."""

import json
from functools import partial
from pathlib import Path

from ..made import (
    COUNT,
    Sample,
    boxes_of,
    draw_all,
)
from ..planting import (
    ESCAPE,
    cut,
    drop,
    edit,
    put,
    remove,
    replace,
)

_IM0 = '_via_img_metadata', 'im0.png1000'
_REGION = *_IM0, 'regions', 0


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


SAMPLES = [
    Sample(
        via,
        faults={
            'image is a word': partial(edit, '*.json', put(*_IM0, 'im0.png')),
            'no name': partial(edit, '*.json', drop(*_IM0, 'filename')),
            'path leads out': partial(edit, '*.json', put(*_IM0, 'filename', ESCAPE)),
            'region is a word': partial(edit, '*.json', put(*_REGION, 'cell')),
            'no shape': partial(edit, '*.json', drop(*_REGION, 'shape_attributes')),
            'coordinates missing': partial(
                edit, '*.json', drop(*_REGION, 'shape_attributes', 'all_points_y')
            ),
            'more x than y': partial(
                edit, '*.json', put(*_REGION, 'shape_attributes', 'all_points_x', [1] * 9)
            ),
            'points of words': partial(
                edit,
                '*.json',
                put(*_REGION, 'shape_attributes', 'all_points_x', ['a', 'b', 'c', 'd']),
            ),
            'no class': partial(edit, '*.json', drop(*_REGION, 'region_attributes', 'kind')),
            'empty class': partial(edit, '*.json', put(*_REGION, 'region_attributes', 'kind', ' ')),
            'two check boxes': partial(
                edit,
                '*.json',
                put(*_REGION, 'region_attributes', 'kind', dict(cell=True, dot=True)),
            ),
            'image missing': partial(remove, 'im0.png'),
        },
        harmless={
            'options are a list': partial(
                edit, '*.json', put('_via_attributes', 'region', 'kind', 'options', ['cell'])
            ),
            'attributes are a list': partial(edit, '*.json', put('_via_attributes', [])),
        },
        fatal={
            'cut': partial(cut, '*.json'),
            'list': partial(replace, '*.json', b'["regions", "file_attributes"]'),
        },
    ),
    Sample(via_exported),
]
