"""What a run shows: bars on a terminal, lines elsewhere, the time left and the best score."""

import io
import json
import logging
import re
import sys
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import torch
from mmdet.evaluation.metrics import coco_metric
from mmengine.config import Config
from mmengine.evaluator import Evaluator
from mmengine.hooks import Hook
from mmengine.logging import MessageHub, MMLogger
from mmengine.runner import Runner
from pycocotools.cocoeval import COCOeval
from rich.console import Console
from rich.progress import Progress
from toy import evaluated, quick, toy_config, toy_iterations

from ptnt_mm.utils.metrics import main_metrics, metric_names, metric_text
from ptnt_mm.utils.terminal import TerminalHandler
from ptnt_mm.utils.text import duration
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.engine.class_scores import class_scores, keeping_class_scores
from ptnt_mm.workbench.engine.run_display import best_scores, display_of, evaluations_left
from ptnt_mm.workbench.engine.runner import build_runner


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Replace both outputs, once the test runs: pytest replaces them for each phase."""
    screen = Terminal()
    monkeypatch.setattr(sys, 'stdout', screen)
    monkeypatch.setattr(sys, 'stderr', screen)
    monkeypatch.setenv('COLUMNS', '80')
    return screen


def epochs(folder: Path) -> Config:
    config = evaluated(quick(toy_config(folder, 2)), save_best='score', rule='greater')
    config.experiment_name = str(folder)  # MMEngine keeps its logger
    return config


def test_a_terminal_keeps_one_line_for_each_epoch_and_evaluation(tmp_path: Path, monkeypatch):
    screen = terminal(monkeypatch)
    runner = build_runner(ConfigView(epochs(tmp_path)))
    with display_of(runner) as display:
        runner.train()
    text = re.sub(r'\x1b\[[\d;?]*[A-Za-z]', '', screen.getvalue())
    assert re.findall(r'epoch (\d)/2  loss \S+  \d+ s\n', text) == ['1', '2']
    assert 'epoch 1/2 ━' in text and '  evaluation ━' in text
    assert re.search(r'  evaluation  score \S+  best score \S+ \(epoch 2\)', text)
    assert display.summary.startswith('best score') and display.took > 0


def test_nothing_is_left_on_a_terminal_after_an_error(tmp_path: Path, monkeypatch):
    def fail(*_: object, **settings: object) -> None:
        raise RuntimeError('broken')

    screen = terminal(monkeypatch)
    runner = build_runner(ConfigView(epochs(tmp_path)))
    monkeypatch.setattr(type(runner.model), 'train_step', fail)
    with pytest.raises(RuntimeError, match='broken'), display_of(runner):
        runner.train()
    assert screen.getvalue().endswith('\x1b[?25h\r\x1b[1A\x1b[2K'), 'the cursor is back'


def test_a_file_gets_a_line_for_each_interval(tmp_path: Path, capsys):
    config = quick(toy_iterations(tmp_path, 5))
    config.experiment_name = str(tmp_path)
    config.default_hooks.logger = dict(type='LoggerHook', interval=2)
    runner = build_runner(ConfigView(config))
    with display_of(runner):
        runner.train()
    line = r'^iteration  (\d)/5  loss \S+  \S+ images/s  \S+ s left$'
    lines = re.findall(line, capsys.readouterr().out, re.MULTILINE)
    assert lines == ['2', '4', '5']


def test_the_model_that_a_run_starts_from_is_named(tmp_path: Path, capsys):
    first = epochs(tmp_path / 'first')
    build_runner(ConfigView(first)).train()
    second = epochs(tmp_path / 'second')
    second.load_from = str(tmp_path / 'first' / 'epoch_2.pth')
    runner = build_runner(ConfigView(second))
    with display_of(runner):
        runner.train()
    words = capsys.readouterr().out.split()  # a long path has its own line
    assert words[(at := words.index('Starting')) : at + 6] == [
        'Starting',
        'from',
        'the',
        'whole',
        'model',
        'in',
    ]
    assert words[at + 6] == second.load_from


def test_best_scores_have_their_steps():
    hub = MessageHub.get_instance('best_scores')
    hub.update_info('best_score', 0.5)
    hub.update_info('best_ckpt', 'run/best_coco_bbox_mAP_epoch_3.pth')
    assert best_scores(hub, {'coco/bbox_mAP': 0.4, 'coco/bbox_mAP_50': 0.9}) == [
        ('AP 0.500', 'epoch', 3)
    ]


def test_metrics_have_names_that_people_use():
    keys = ['coco/segm_mAP_50', 'coco/bbox_mAP_s', 'mIoU', 'accuracy/top1', 'mine/score']
    assert list(metric_names(keys).values()) == [
        'mask AP50', 'box AP small', 'mIoU', 'top-1', 'mine/score',
    ]  # fmt: skip
    both = ['day/bbox_mAP', 'night/bbox_mAP']
    assert list(metric_names(both)) == list(metric_names(both).values()) == both
    assert [metric_text('mIoU', 72.4), metric_text('coco/bbox_mAP', -1)] == ['0.724', '–']
    assert [metric_text('mine', value) for value in (float('nan'), -3.2, [1, 2])] == [
        '–', '-3.200', '[1, 2]',
    ]  # fmt: skip
    assert metric_text('mIoU_mine', 0.7) == '0.700'
    boxes = ['coco/bbox_mAP', 'coco/bbox_mAP_50', 'coco/bbox_mAP_75']
    assert main_metrics(dict.fromkeys(boxes, 0.1)) == boxes[:2]
    panoptic = ['coco_panoptic/PQ', 'coco_panoptic/SQ', *boxes]
    assert main_metrics(dict.fromkeys(panoptic, 0.1)) == ['coco_panoptic/PQ', *boxes[:2]]
    assert list(metric_names(panoptic).values())[0] == 'PQ'
    assert metric_text('coco_panoptic/PQ_th', 41.5) == '0.415'
    assert main_metrics({'aAcc': 1.0, 'mIoU': 1.0, 'mAcc': 1.0}) == ['mIoU', 'aAcc']


def test_times_are_short():
    assert [duration(seconds) for seconds in (4, 99, 100, 6000, 200_000)] == [
        '4 s', '99 s', '2 min', '1 h 40 min', '2 d 7 h',
    ]  # fmt: skip


@pytest.mark.parametrize('by_epoch', [True, False])
@pytest.mark.parametrize(
    ('loop', 'expected'),
    [
        (dict(val_interval=2), 3),
        (dict(val_interval=2, val_begin=4), 2),
        (dict(val_interval=3, dynamic_intervals=[(5, 1)]), 3),
        (dict(val_interval=9, dynamic_intervals=[(2, 2), (9, 1)]), 3),
        (dict(val_begin=9), 0),
        (dict(val_interval=float('inf')), 1),
    ],
)
def test_evaluations_that_are_left_are_counted(
    tmp_path: Path, by_epoch: bool, loop: dict, expected: int
):
    config = evaluated(quick(toy_config(tmp_path, 5) if by_epoch else toy_iterations(tmp_path, 5)))
    config.train_cfg.update(dict(val_interval=1) | loop)
    config.experiment_name = str(tmp_path)
    runner = build_runner(ConfigView(config))
    runner.register_hook(hook := Counting())
    runner.train()
    assert hook.left == list(range(expected, -1, -1))


def test_what_a_run_does_not_log_is_left_out(tmp_path: Path, capsys):
    config = epochs(tmp_path)
    config.default_hooks.timer = None
    runner = build_runner(ConfigView(config))
    runner.register_hook(Revalidating())
    with display_of(runner) as display:
        runner.train()
    shown = capsys.readouterr().out
    assert re.search(r'^epoch 2/2  3/3  loss [\d.]+$', shown, re.MULTILINE)
    assert shown.count('  evaluation  score') == 3 and display.took > 0


class Revalidating(Hook):
    """Evaluates once more."""

    def after_train(self, runner: Runner) -> None:
        runner.val()


class Counting(Hook):
    """Remembers how many evaluations are left, before the first and after each."""

    def before_train(self, runner: Runner) -> None:
        self.left = [evaluations_left(runner)]

    def after_val(self, runner: Runner) -> None:
        self.left.append(evaluations_left(runner))


def test_a_worker_prints_without_the_bar(monkeypatch):
    screen = terminal(monkeypatch)
    with Progress(console=Console(), auto_refresh=False):
        assert sys.stdout is not screen
        child = get_context('fork').Process(target=lambda: sys.exit(sys.stdout is not screen))
        child.start()
        child.join(20)
    assert child.exitcode == 0


@pytest.mark.parametrize(
    ('kind', 'thresholds', 'columns'),
    [
        ('bbox', None, [['class', 'images', 'objects', 'AP', 'AP50']]),
        ('bbox', np.array([0.7]), [['class', 'images', 'objects', 'AP']]),
        ('proposal', None, []),
    ],
)
def test_scores_of_classes_are_those_of_the_metric(tmp_path: Path, kind, thresholds, columns):
    original = coco_metric.COCOeval
    rows = class_scores(evaluated_boxes(tmp_path, metric=kind, iou_thrs=thresholds))
    assert coco_metric.COCOeval is original
    assert [list(row) for row in rows[:1]] == columns
    if rows:
        shown = [[*row.values()][:4] for row in rows]
        assert shown == [['a', 1, 1, pytest.approx(1.0)], ['b', 1, 1, 0.0], ['c', 0, 0, None]]


class _Forgetful(COCOeval):
    def summarize(self) -> None:
        super().summarize()
        del self.eval['precision']


def test_an_evaluation_whose_scores_by_class_cannot_be_read_goes_on_with_a_warning(
    tmp_path: Path, monkeypatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(coco_metric, 'COCOeval', _Forgetful)
    monkeypatch.setattr(MMLogger.get_current_instance(), 'handlers', [caplog.handler])
    assert class_scores(evaluated_boxes(tmp_path)) == []
    assert caplog.messages[-1] == "there are no scores by class: KeyError: 'precision'"


def evaluated_boxes(folder: Path, **settings: object) -> Evaluator:
    """Two classes, of which one is found; the third has no objects."""
    objects = [
        dict(id=i, image_id=1, category_id=i, bbox=[0, 20 * i, 10, 10], area=100, iscrowd=0)
        for i in (1, 2)
    ]
    names = [dict(id=i, name=name) for i, name in enumerate('abc', start=1)]
    image = dict(id=1, file_name='1.jpg', height=60, width=60)
    file = folder / 'truth.json'
    file.write_text(json.dumps(dict(images=[image], annotations=objects, categories=names)))
    settings = dict(settings, type='mmdet.CocoMetric', ann_file=str(file))
    evaluator = Evaluator(keeping_class_scores([settings]))
    evaluator.dataset_meta = dict(classes=tuple('abc'))
    found = dict(bboxes=[[0, 20, 10, 30]], scores=[0.9], labels=[0])
    found = {key: torch.tensor(value) for key, value in found.items()}
    evaluator.process([dict(img_id=1, ori_shape=(60, 60), pred_instances=found)])
    evaluator.evaluate(1)
    return evaluator


def test_a_runner_of_another_class_prints_as_little(tmp_path: Path):
    config = toy_config(tmp_path)
    config.update(experiment_name='another_class', runner_type='mmengine.Runner')
    runner = build_runner(ConfigView(config))
    assert type(runner) is Runner
    handlers = [type(handler) for handler in runner.logger.handlers]
    assert handlers == [TerminalHandler, logging.FileHandler]
