"""The commands that a training run suggests."""

from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from mmengine.config import Config
from mmengine.logging import MMLogger

from ptnt_mm.cli.summaries import after_train


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


def _loader(file: str) -> dict:
    return dict(dataset=dict(type='CocoDataset', ann_file=file))
