"""Training curves: drawings, and errors for bad logs."""

import json
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.pages.curves import draw_curves


@pytest.fixture
def drawn(monkeypatch) -> list:
    """The saved figures; saving itself is unchanged."""
    caught = []
    savefig = Figure.savefig

    def save(figure, *arguments, **options):
        caught.append(figure)
        return savefig(figure, *arguments, **options)

    monkeypatch.setattr(Figure, 'savefig', save)
    return caught


def train_line(step, loss, **others):
    epoch = 1 + (step - 1) // 20
    return dict(lr=1e-3, time=0.5, loss=loss, loss_cls=loss / 2, epoch=epoch, step=step, **others)


def val_line(epoch, value):
    return {'coco/bbox_mAP': value, 'coco/bbox_mAP_s': -1.0, 'time': 0.1, 'step': epoch}


def write_log(work_dir: Path, name: str, lines: list[dict], tail: str = '') -> Path:
    log = work_dir / name / 'vis_data' / 'scalars.json'
    log.parent.mkdir(parents=True)
    log.write_text(''.join(json.dumps(line) + '\n' for line in lines) + tail)
    return log


def lines_of(axes):
    return {line.get_label(): list(map(tuple, line.get_xydata())) for line in axes.lines}


def test_curves_join_resumes_and_the_later_run_wins(tmp_path, drawn):
    write_log(
        tmp_path,
        '20260101_000000',
        [train_line(10, 4.0), train_line(20, 3.0), val_line(1, 0.1), train_line(30, 9.0)],
        tail='{"lr": 0.0, "lo',  # killed while it wrote
    )
    write_log(
        tmp_path, '20260101_000500', [train_line(25, 2.0), train_line(35, 1.0), val_line(2, 0.3)]
    )
    assert draw_curves(tmp_path, tmp_path / 'curves.png').is_file()
    losses, metrics = drawn[0].axes
    lines = lines_of(losses)
    assert lines['sum of all'] == [(10, 4), (20, 3), (25, 2), (35, 1)]
    assert lines['loss_cls'] == [(10, 2), (20, 1.5), (25, 1), (35, 0.5)]
    assert lines['resumed'][0][0] == 25
    assert set(lines) == {'sum of all', 'loss_cls', 'resumed'}, 'no lr and no time among losses'
    assert lines_of(metrics) == {'bbox_mAP  0.300': [(1, 0.1), (2, 0.3)]}
    assert (losses.get_xlabel(), metrics.get_xlabel()) == ('iteration', 'epoch')


def test_the_metric_that_ranks_segmenters_comes_first(tmp_path, drawn):
    lines = [dict(step=10, loss=1.0), dict(aAcc=70.0, mIoU=40.0, mAcc=50.0, time=0.1, step=10)]
    write_log(tmp_path, '20260101', lines)
    draw_curves(tmp_path, tmp_path / 'curves.png')
    metrics = drawn[0].axes[1]
    labels = [line.get_label() for line in metrics.lines]
    assert labels == ['mIoU  40.000', 'aAcc  70.000', 'mAcc  50.000']
    assert metrics.get_xlabel() == 'iteration'


def test_training_from_the_start_again_replaces_the_old_curves(tmp_path, drawn):
    write_log(tmp_path, '20260101', [train_line(10, 4.0), train_line(20, 3.0), val_line(1, 0.1)])
    write_log(tmp_path, '20260102', [train_line(10, 5.0)])
    draw_curves(tmp_path, tmp_path / 'curves.png')
    assert lines_of(drawn[0].axes[0])['sum of all'] == [(10, 5)]
    assert 'no evaluation yet' in [text.get_text() for text in drawn[0].axes[1].texts]


def test_infinite_losses_are_left_out(tmp_path, drawn):
    write_log(tmp_path, '20260101', [train_line(10, 4.0), train_line(20, float('nan'))])
    draw_curves(tmp_path, tmp_path / 'curves.png')
    assert lines_of(drawn[0].axes[0])['sum of all'] == [(10, 4)]


def test_missing_empty_and_broken_logs_are_named(tmp_path):
    with pytest.raises(UserError, match='contains no training log'):
        draw_curves(tmp_path, tmp_path / 'curves.png')
    log = write_log(tmp_path, '20260101', [])
    with pytest.raises(UserError, match='contains no losses yet'):
        draw_curves(tmp_path, tmp_path / 'curves.png')
    log.write_text('nonsense\n' + json.dumps(train_line(10, 1.0)) + '\n')
    with pytest.raises(UserError, match=r'scalars.json, line 1, was not logged by MMEngine'):
        draw_curves(tmp_path, tmp_path / 'curves.png')
