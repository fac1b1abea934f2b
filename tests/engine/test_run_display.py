"""What a run shows: bars on a terminal, lines elsewhere, the time left and the best score."""

import io
import json
import re
import sys
import time
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import torch
from mmdet.evaluation.metrics import coco_metric
from mmengine.config import Config
from mmengine.evaluator import BaseMetric, Evaluator
from mmengine.hooks import Hook
from mmengine.logging import MMLogger
from mmengine.registry import HOOKS, METRICS
from mmengine.runner import Runner
from pycocotools.cocoeval import COCOeval
from rich.console import Console
from rich.progress import Progress
from toy import ToyModel, evaluated, log_of, quick, toy_config, toy_iterations

import ptnt_mm
from ptnt_mm import api
from ptnt_mm.utils.text import duration
from ptnt_mm.workbench.cli.main import run as run_command
from ptnt_mm.workbench.config.view import ConfigView
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
    epochs(tmp_path).dump(tmp_path / 'config.py')
    assert run_command('train', [str(tmp_path / 'config.py')]) == 0
    text = re.sub(r'\x1b\[[\d;?]*[A-Za-z]', '', screen.getvalue())
    assert re.findall(r'epoch (\d)/2  loss \S+  \d+ s\n', text) == ['1', '2']
    assert 'epoch 1/2 ━' in text and '  evaluation ━' in text
    assert re.search(r'  evaluation  score \S+  best score \S+ \(epoch 2\)', text)
    assert re.search(r'Done in \d s: best score \S+ \(epoch 2\)\n', text)


def test_nothing_is_left_on_a_terminal_after_an_error(tmp_path: Path, monkeypatch):
    def fail(*_: object, **settings: object) -> None:
        raise RuntimeError('broken')

    screen = terminal(monkeypatch)
    monkeypatch.setattr(ToyModel, 'train_step', fail)
    with pytest.raises(RuntimeError, match='broken'):
        api.train(epochs(tmp_path))
    assert screen.getvalue().endswith('\x1b[?25h\r\x1b[1A\x1b[2K'), 'the cursor is back'


def test_a_file_gets_a_line_for_each_interval(tmp_path: Path, capsys):
    config = quick(toy_iterations(tmp_path, 5))
    config.experiment_name = str(tmp_path)
    config.default_hooks.logger = dict(type='LoggerHook', interval=2)
    api.train(config)
    line = r'^iteration  (\d)/5  loss \S+  \S+ images/s  \S+ s left$'
    lines = re.findall(line, capsys.readouterr().out, re.MULTILINE)
    assert lines == ['2', '4', '5']


def test_the_model_that_a_run_starts_from_is_named(tmp_path: Path, capsys):
    first = epochs(tmp_path / 'first')
    api.train(first)
    second = epochs(tmp_path / 'second')
    second.load_from = str(tmp_path / 'first' / 'epoch_2.pth')
    capsys.readouterr()
    api.train(second)
    words = capsys.readouterr().out.split()  # a long path has its own line
    at = words.index('Starting')
    assert words[at : at + 6] == ['Starting', 'from', 'the', 'whole', 'model', 'in']
    assert words[at + 6] == second.load_from


@METRICS.register_module()
class GivenMetric(BaseMetric):
    """Returns these scores, one after the other."""

    def __init__(self, scores: list[dict], classes: Sequence[list] = ()):
        super().__init__()
        self.scores = [dict(each) for each in scores]
        self.class_scores = [
            dict(zip(('class', 'images', 'AP'), row, strict=True)) for row in classes
        ]

    def process(self, data_batch: dict, data_samples: list) -> None:
        self.results.append(0)

    def compute_metrics(self, results: list) -> dict[str, float]:
        return self.scores.pop(0)


def lines_of(folder: Path, capsys, scores: list[dict], **checkpoint: str) -> list[str]:
    """The line of each evaluation with these scores."""
    config = evaluated(quick(toy_config(folder, len(scores))), **checkpoint)
    config.experiment_name = str(folder)
    config.val_evaluator = dict(type='GivenMetric', scores=scores)
    api.train(config)
    return re.findall('^  evaluation  (.*)', capsys.readouterr().out, re.MULTILINE)


def test_best_scores_have_their_steps(tmp_path: Path, capsys):
    scores = [{'coco/bbox_mAP': score, 'coco/bbox_mAP_50': 0.9} for score in (0.4, 0.5, 0.3)]
    lines = lines_of(tmp_path, capsys, scores, save_best='coco/bbox_mAP', rule='greater')
    assert lines == [
        'AP 0.400  AP50 0.900  best AP 0.400 (epoch 1)',
        'AP 0.500  AP50 0.900  best AP 0.500 (epoch 2)',
        'AP 0.300  AP50 0.900  best AP 0.500 (epoch 2)',
    ]


def test_scores_of_classes_stand_in_columns_as_they_are(tmp_path: Path, capsys):
    names = ('[red]text[/red] :cup: a', 'word ' * 100 + 'end')
    config = evaluated(quick(toy_config(tmp_path, 1)))
    rows = [[names[0], 9, None], [names[1], 9, 0.5]]
    config.val_evaluator = dict(type='GivenMetric', scores=[dict(AP=0.5)], classes=rows)
    config.experiment_name = str(tmp_path)
    config.dump(tmp_path / 'config.py')
    assert run_command('train', [str(tmp_path / 'config.py')]) == 0
    wide = len(names[1])
    table = [f'{"class":{wide}}  images     AP', f'{names[0]:{wide}}       9      –']
    assert '\n'.join([*table, f'{names[1]}       9  0.500', '']) in capsys.readouterr().out


METRICS_AND_LINES = [
    ({'coco/bbox_mAP_s': 0.25, 'coco/segm_mAP_s': 0.5}, 'box AP small 0.250  mask AP small 0.500'),
    ({'accuracy/top1': 75.2, 'mine/score': -3.2}, 'top-1 0.752  mine/score -3.200'),
    ({'day/bbox_mAP': 0.1, 'night/bbox_mAP': -1}, 'day/bbox_mAP 0.100  night/bbox_mAP –'),
    ({'mine': float('nan'), 'mIoU_mine': 0.7}, 'mine –  mIoU_mine 0.700'),
    ({'mine': [1, 2]}, 'mine [1, 2]'),
    ({'bbox_mAP': 0.1, 'bbox_mAP_50': 0.2, 'bbox_mAP_75': 0.3}, 'AP 0.100  AP50 0.200'),
    (
        {'coco_panoptic/PQ': 41.5, 'coco_panoptic/SQ': 1.0, 'bbox_mAP': 0.1, 'bbox_mAP_75': 0.2},
        'PQ 0.415  AP 0.100',
    ),
    ({'coco_panoptic/PQ_th': 41.5}, 'PQ things 0.415'),
    ({'aAcc': 100.0, 'mIoU': 72.4, 'mAcc': 1.0}, 'mIoU 0.724  pixel accuracy 1.000'),
]


def test_metrics_have_names_that_people_use(tmp_path: Path, capsys):
    scores, lines = zip(*METRICS_AND_LINES, strict=True)
    assert lines_of(tmp_path, capsys, [*scores]) == [*lines]


def test_times_are_short():
    assert [duration(seconds) for seconds in (4, 99, 100, 6000, 200_000)] == [
        '4 s', '99 s', '2 min', '1 h 40 min', '2 d 7 h',
    ]  # fmt: skip


@HOOKS.register_module()
class SlowEvaluation(Hook):
    """Makes every evaluation take ten hours, and has one before training."""

    def __init__(self, clock: str):
        self.clock = Path(clock)

    def before_train(self, runner: Runner) -> None:
        runner.val()

    def after_val_epoch(self, runner: Runner, metrics: dict | None = None) -> None:
        self.clock.write_text(self.clock.read_text() + '.')


@pytest.mark.parametrize(
    ('by_epoch', 'loop', 'expected'),
    [
        (False, dict(val_interval=2), 3),
        (True, dict(val_interval=2, val_begin=4), 2),
        (True, dict(val_interval=3, dynamic_intervals=[(5, 1)]), 3),
        (False, dict(val_interval=9, dynamic_intervals=[(2, 2), (9, 1)]), 3),
        (True, dict(val_begin=9), 0),
        (False, dict(val_interval=float('inf')), 1),
    ],
)
def test_evaluations_that_are_left_count_in_the_time_left(
    tmp_path: Path, by_epoch: bool, loop: dict, expected: int, monkeypatch, capsys
):
    config = evaluated(quick(toy_config(tmp_path, 5) if by_epoch else toy_iterations(tmp_path, 5)))
    config.train_cfg.update(dict(val_interval=1) | loop)
    config.experiment_name = str(tmp_path)
    config.custom_hooks = [dict(type='SlowEvaluation', clock=str(tmp_path / 'clock'))]
    config.default_hooks.checkpoint = None
    (tmp_path / 'clock').touch()
    now = time.monotonic
    monkeypatch.setattr(
        time, 'monotonic', lambda: now() + 36_000 * len((tmp_path / 'clock').read_text())
    )
    api.train(config)
    left = re.findall(r'loss.*  (\d+ d )?(\d+) (h|s)( \d+ min)? left', capsys.readouterr().out)
    hours = [24 * bool(days) + int(count) * (unit == 'h') for days, count, unit, _ in left]
    assert list(dict.fromkeys(hours)) == [*range(10 * expected, -10, -10)][: len({*hours})]
    assert min(hours) == 10 * min(expected, 1), 'the last comes at the end'


def test_what_a_run_does_not_log_is_left_out(tmp_path: Path, capsys):
    config = epochs(tmp_path)
    config.default_hooks.timer = None
    config.custom_hooks.append(dict(type='Revalidating'))
    api.train(config)
    shown = capsys.readouterr().out
    assert re.search(r'^epoch 2/2  3/3  loss [\d.]+$', shown, re.MULTILINE)
    assert shown.count('  evaluation  score') == 3


@HOOKS.register_module()
class Revalidating(Hook):
    """Evaluates once more."""

    def after_train(self, runner: Runner) -> None:
        runner.val()


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
    rows = class_scores(tmp_path, metric=kind, iou_thrs=thresholds)
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
    tmp_path: Path, monkeypatch, capsys
):
    monkeypatch.setattr(coco_metric, 'COCOeval', _Forgetful)
    assert class_scores(tmp_path) == []
    said = "warning: there are no scores by class: KeyError: 'precision'\n"
    assert capsys.readouterr().out.endswith(said)


def class_scores(folder: Path, **settings: object) -> list[dict]:
    """Of two classes, of which one is found; the third has no objects."""
    objects = [
        dict(id=i, image_id=1, category_id=i, bbox=[0, 20 * i, 10, 10], area=100, iscrowd=0)
        for i in (1, 2)
    ]
    names = [dict(id=i, name=name) for i, name in enumerate('abc', start=1)]
    image = dict(id=1, file_name='1.jpg', height=60, width=60)
    file = folder / 'truth.json'
    file.write_text(json.dumps(dict(images=[image], annotations=objects, categories=names)))
    settings = dict(settings, type='mmdet.CocoMetric', ann_file=str(file))
    evaluator: Evaluator = build_runner(ConfigView(epochs(folder))).build_evaluator([settings])
    evaluator.dataset_meta = dict(classes=tuple('abc'))
    found = dict(bboxes=[[0, 20, 10, 30]], scores=[0.9], labels=[0])
    found = {key: torch.tensor(value) for key, value in found.items()}
    evaluator.process([dict(img_id=1, ori_shape=(60, 60), pred_instances=found)])
    evaluator.evaluate(1)
    return evaluator.metrics[0].class_scores


def test_a_runner_of_another_class_prints_as_little(tmp_path: Path, capsys):
    config = toy_config(tmp_path)
    config.update(experiment_name='another_class', runner_type='mmengine.Runner')
    runner = build_runner(ConfigView(config))
    assert type(runner) is Runner
    capsys.readouterr()
    runner.logger.warning('odd')
    assert capsys.readouterr().out == 'warning: odd\n'
    assert 'System environment' in log_of(tmp_path) and 'odd' in log_of(tmp_path)


@pytest.fixture
def logger(tmp_path: Path) -> MMLogger:
    """That of a run."""
    return build_runner(ConfigView(epochs(tmp_path))).logger


def test_a_message_with_the_wrong_arguments_is_reported_and_stops_nothing(logger, capsys):
    logger.warning('%d boxes', 'many')
    assert 'Logging error' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('file', 'shown'), [(ptnt_mm.__file__, '--size'), ('/site-packages/mmcv/ops.py', "'size'")]
)
def test_only_our_own_lines_of_a_log_name_arguments(file: str, shown: str, logger, capsys):
    run_command('completion', ['bash'])  # as any command, it chooses how arguments are shown
    capsys.readouterr()
    exec(compile("logger.warning('`size` must be an int')", file, 'exec'), dict(logger=logger))
    assert capsys.readouterr().out == f'warning: {shown} must be an int\n'
