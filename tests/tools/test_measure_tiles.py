"""Fields of small images, and their AP."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from measure_tiles import average_precision, make_fields
from pycocotools.coco import COCO

from ptnt_mm.utils.errors import UserError


@pytest.fixture
def labels(tmp_path: Path) -> COCO:
    """Nine images of 30 x 20 pixels with a box each, and one of another size."""
    images, objects = [], []
    for i in range(10):
        height, width = (20, 30) if i < 9 else (40, 40)
        cv2.imwrite(str(tmp_path / f'{i}.png'), np.full((height, width, 3), i, np.uint8))
        images.append(dict(id=i, file_name=f'{i}.png', height=height, width=width))
        box = dict(bbox=[i, 2, 5, 6], area=30, iscrowd=0)
        objects.append(dict(id=i + 1, image_id=i, category_id=7, **box))
    data = COCO()
    data.dataset = dict(images=images, annotations=objects, categories=[dict(id=7, name='cell')])
    data.createIndex()
    return data


def test_objects_move_with_their_images(labels: COCO, tmp_path: Path):
    fields = COCO(str(make_fields(labels, tmp_path, 2, tmp_path / 'fields')))
    assert len(fields.imgs) == 2 and len(fields.anns) == 8
    pixels = cv2.imread(str(tmp_path / 'fields' / fields.imgs[1]['file_name']))
    assert pixels.shape == (40, 60, 3)
    assert pixels[[0, 0, 39, 39], [0, 59, 0, 59], 0].tolist() == [4, 5, 6, 7]
    boxes = [item['bbox'] for item in fields.imgToAnns[1]]
    assert boxes == [[4, 2, 5, 6], [35, 2, 5, 6], [6, 22, 5, 6], [37, 22, 5, 6]]


def test_ap(labels: COCO, tmp_path: Path):
    fields = COCO(str(make_fields(labels, tmp_path, 3, tmp_path / 'fields')))
    found = [
        dict(image_id=0, category_id=7, bbox=item['bbox'], score=0.9)
        for item in fields.anns.values()
    ]
    scores = average_precision(fields, found)
    assert scores['all'] == scores['small'] == pytest.approx(1)
    assert scores['large'] == -1  # there are none
    assert average_precision(fields, found[:4])['all'] < 0.5


def test_too_few_images(labels: COCO, tmp_path: Path):
    with pytest.raises(UserError, match='4 x 4'):
        make_fields(labels, tmp_path, 4, tmp_path / 'fields')
