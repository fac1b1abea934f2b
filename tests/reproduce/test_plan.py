"""What training takes."""

import dataclasses
from pathlib import Path

import pytest

from ptnt_mm.utils.errors import UserError
from reproduction import step_times
from reproduction.entries import find_entries
from reproduction.plan import gpu_hours, plan_table
from reproduction.step_times import StepTime, add_step_time, measure_step, read_step_times

pytest.importorskip('mmdet')

NAMES = ['retinanet_ptnt_ti_1x', 'retinanet_ptnt_ti_3x']
STEP = StepTime(0.36, 2, '800x1333', 'a GPU', '2.11.0', '2026-01-01')


def test_gpu_hours_are_epochs_times_images_times_seconds():
    short, long = find_entries(NAMES)
    # 12 epochs x 117,266 images x 0.18 s
    assert gpu_hours(short, STEP) == pytest.approx(70.36, abs=0.01)
    assert gpu_hours(long, STEP) == pytest.approx(3 * 70.36, abs=0.03)


def test_gpu_hours_of_iterations():
    (entry,) = find_entries(['upernet_ptnt_s_80k_cityscapes'])
    # 80,000 iterations x 8 images x 0.18 s
    assert gpu_hours(entry, STEP) == pytest.approx(32)
    text = plan_table([entry], {'upernet_ptnt_s_cityscapes': STEP})
    assert '| 80,000 iterations |        32 |       a GPU | ptnt_s_82.0.pth.tar |' in text


def test_rows_stay_rows_with_long_names_of_gpus():
    step = dataclasses.replace(STEP, device='NVIDIA H100 80GB HBM3')
    names = ['cascade_mask_rcnn_ptnt_ti_3x_ms', 'upernet_ptnt_ti_160k_ade20k']
    chosen = find_entries(names)
    table = plan_table(chosen, {entry.step: step for entry in chosen}).split('\n\n')[0]
    assert len(table.splitlines()) == 4


def test_one_measurement_serves_all_lengths():
    text = plan_table(find_entries(NAMES), {'retinanet_ptnt_ti': STEP})
    assert '|        70 |       a GPU | ptnt_ti_75.2.pth.tar |' in text
    assert 'Together: 281 GPU hours in 2 rows.' in text
    assert 'no step was measured' not in text


def test_without_a_measurement_the_column_is_empty_and_says_why():
    text = plan_table(find_entries(NAMES), {})
    assert '2 of 2 rows are empty: no step was measured' in text
    assert 'reproduce.py measure CONFIG --device cuda' in text
    assert 'Together' not in text and 'github.com/huawei-noah' in text


def test_measurements_are_kept_beside_each_other(tmp_path: Path):
    file = tmp_path / 'times.json'
    (dino,), slower = find_entries(['dino_ptnt_s_1x']), dataclasses.replace(STEP, seconds=0.5)
    for entry, step in (
        (dino, STEP),
        (find_entries(NAMES)[0], STEP),
        (find_entries(NAMES)[1], slower),
    ):
        add_step_time(file, entry, step)
    assert read_step_times(file) == {'dino_ptnt_s': STEP, 'retinanet_ptnt_ti': slower}


@pytest.mark.parametrize(
    ('name', 'size'),
    [
        ('retinanet_ptnt_ti_1x', '800x1333'),
        ('upernet_ptnt_ti_160k_ade20k', '512x512'),
        ('upernet_ptnt_s_80k_cityscapes', '512x1024'),
    ],
)
def test_images_have_the_benchmarks_size_by_default(name: str, size: str, monkeypatch):
    monkeypatch.setattr(step_times, 'time_steps', lambda *arguments: [1.0] * 3)
    (entry,) = find_entries([name])
    assert measure_step(entry, 'cpu', None, steps=1).size == size


def test_a_device_that_is_not_there():
    with pytest.raises(UserError, match='cannot be trained on cuda:99'):
        measure_step(find_entries(NAMES)[0], 'cuda:99', (64, 96), steps=1)


@pytest.mark.parametrize('content', ['{', '[]', '{"a": {"seconds": 1}}'])
def test_a_file_of_something_else(tmp_path: Path, content: str):
    file = tmp_path / 'times.json'
    file.write_text(content)
    with pytest.raises(UserError, match='times.json holds no step times'):
        read_step_times(file)
