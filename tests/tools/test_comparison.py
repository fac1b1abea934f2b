"""The comparison on the demo set: its configs, its order, its report."""

import functools
import json
import shutil
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest
from logs import evaluation, write_log
from mmengine.config import Config

from comparison import report, runs
from comparison.figure import draw_comparison
from comparison.report import Comparison, check_page, compare, update_page
from comparison.runs import (
    BACKBONES,
    CONTENDERS,
    DETECTORS,
    Contender,
    Outcome,
    outcomes,
    run_missing,
)
from ptnt_mm.engine.complexity import Part
from ptnt_mm.utils.errors import UserError

from .workplace import ROOT, Workplace, load_tool

tool = load_tool('dev/compare_backbones')

pytest.importorskip('mmdet')

MACHINE = dict(date='2026-01-01', device='a CPU', threads=1)
PAGE = (
    'Before.\n\n<!-- made by tools/dev/compare_backbones.py -->\nold\n'
    '<!-- until here -->\n\nAfter.\n'
)


@pytest.fixture(scope='module')
def counted() -> Comparison:
    """What the contenders cost, without a run."""
    return compare([])


@pytest.fixture
def trained(monkeypatch) -> list[str]:
    """The runs that were started, as NAME/SEED; each leaves a log at once."""
    started: list[str] = []

    def train(words: list[str], **_) -> int:
        folder = Path(words[words.index('--work-dir') + 1])
        assert words[-3:] == ['--seed', folder.name.removeprefix('seed_'), '--overwrite']
        started.append(f'{folder.parent.name}/{folder.name}')
        write_log(folder, f'20260101_{len(started):06}', evaluation(5, 0.2))
        return 0

    monkeypatch.setattr(runs.subprocess, 'call', train)
    return started


@functools.cache
def read(contender: Contender) -> Config:
    return Config.fromfile(contender.config)


def without(settings: dict, *keys: str) -> dict:
    return {key: value for key, value in settings.items() if key not in keys}


def outcome(contender: Contender, seed: int, ap: float, seconds: float = 100.0) -> Outcome:
    masks = ap / 2 if contender.detector == 'mask_rcnn' else None
    return Outcome(contender.name, seed, ap, masks, seconds, MACHINE)


@pytest.mark.parametrize('detector', DETECTORS)
def test_backbone_and_necks_are_all_that_differs(detector: str):
    ours, *peers = (read(contender) for contender in CONTENDERS if contender.detector == detector)
    for peer in peers:
        assert without(peer.model, 'backbone', 'neck') == without(ours.model, 'backbone', 'neck')
        (pyramid,) = peer.model.neck  # their strides are those that ours is brought to
        assert without(pyramid, 'in_channels') == without(ours.model.neck[1], 'in_channels')
        differing = ('filename', 'model', 'optim_wrapper', 'peer', 'channels', 'custom_keys')
        assert without(peer, *differing) == without(ours, *differing)
        assert peer.optim_wrapper.optimizer == ours.optim_wrapper.optimizer
        rules = (config.optim_wrapper.paramwise_cfg for config in (peer, ours))
        assert len({str(without(rule, 'custom_keys')) for rule in rules}) == 1


def test_both_detectors_see_the_same_images_and_are_evaluated_once():
    retinanet, mask_rcnn = read(CONTENDERS[0]), read(Contender('mask_rcnn', 'ptnt_ti'))
    for config in (retinanet, mask_rcnn):
        assert config.train_cfg.val_interval == config.train_cfg.max_epochs
        assert config.param_scheduler[1].end == config.train_cfg.max_epochs
        for split in ('train', 'val', 'test'):
            pipeline = config[f'{split}_dataloader'].dataset.pipeline
            (resize,) = (transform for transform in pipeline if transform.type == 'Resize')
            assert resize.scale == retinanet.image_scale
    assert retinanet.train_dataloader.batch_size == mask_rcnn.train_dataloader.batch_size
    assert retinanet.optim_wrapper == mask_rcnn.optim_wrapper


def test_nobody_starts_from_weights_or_is_frozen():
    for contender in CONTENDERS:
        config = read(contender)
        backbone = config.model.backbone
        assert backbone.get('init_cfg') is None and config.get('load_from') is None
        assert backbone.get('frozen_stages', -1) == -1
        assert contender.backbone != 'resnet18' or backbone.norm_eval is False


def test_swin_has_as_many_multiply_adds_as_ours(counted: Comparison):
    for detector in DETECTORS:
        ours, swin = (counted.costs[f'{detector}_{name}'] for name in ('ptnt_ti', 'swin'))
        assert swin.multiply_adds == pytest.approx(ours.multiply_adds, rel=0.1)


def test_all_contenders_run_with_a_seed_before_the_next_begins(tmp_path: Path, trained: list[str]):
    told: list[str] = []
    run_missing([0, 1], tmp_path, jobs=1, threads=1, tell=told.append)
    assert told[0] == '0 of 16 runs are done' and len(told) == 17
    assert [run.rpartition('_')[2] for run in trained] == ['0'] * 8 + ['1'] * 8
    assert {run.partition('/')[0] for run in trained} == {
        contender.name for contender in CONTENDERS
    }
    assert len(outcomes(tmp_path)) == 16


def test_what_is_done_is_left_and_what_was_cut_off_starts_over(tmp_path: Path, trained: list[str]):
    run_missing([0], tmp_path, jobs=1, threads=1, tell=print)
    (tmp_path / 'mask_rcnn_swin' / 'seed_0' / 'outcome.json').unlink()
    trained.clear()
    run_missing([0], tmp_path, jobs=1, threads=1, tell=print)
    assert trained == ['mask_rcnn_swin/seed_0']


def test_a_run_that_fails_ends_it_and_says_where_to_look(tmp_path: Path, monkeypatch):
    calls: list[list[str]] = []

    def fail(words: list[str], **_: object) -> int:
        calls.append(words)
        time.sleep(0.2)  # a training takes longer than to call off the others
        return 1

    monkeypatch.setattr(runs.subprocess, 'call', fail)
    with pytest.raises(UserError, match='seed 0, stopped with exit status 1: .*console.txt'):
        run_missing([0], tmp_path, jobs=1, threads=1, tell=print)
    assert len(calls) < len(CONTENDERS) and outcomes(tmp_path) == []


def test_the_table_shows_every_seed(counted: Comparison):
    ours, peer = Contender('mask_rcnn', 'ptnt_ti'), Contender('mask_rcnn', 'resnet18')
    runs = (outcome(ours, 0, 0.2), outcome(ours, 1, 0.3, 140.0), outcome(peer, 0, 0.1))
    text = Comparison(runs, counted.costs, counted.shape).to_markdown()
    assert text.startswith('3 of 24 runs were done.')
    assert '- date 2026-01-01, device a CPU, threads 1: 3 of them' in text
    lines = [line for line in text.splitlines() if line.startswith('| PyramidTNT-Ti')]
    assert lines[0].count('|') == 4, 'RetinaNet was not run'
    assert lines[1].endswith('| 0, 1 | **25.0** (20.0, 30.0) | **12.5** (10.0, 15.0) | 100, 140 |')
    json.dumps(Comparison(runs, counted.costs, counted.shape).to_dict())


def test_a_page_keeps_what_is_written_by_hand(tmp_path: Path, counted: Comparison):
    page = tmp_path / 'comparison.md'
    page.write_text(PAGE)
    for _ in range(2):
        update_page(page, counted)
        text = page.read_text()
        assert text.startswith('Before.\n') and text.endswith('\nAfter.\n')
        assert 'old' not in text and text.count('### RetinaNet') == 1


@pytest.mark.parametrize('text', ['', 'A page.\n', PAGE.replace('until', 'to')])
def test_a_page_without_a_place_for_the_table(tmp_path: Path, text: str):
    page = tmp_path / 'comparison.md'
    page.write_text(text)
    with pytest.raises(UserError, match='comparison.md lacks the lines'):
        check_page(page)
    with pytest.raises(UserError, match='gone.md lacks the lines'):
        check_page(tmp_path / 'gone.md')


def test_the_figure(tmp_path: Path):
    runs = [outcome(contender, seed, 0.1 * seed) for contender in CONTENDERS for seed in range(3)]
    for found in (runs, runs[:4], []):
        file = draw_comparison(found, tmp_path / 'comparison.png')
        assert file.read_bytes().startswith(b'\x89PNG')


def test_the_committed_page_is_made_of_the_committed_numbers():
    docs = Path(__file__).parents[2] / 'docs'
    numbers = json.loads((docs / 'benchmarks' / 'comparison.json').read_text())
    page = (docs / 'comparison.md').read_text()
    check_page(docs / 'comparison.md')
    assert f'{len(numbers["runs"])} of {3 * len(CONTENDERS)} runs were done.' in page
    found = [Outcome(**run) for run in numbers['runs']]
    assert [asdict(run) for run in found] == numbers['runs']
    for contender in CONTENDERS:
        box_aps = [run.box_ap for run in found if run.name == contender.name]
        each = ', '.join(f'{100 * ap:.1f}' for ap in box_aps)
        assert f'({each})' in page
    assert set(numbers['costs']) == {contender.name for contender in CONTENDERS}


def test_every_backbone_has_a_line_in_both_tables(counted: Comparison):
    text = counted.to_markdown()
    for title in BACKBONES.values():
        assert text.count(f'| {title} |') == len(DETECTORS)


def test_the_command(capsys, workplace: Workplace, tmp_path: Path, monkeypatch):
    """All runs but one are there; that one is trained, and the report is of all."""
    monkeypatch.chdir(workplace.folder)
    monkeypatch.setenv('PYTHONPATH', str(ROOT))
    (tmp_path / 'docs').mkdir()
    shutil.copy(ROOT / 'docs' / 'comparison.md', tmp_path / 'docs')
    work_dirs = tmp_path / 'runs'
    missing = Contender('retinanet', 'pvt_v2_b0')
    for contender in CONTENDERS:
        if contender == missing:
            continue
        folder = work_dirs / contender.name / 'seed_0'
        folder.mkdir(parents=True)
        mask_ap = 0.4 if contender.detector == 'mask_rcnn' else None
        made_up = dict(name=contender.name, seed=0, box_ap=0.5, mask_ap=mask_ap)
        made_up |= dict(seconds=1, machine={})
        (folder / 'outcome.json').write_text(json.dumps(made_up))
    monkeypatch.setattr(report, '_cost', lambda *_: Part('total', 1, Counter()))
    places = ('--work-dirs', work_dirs, '--out', tmp_path)
    assert tool.main([*map(str, ('--seeds', 0, *places))]) == 0
    printed = capsys.readouterr().out
    assert '7 of 8 runs are done' in printed and f'{missing.name}, seed 0: ' in printed
    numbers = json.loads((tmp_path / 'docs' / 'benchmarks' / 'comparison.json').read_text())
    assert len(numbers['runs']) == 8 and numbers['runs'][2]['machine']['threads'] == 1
    assert '8 of 24 runs were done.' in (tmp_path / 'docs' / 'comparison.md').read_text()
    assert (tmp_path / 'docs' / 'images' / 'comparison.png').is_file()


def test_a_page_without_a_place(capsys):
    assert tool.main(['--out', 'nowhere']) == 1
    assert 'nowhere/docs/comparison.md lacks the lines' in capsys.readouterr().err
