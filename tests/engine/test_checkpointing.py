"""Checkpoints are complete or absent, and a good one always exists."""

import os
from pathlib import Path

import pytest
import torch
from mmengine.fileio import get_file_backend
from toy import evaluated, names, quick, toy_config, toy_iterations, train

from ptnt_mm.hooks.run_checkpoints import latest_checkpoint
from ptnt_mm.utils.errors import UserError

pytestmark = pytest.mark.slow


def test_outdated_checkpoint_is_removed_after_the_new_one_is_written(tmp_path: Path, monkeypatch):
    seen = []
    replace = os.replace

    def put(source: Path, target: Path) -> None:
        replace(source, target)
        if target.suffix == '.pth':
            seen.append(names(tmp_path))

    monkeypatch.setattr(os, 'replace', put)
    train(toy_config(tmp_path, epochs=3))
    assert seen == [
        ['epoch_1.pth'],
        ['epoch_1.pth', 'epoch_2.pth'],
        ['epoch_2.pth', 'epoch_3.pth'],
    ]
    assert names(tmp_path) == ['epoch_3.pth']
    assert latest_checkpoint(tmp_path) == tmp_path / 'epoch_3.pth'


def test_former_best_checkpoint_is_kept_until_the_new_one_is_written(tmp_path: Path, monkeypatch):
    bests = []
    replace = os.replace

    def put(source: Path, target: Path) -> None:
        if 'best' in target.name:
            bests.append([name for name in names(tmp_path) if 'best' in name])
        replace(source, target)

    monkeypatch.setattr(os, 'replace', put)
    train(evaluated(quick(toy_config(tmp_path, 3)), save_best='score', rule='greater'))
    assert bests == [[], ['best_score_epoch_1.pth'], ['best_score_epoch_2.pth']]
    assert names(tmp_path) == ['best_score_epoch_3.pth', 'epoch_3.pth']


def test_checkpoints_by_iterations(tmp_path: Path):
    """Keep two and the best one, whose `rule` MMEngine infers from the metric's name."""
    config = evaluated(quick(toy_iterations(tmp_path, 14)), max_keep_ckpts=2, save_best='mIoU')
    config.train_cfg.val_interval = 7
    config.val_evaluator.name = 'mIoU'
    train(config)
    assert names(tmp_path) == ['best_mIoU_iter_14.pth', 'iter_12.pth', 'iter_14.pth']
    assert latest_checkpoint(tmp_path) == tmp_path / 'iter_14.pth'
    meta = torch.load(tmp_path / 'iter_12.pth', weights_only=False)['meta']
    assert (meta['epoch'], meta['iter']) == (0, 12)


def test_unknown_best_metric_is_refused(tmp_path: Path):
    config = evaluated(quick(toy_config(tmp_path, 2)), save_best='bbox_mAP', rule='greater')
    config.val_evaluator.name = 'coco/bbox_mAP'
    with pytest.raises(UserError, match=r"save_best: .*'bbox_mAP': did you mean 'coco/bbox_mAP'"):
        train(config)
    # Nothing is lost: with the right name, --resume continues.
    assert names(tmp_path) == ['epoch_1.pth']


def test_partial_checkpoint_of_a_killed_process_is_removed(tmp_path: Path):
    half = tmp_path / '.epoch_1.pth.partial-123'
    half.write_bytes(b'half')
    train(toy_config(tmp_path, epochs=1))
    assert not half.exists()


def test_damaged_checkpoints_are_passed_over(tmp_path: Path):
    config = toy_config(tmp_path, epochs=3)
    config.default_hooks.checkpoint.max_keep_ckpts = 3
    train(config)
    newest, second = tmp_path / 'epoch_3.pth', tmp_path / 'epoch_2.pth'
    content = newest.read_bytes()
    newest.write_bytes(content[: len(content) // 2])
    assert latest_checkpoint(tmp_path) == second
    second.write_bytes(second.read_bytes().replace(b'PK', b'QK', 1))
    assert latest_checkpoint(tmp_path) == tmp_path / 'epoch_1.pth'


def test_the_backend_replaces_files(tmp_path: Path):
    backend = get_file_backend(backend_args=dict(backend='whole_files'))
    backend.put(b'one', tmp_path / 'below' / 'note')
    backend.put(b'two', tmp_path / 'below' / 'note')
    assert (tmp_path / 'below' / 'note').read_bytes() == b'two'
