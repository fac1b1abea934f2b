"""Data in a different folder."""

from pathlib import Path

import pytest
from mmengine.config import Config

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.config.read import read_config
from ptnt_mm.workbench.config.view import SPLITS, ConfigView


@pytest.mark.parametrize('folder', ['/elsewhere/it is', Path('other'), '../other/'])
@pytest.mark.parametrize(
    'name',
    [
        *('retinanet_ptnt_s_1x', 'mask_rcnn_ptnt_s_3x_ms', 'custom_coco', 'demo_gfl_lite0'),
        *('semantic_fpn_ptnt_s_40k_ade20k', 'upernet_ptnt_s_80k_cityscapes'),
        *('classifier_ptnt_s_300e_imagenet', 'classifier_tnt_s_384_pets', 'custom_cls'),
    ],
)
def test_every_split_and_evaluator_reads_from_there(name: str, folder: Path | str):
    before, after = ConfigView(read_config(name)), ConfigView(read_config(name, None, folder))
    for split in SPLITS:
        old, new = before.split(split), after.split(split)
        assert Path(new.data_sets[0].settings['data_root']) == Path(folder)
        root = Path(old.data_sets[0].settings['data_root'])
        assert [Path(folder, path.relative_to(root)) for path in old.files] == new.files


def moved(file: Path, settings: dict, folder: str) -> Config:
    """A config in a file, with its data in another folder."""
    Config(settings).dump(file)
    return read_config(file, data_root=folder)


def test_wrappers_lists_and_other_strings(tmp_path: Path):
    part = dict(type='Any', data_root='data/a/', ann_file='x.json')
    settings = dict(
        train_dataloader=dict(dataset=dict(datasets=[part, dict(dataset=dict(part))])),
        val_dataloader=dict(dataset=dict(part, data_root='data/a')),
        val_evaluator=[dict(files=('data/a/x', 'data/ab', 'x/data/a'), root='data/a')],
        work_dir='data/a/runs',
    )
    config = moved(tmp_path / 'config.py', settings, 'b')
    first, second = config.train_dataloader.dataset.datasets
    assert first.data_root == second.dataset.data_root == 'b/'
    assert config.val_dataloader.dataset.data_root == 'b'
    assert config.val_evaluator[0] == dict(files=('b/x', 'data/ab', 'x/data/a'), root='b')
    assert config.work_dir == 'data/a/runs'


@pytest.mark.parametrize(
    ('root', 'prefix', 'expected'),
    [
        ('data', 'data/img/', 'data/img/'),
        ('/data', '/data/img/', '/x/img/'),
        (None, 'data/img/', '/x/img/'),
    ],
)
def test_a_path_that_is_joined_to_the_root_stays(
    tmp_path: Path, root: str | None, prefix: str, expected: str
):
    """Another data set has the root where this one has none."""
    part = dict(data_root=root, data_prefix=dict(img=prefix), ann_file=f'{prefix}a.json')
    parts = [dict(data_root=root or 'data'), part | dict(pipeline=[dict(file=prefix)])]
    settings = dict(train_dataloader=dict(dataset=dict(datasets=parts)))
    config = moved(tmp_path / 'config.py', settings, '/x')
    _, found = config.train_dataloader.dataset.datasets
    assert found.data_root == (root and '/x') and found.pipeline[0].file == '/x/img/'
    assert (found.data_prefix.img, found.ann_file) == (expected, f'{expected}a.json')


@pytest.mark.parametrize(
    ('roots', 'message'), [(('a', 'b/'), 'has several, a, b: change'), (('', None), 'has none')]
)
def test_other_numbers_of_roots_are_an_error(tmp_path: Path, roots: tuple, message: str):
    parts = [dict(type='Any', data_root=root) for root in roots]
    settings = dict(train_dataloader=dict(dataset=dict(datasets=parts)))
    with pytest.raises(UserError, match=message):
        moved(tmp_path / 'config.py', settings, 'c')
