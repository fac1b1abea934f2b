"""Next steps that ``ptnt new`` and ``ptnt train`` print."""

from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from mmengine.config import Config
from mmengine.logging import MMLogger

from ptnt_mm.workbench.cli.summaries import after_new, after_train


@pytest.mark.parametrize(
    ('test', 'flags', 'suggested'),
    [
        ('val.json', {}, []),
        ('test.json', {}, ['ptnt test cells']),
        ('test.json', dict(data_root=Path('moved')), ['ptnt test cells --data-root moved']),
        (None, {}, []),
    ],
)
def test_test_images_of_their_own_are_tested_next(
    test: str | None, flags: dict, suggested: list[str], tmp_path: Path
):
    MMLogger.get_instance(tmp_path.name, log_file=str(tmp_path / 'run.log'))
    torch.save(dict(state_dict={}, meta={}), tmp_path / 'best_AP_epoch_1.pth')
    config = Config(dict(work_dir=str(tmp_path), val_dataloader=_loader('val.json')))
    config.test_dataloader = test and _loader(test)
    args = Namespace(config='cells', cfg_options=[], work_dir=None, **dict(data_root=None) | flags)
    lines = after_train(SimpleNamespace(cfg=config, hooks=[]), args).splitlines()
    following = [line.strip() for line in lines[lines.index('Next:') + 1 :]]
    assert [line for line in following if line.startswith('ptnt test')] == suggested
    assert following[-1] == 'ptnt infer PHOTOS cells'


@pytest.mark.parametrize(
    ('scope', 'test', 'suggested'),
    [
        ('mmdet', 'test.json', ['train', 'test', 'report', 'infer', 'export']),
        ('mmseg', 'val.json', ['train', 'report', 'infer', 'export']),
        ('mmpretrain', 'val.json', ['train', 'report', 'infer', 'export']),
    ],
)
def test_a_new_project_is_followed_by_what_works_with_it(
    scope: str, test: str, suggested: list[str]
):
    loaders = dict(val_dataloader=_loader('val.json'), test_dataloader=_loader(test))
    lines = after_new(Path('cells'), Config(dict(default_scope=scope, **loaders)), False)
    words = [line.split() for line in lines.splitlines()]
    assert [line[1] for line in words if 'cells' in line] == suggested


def _loader(file: str) -> dict:
    pipeline = [dict(type='LoadImageFromFile')]
    return dict(dataset=dict(type='CocoDataset', ann_file=file, pipeline=pipeline))
