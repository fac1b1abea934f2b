"""Names of a model's classes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ptnt_mm.api import load_predictor
from ptnt_mm.utils.colours import PALETTE, class_colours
from ptnt_mm.utils.errors import UserError

from .samples import write_heads_only

PAIR = ('cat', 'dog')


Load = Callable[..., dict]


@pytest.fixture
def find(tmp_path: Path) -> Load:
    """The names and colours of a checkpoint's model, whose test data has a dataset config."""

    def load(meta: dict, dataset: dict, *heads: int, reads: bool = False) -> dict:
        config, file = write_heads_only(tmp_path, meta, dataset, *heads or (1, 2), reads=reads)
        return load_predictor(config, str(file), 'cpu').dataset_meta

    return load


COCO = dict(type='CocoDataset')
NAMED = dict(type='CocoDataset', metainfo=dict(classes=('apple', 'pear')))


def test_the_checkpoint_comes_first(find: Load):
    for meta in (dict(dataset_meta=dict(CLASSES=PAIR)), dict(CLASSES=PAIR, epoch=1)):
        assert find(meta, NAMED)['classes'] == PAIR


def test_names_are_printable(find: Load):
    meta = dict(dataset_meta=dict(classes=('cat\x1b[2J', 'dog\0\n')))
    assert find(meta, NAMED)['classes'] == (r'cat\x1b[2J', r'dog\x00\n')
    assert find(dict(dataset_meta=['cat']), NAMED)['classes'] == ('apple', 'pear')


def test_then_the_config(find: Load):
    assert find({}, NAMED)['classes'] == ('apple', 'pear')
    wrapped = dict(type='RepeatDataset', times=2, dataset=dict(type='Concat', datasets=[NAMED]))
    assert find({}, wrapped)['classes'] == ('apple', 'pear')


def test_names_outside_of_metainfo(tmp_path: Path, find: Load):
    """As mmpretrain's data sets take them."""
    (tmp_path / 'names.txt').write_text('apple\npear\n')
    for classes in (('apple', 'pear'), str(tmp_path / 'names.txt')):
        assert find({}, dict(type='CocoDataset', classes=classes))['classes'] == ('apple', 'pear')


def test_then_the_kind_of_data_set(find: Load):
    found = find({}, COCO, 80)
    assert found['classes'][:2] == ('person', 'bicycle')
    assert found['palette'][0] == (220, 20, 60), "COCO's own colours"


def test_names_of_another_data_set_are_no_names(find: Load):
    assert find({}, COCO, 4)['classes'] is None
    assert find(dict(dataset_meta=dict(classes=PAIR)), COCO, 80)['classes'][0] == 'person'
    assert find(dict(dataset_meta=dict(classes=('cat',))), NAMED)['classes'] == ('apple', 'pear')


def test_colours_of_another_data_set_are_left(find: Load):
    meta = dict(dataset_meta=dict(classes=PAIR, palette=[(1, 2, 3)] * 80))
    assert find(meta, COCO)['palette'] == [*PALETTE[:2]]
    meta['dataset_meta']['palette'] = [[1, 2, 3], [4, 5, 6]]
    assert find(meta, COCO)['palette'] == [(1, 2, 3), (4, 5, 6)]


def test_colours_go_on_in_other_shades():
    many = class_colours(21)
    assert many[:7] == list(PALETTE) and len(set(many)) == 21
    assert sum(many[7]) < sum(many[0])


@pytest.fixture
def compare(find: Load, caplog: pytest.LogCaptureFixture) -> Callable[..., str | None]:
    """The message about a checkpoint whose data has other names; None without one."""

    def compare(meta: dict, classes: object, *heads: int, **options: bool) -> str | None:
        metainfo = {} if classes is None else dict(metainfo=dict(classes=classes))
        find(meta, COCO | metainfo, *heads, **options)
        said = [text for text in caplog.messages if 'epoch_1.pth has' in text]
        return said[-1] if said else None

    return compare


THREE = ('cat', 'dog', 'bird')
LONG = [f'kind {i}' for i in range(80)]


@pytest.mark.parametrize(
    ('stored', 'classes'),
    [
        (THREE, ('dog', 'cat', 'bird')),
        (list(THREE), ['Bird', 'cat', 'DOG ']),
        (('A', 'a', 'b'), ('a', 'A', 'b')),
        (('grade+', 'grade-', 'grade_'), ('grade+', 'grade_', 'grade-')),
        (('crane', 'crane', 'bird'), ('crane', 'bird', 'crane')),
    ],
)
def test_the_same_names_in_another_order_are_refused(stored, classes, compare: Callable):
    for meta in (dict(dataset_meta=dict(classes=stored)), dict(CLASSES=stored)):
        with pytest.raises(UserError) as refused:
            compare(meta, classes, 1, 3)
        for order in (stored, classes):
            assert ', '.join(order).strip() in str(refused.value)


def test_a_long_order_is_shown_from_its_first_difference(compare: Callable):
    swapped = [*LONG[:50], LONG[51], LONG[50], *LONG[52:]]
    with pytest.raises(UserError, match='kind 50, kind 51, .*kind 51, kind 50, ') as refused:
        compare(dict(dataset_meta=dict(classes=LONG)), swapped, 80)
    assert 'kind 49' not in str(refused.value)


def test_other_names_are_listed(compare: Callable):
    said = compare(dict(dataset_meta=dict(classes=THREE)), ('cat', 'wolf', 'bird'), 3)
    assert "1: 'dog', now 'wolf'" in said and 'bird' not in said


@pytest.mark.parametrize(
    ('meta', 'classes', 'heads'),
    [
        (dict(dataset_meta=dict(classes=THREE)), list(THREE), (3,)),
        (
            dict(dataset_meta=dict(classes=('Traffic light', 'cat'))),
            ('traffic_light', 'Cat '),
            (2,),
        ),
        ({}, THREE, (3,)),
        (dict(dataset_meta=None, epoch=3), THREE, (3,)),
        (dict(dataset_meta=dict(palette=[(1, 2, 3)])), THREE, (3,)),
        (dict(dataset_meta=dict(classes=None)), THREE, (3,)),
        (dict(dataset_meta=dict(classes='cat')), THREE, (3,)),
        (dict(dataset_meta=[dict(classes=THREE[::-1])]), THREE, (3,)),
        (dict(dataset_meta=dict(classes=THREE)), None, (3,)),
        # Fine-tuning replaces the head.
        (dict(dataset_meta=dict(classes=LONG)), THREE, (3,)),
        # The head has a class for anything, or for each word of a text.
        (dict(dataset_meta=dict(classes=THREE)), THREE[::-1], (1,)),
        (dict(dataset_meta=dict(classes=THREE)), THREE[::-1], (256,)),
    ],
)
def test_what_cannot_be_compared_is_quiet(
    meta: dict, classes: object, heads: tuple[int, ...], compare: Callable
):
    assert compare(meta, classes, *heads) is None


def test_names_that_a_model_reads_as_text_may_have_any_order(compare: Callable):
    meta = dict(dataset_meta=dict(classes=THREE))
    assert compare(meta, THREE[::-1], 3, reads=True) is None
