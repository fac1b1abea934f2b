"""VIA 1 and 2."""

import json
from pathlib import Path

from ..made import COUNT, Sample, boxes_of, draw_all
from ..planting import ESCAPE, cut, drop, edit, put, remove, replace

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
            'image is a word': edit('*.json', put(*_IM0, 'im0.png')),
            'no name': edit('*.json', drop(*_IM0, 'filename')),
            'path leads out': edit('*.json', put(*_IM0, 'filename', ESCAPE)),
            'region is a word': edit('*.json', put(*_REGION, 'cell')),
            'no shape': edit('*.json', drop(*_REGION, 'shape_attributes')),
            'coordinates missing': edit(
                '*.json', drop(*_REGION, 'shape_attributes', 'all_points_y')
            ),
            'more x than y': edit(
                '*.json', put(*_REGION, 'shape_attributes', 'all_points_x', [1] * 9)
            ),
            'points of words': edit(
                '*.json', put(*_REGION, 'shape_attributes', 'all_points_x', ['a', 'b', 'c', 'd'])
            ),
            'no class': edit('*.json', drop(*_REGION, 'region_attributes', 'kind')),
            'empty class': edit('*.json', put(*_REGION, 'region_attributes', 'kind', ' ')),
            'two check boxes': edit(
                '*.json', put(*_REGION, 'region_attributes', 'kind', dict(cell=True, dot=True))
            ),
            'image missing': remove('im0.png'),
        },
        harmless={
            'options are a list': edit(
                '*.json', put('_via_attributes', 'region', 'kind', 'options', ['cell'])
            ),
            'attributes are a list': edit('*.json', put('_via_attributes', [])),
        },
        fatal={
            'cut': cut('*.json'),
            'list': replace('*.json', b'["regions", "file_attributes"]'),
        },
    ),
    Sample(via_exported),
]


def _text(*regions: dict) -> dict[str, str]:
    """Exported annotations of the class ``class``."""
    common = dict(file_attributes={}, size=9)
    images = dict(a=dict(filename='a.jpg', regions=list(regions)) | common)
    images |= dict(b=dict(filename='b.jpg', regions=[]) | common)
    return {'via.json': json.dumps(images)}


def _region(label: str, **shape: object) -> dict:
    return dict(shape_attributes=shape, region_attributes={'class': label})


_CAT = _region('cat', name='rect', x=10, y=5, width=20, height=30)
_OUTLINE = dict(all_points_x=[10, 20, 30, 30, 10], all_points_y=[5, 5, 5, 35, 35])
_LINE = dict(cx=1, cy=2, all_points_x=[1, 2, 3], all_points_y=[1, 2, 1])

TEXTS = {
    'a rectangle': _text(_CAT),
    'a polygon': _text(_region('cat', name='polygon', **_OUTLINE)),
    'a name with spaces': _text(_region(' cat ', **_CAT['shape_attributes'])),
}

WRONG = {
    str(name): (_text(_CAT, _region('dog', name=name, **_LINE)), f'{name} of dog')
    for name in ('point', 'polyline', ['rect'], {}, None, 7)
}
