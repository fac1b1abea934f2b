"""Names of a model's classes."""

from pathlib import Path

from mmengine.config import Config
from torch import nn

from ptnt_mm.engine.class_names import find_classes
from ptnt_mm.utils.colours import PALETTE, class_colours

PAIR = ('cat', 'dog')


class Head(nn.Module):
    def __init__(self, num_classes: int):
        super().__init__()
        self.num_classes = num_classes


def find(meta: dict, dataset: dict, num_classes: int = 2) -> dict:
    config = Config(dict(default_scope='mmdet', test_dataloader=dict(dataset=dataset)))
    return find_classes(meta, config, nn.Sequential(Head(1), Head(num_classes)))


COCO = dict(type='CocoDataset')
NAMED = dict(type='CocoDataset', metainfo=dict(classes=('apple', 'pear')))


def test_the_checkpoint_comes_first():
    for meta in (dict(dataset_meta=dict(CLASSES=PAIR)), dict(CLASSES=PAIR, epoch=1)):
        assert find(meta, NAMED)['classes'] == PAIR


def test_names_are_printable():
    meta = dict(dataset_meta=dict(classes=('cat\x1b[2J', 'dog\0\n')))
    assert find(meta, NAMED)['classes'] == (r'cat\x1b[2J', r'dog\x00\n')
    assert find(dict(dataset_meta=['cat']), NAMED)['classes'] == ('apple', 'pear')


def test_then_the_config():
    assert find({}, NAMED)['classes'] == ('apple', 'pear')
    wrapped = dict(type='RepeatDataset', times=2, dataset=dict(type='Concat', datasets=[NAMED]))
    assert find({}, wrapped)['classes'] == ('apple', 'pear')


def test_names_outside_of_metainfo(tmp_path: Path):
    """As mmpretrain's data sets take them."""
    (tmp_path / 'names.txt').write_text('apple\npear\n')
    for classes in (('apple', 'pear'), str(tmp_path / 'names.txt')):
        assert find({}, dict(type='CocoDataset', classes=classes))['classes'] == ('apple', 'pear')


def test_then_the_kind_of_data_set():
    found = find({}, COCO, num_classes=80)
    assert found['classes'][:2] == ('person', 'bicycle')
    assert found['palette'][0] == (220, 20, 60), "COCO's own colours"


def test_names_of_another_data_set_are_no_names():
    assert find({}, COCO, num_classes=4)['classes'] is None
    assert find(dict(dataset_meta=dict(classes=PAIR)), COCO, 80)['classes'][0] == 'person'
    assert find(dict(dataset_meta=dict(classes=('cat',))), NAMED)['classes'] == ('apple', 'pear')


def test_colours_of_another_data_set_are_left():
    meta = dict(dataset_meta=dict(classes=PAIR, palette=[(1, 2, 3)] * 80))
    assert find(meta, COCO)['palette'] == [*PALETTE[:2]]
    meta['dataset_meta']['palette'] = [[1, 2, 3], [4, 5, 6]]
    assert find(meta, COCO)['palette'] == [(1, 2, 3), (4, 5, 6)]


def test_colours_go_on_in_other_shades():
    many = class_colours(21)
    assert many[:7] == list(PALETTE) and len(set(many)) == 21
    assert sum(many[7]) < sum(many[0])
