"""The count of corrections: each predicted box is one of five kinds."""

import json
from pathlib import Path

import pytest
from project import made

from .workplace import load_tool

tool = load_tool('dev/count_corrections')

CELL, DOT = ([float(value) for value in corners] for _, corners in made.boxes_of(0))


@pytest.mark.parametrize(
    ('found', 'expected'),
    [
        ([], {'are drawn': 2}),
        ([('cell', CELL), ('dot', DOT)], {'stay': 2}),
        ([('cell', CELL), ('cell', DOT)], {'stay': 1, 'get another class': 1}),
        ([('dot', [60, 20, 76, 33])], {'move': 1, 'are drawn': 1}),
        ([('dot', DOT), ('dot', DOT)], {'stay': 1, 'are deleted': 1, 'are drawn': 1}),
        ([('dot', [0, 0, 3, 3])], {'are deleted': 1, 'are drawn': 2}),
    ],
)
def test_every_box_is_of_one_kind(tmp_path: Path, capsys, found: list, expected: dict):
    made.labelme(tmp_path / 'labels')
    detections = [dict(label=label, score=0.5, box=box) for label, box in found]
    detections.append(dict(label='dot', score=0.1, box=[1, 1, 9, 9]))
    entry = dict(file='below/im0.png', detections=detections)
    (tmp_path / 'predictions.json').write_text(json.dumps(dict(images=[entry])))
    tool.main([str(tmp_path / 'predictions.json'), str(tmp_path / 'labels')])
    first, *_, row, _, _ = capsys.readouterr().out.splitlines()
    assert first == '1 images with 2 objects'
    cells = [cell.strip() for cell in row.strip('|').split('|')]
    assert cells == ['0.3', str(len(found)), *(str(expected.get(kind, 0)) for kind in tool.KINDS)]


def test_an_image_is_known_by_its_path_before_its_name(tmp_path: Path, capsys):
    """Cameras give the same names every day."""
    made.labelme(tmp_path / 'labels' / 'tuesday')
    made.labelme(tmp_path / 'labels' / 'wednesday')
    for file in (tmp_path / 'labels' / 'wednesday').glob('*.json'):
        content = json.loads(file.read_text())
        file.write_text(json.dumps(dict(content, shapes=[])))
    (image,) = (tmp_path / 'labels' / 'tuesday').rglob('im0.png')
    boxes = [dict(label='cell', score=0.9, box=CELL), dict(label='dot', score=0.9, box=DOT)]
    predictions = tmp_path / 'predictions.json'
    predictions.write_text(json.dumps(dict(images=[dict(file=str(image), detections=boxes)])))
    assert tool.main([str(predictions), str(tmp_path / 'labels')]) == 0
    assert '1 images with 2 objects' in capsys.readouterr().out
    predictions.write_text(json.dumps(dict(images=[dict(file='im0.png', detections=boxes)])))
    assert tool.main([str(predictions), str(tmp_path / 'labels')]) == 1
    assert 'im0.png' in capsys.readouterr().err
