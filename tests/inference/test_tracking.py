"""Identities of objects in a video: the tracker, and what ``ptnt infer --track`` writes."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path

import cv2
import manual
import numpy as np
import pytest
from exported import export_detector
from repository import ROOT

from ptnt_mm.deploy import Detections
from ptnt_mm.workbench.cli.main import run as run_command

from .samples import NAME
from .videos import frames_of, write_video

SIZE = (64, 96)
"""Height and width of the frames of ``write_video``."""


@pytest.fixture
def trackers() -> None:
    pytest.importorskip('trackers')


class Moving:
    """Detects two squares that move apart, in another order in each frame; from frame 6 a third.

    Nothing is found in frame 4. The third has another class in every second frame.
    """

    def __init__(self, has_masks: bool = False, has_boxes: bool = True):
        self._frame = count()
        self._has_masks, self._has_boxes = has_masks, has_boxes

    def __call__(self, pixels: np.ndarray) -> Detections:
        t = next(self._frame)
        lefts, tops = [30 - 2 * t, 40 + 2 * t, 40], [5, 30, 44]
        shown = [] if t == 4 else [0, 1, 2] if t >= 6 else [0, 1]
        shown = shown[::-1] if t % 2 else shown
        boxes = np.array([[lefts[i], tops[i], lefts[i] + 16, tops[i] + 16] for i in shown])
        boxes = boxes.reshape(-1, 4).astype(np.float32)
        masks = np.zeros((len(shown), *pixels.shape[:2]), bool)
        for mask, (x1, y1, x2, y2) in zip(masks, boxes.astype(int), strict=True):
            mask[y1:y2, x1:x2] = True
        return Detections(
            boxes if self._has_boxes else np.zeros_like(boxes),
            np.array([0.9 - 0.1 * i for i in shown], np.float32),
            np.array([t % 2 if i == 2 else i for i in shown], np.int64),
            masks if self._has_masks else None,
        )


def export(monkeypatch: pytest.MonkeyPatch, network: Callable, **about: object) -> None:
    about = dict(classes=['cup', 'ball']) | about
    export_detector(monkeypatch, Path('x.onnx'), network, **about)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a video of 12 frames, and an exported file that detects squares."""
    monkeypatch.chdir(tmp_path)
    export(monkeypatch, Moving())
    write_video(tmp_path / 'clip.avi', frames=12, code='MJPG')
    return tmp_path


def infer(*words: object) -> int:
    return run_command('infer', [str(words[0]), 'x.onnx', '--track', *map(str, words[1:])])


def tracks(folder: Path) -> list[dict]:
    """For each frame, the number of each class and row of pixels."""
    images = json.loads((folder / 'predictions.json').read_text())['images']
    return [{d['box'][1]: d['track_id'] for d in image['detections']} for image in images]


FOLLOWED = [
    {5: None, 30: None},
    *[{5: 1, 30: 2}] * 3,
    {},
    {5: None, 30: None},
    {5: None, 30: None, 44: None},
    *[{5: 1, 30: 2, 44: None}] * 2,
    *[{5: 1, 30: 2, 44: 3}] * 3,
]
"""The numbers of the squares in the 12 frames."""


def test_numbers_are_kept(place: Path, trackers: None, capsys: pytest.CaptureFixture):
    assert infer('clip.avi', '--out', 'out') == 0
    assert tracks(place / 'out') == FOLLOWED
    assert 'Found 28 objects in 11 of 12 frames: 3 tracks' in capsys.readouterr().out


def test_only_scores_that_count_are_followed(place: Path, trackers: None):
    assert infer('clip.avi', '--out', 'out', '--score-thr', 0.85) == 0
    assert [*tracks(place / 'out')[3].items()] == [(5, 1)]


def write_frames(folder: Path, frames: Iterable[np.ndarray]) -> Path:
    folder.mkdir()
    for number, frame in enumerate(frames):
        # In the order of text, 10 comes before 2.
        cv2.imwrite(str(folder / f'frame_{number}.png'), frame)
    return folder


def test_a_folder_of_frames(place: Path, trackers: None):
    frames = write_frames(place / 'frames', frames_of(place / 'clip.avi'))
    # A damaged frame is reported, and does not disturb the others.
    (frames / 'frame_12.png').write_bytes(b'no image')
    assert infer(frames, '--out', 'out') == 1
    found = json.loads((place / 'out' / 'predictions.json').read_text())
    assert [image['file'] for image in found['images']] == [f'frame_{i}.png' for i in range(12)]
    assert tracks(place / 'out') == FOLLOWED
    assert [failed['file'] for failed in found['failed']] == ['frame_12.png']


def colours(out: Path) -> Iterator[dict[int | None, tuple]]:
    """For each frame, the colours at the lower side of the boxes of each track."""
    for image in json.loads((out / 'predictions.json').read_text())['images']:
        drawn = cv2.imread(str(out / 'drawn' / image['file']))
        yield {
            found['track_id']: tuple(drawn[y2, x1 + 8].tolist())
            for found in image['detections']
            for x1, _, _, y2 in [map(int, found['box'])]
        }


def test_a_track_has_one_colour(place: Path, trackers: None):
    frames = write_frames(place / 'frames', [np.zeros((*SIZE, 3), np.uint8)] * 12)
    assert infer(frames, '--out', 'out') == 0
    seen = [*colours(place / 'out')]
    for number in (1, 2, 3):
        assert len({frame[number] for frame in seen if number in frame}) == 1
    last = seen[-1]
    assert len(set(last.values())) == 3, 'also of two objects of the same class'
    assert seen[0][None] == (128, 128, 128), 'none yet'


@pytest.mark.parametrize('has_boxes', [True, False], ids=['boxes and masks', 'only masks'])
def test_masks(has_boxes: bool, place: Path, trackers: None, monkeypatch):
    export(monkeypatch, Moving(True, has_boxes), has_masks=True)
    assert infer('clip.avi', '--out', 'out') == 0
    found = json.loads((place / 'out' / 'predictions.json').read_text())['images'][-1]['detections']
    assert [d['track_id'] for d in found] == [1, 2, 3]
    assert [d['box'][1] for d in found] == pytest.approx([5, 30, 44], abs=1)
    assert all(d['mask']['size'] == [*SIZE] for d in found)


def test_without_tracking_nothing_changes(place: Path):
    assert run_command('infer', ['clip.avi', 'x.onnx', '--out', 'out']) == 0
    found = json.loads((place / 'out' / 'predictions.json').read_text())['images'][0]['detections']
    assert [set(detection) for detection in found] == [{'label', 'score', 'box'}] * 2


def test_an_object_that_is_gone_for_half_a_second(place: Path, trackers: None, monkeypatch):
    frames = count()

    def detect(pixels: np.ndarray) -> Detections:
        t = next(frames)
        box = np.array([[t, 10, t + 20, 30]], np.float32)[: 0 if 10 <= t < 20 else 1]
        return Detections(box, np.ones(len(box)), np.zeros(len(box), int), None)

    export(monkeypatch, detect)
    write_video(place / 'clip.avi', frames=40, code='MJPG', rate=20)
    assert infer('clip.avi', '--out', 'out') == 0
    numbers = [number for frame in tracks(place / 'out') for number in frame.values()]
    # 30 detections: the first is alone, the next gap is before the eleventh.
    assert [i for i, number in enumerate(numbers) if number != 1] == [0, 10, 11]


def test_colours_repeat_and_numbers_are_written(place: Path, trackers: None, monkeypatch):
    corners = np.array([(x, y) for y in range(20, 400, 50) for x in range(10, 400, 45)][:64])
    boxes = np.hstack([corners, corners + 20]).astype(np.float32)
    labels = np.zeros(64, np.int64)
    export(monkeypatch, lambda pixels: Detections(boxes, np.linspace(0.9, 0.8, 64), labels, None))
    frames = write_frames(place / 'frames', [np.zeros((420, 420, 3), np.uint8)] * 3)
    assert infer(frames, '--out', 'out') == 0
    *_, of_tracks = colours(place / 'out')
    assert of_tracks[1] == of_tracks[64] and len(set(of_tracks.values())) == 63
    covered = [cv2.imread(f'out/drawn/frame_{i}.png').any(axis=-1).sum() for i in (0, 2)]
    assert covered[0] < covered[1], 'before the names'


@pytest.mark.parametrize('files', [['one.png'], ['left/1.png', 'right/1.png']])
def test_what_is_no_video_is_refused(files: list[str], place: Path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, 'trackers', pytest)  # any module
    for name in files:
        file = place / 'in' / name
        file.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(file), np.zeros((8, 8, 3), np.uint8))
    assert infer('in', '--out', 'out') == 1
    said = capsys.readouterr().err
    assert '--track' in said and all(name.split('/')[0] in said for name in files)
    assert not (place / 'out').exists()


@pytest.mark.parametrize('task', ['segmentation', 'classification'])
def test_other_models_are_refused(task: str, place: Path, monkeypatch, capsys):
    export(monkeypatch, Moving(), task=task)
    monkeypatch.setitem(sys.modules, 'trackers', pytest)  # any module
    assert infer('clip.avi', '--out', 'out') == 1
    assert '--track' in capsys.readouterr().err
    assert not (place / 'out').exists()


def test_the_package_is_named_before_a_model_is_loaded(place: Path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, 'trackers', None)
    (place / 'x.onnx').write_bytes(b'damaged')
    assert infer('clip.avi') == 1
    assert 'pip install trackers' in capsys.readouterr().err


def test_the_code_of_the_page(checkpoint: Path, trackers: None, tmp_path: Path, monkeypatch):
    (block,) = (b for b in manual.blocks(ROOT / 'docs' / 'python.md') if 'supervision' in b.text)
    code = block.text
    changes = {
        'my_project/work_dir/epoch_12.pth': str(checkpoint),
        'my_project': NAME,
        'person': 'cup',
    }
    for theirs, ours in changes.items():
        assert theirs in code
        code = code.replace(theirs, ours)
    monkeypatch.chdir(tmp_path)
    write_video(tmp_path / 'street.mp4', frames=4)
    exec(compile(code, 'python.md', 'exec'), {})
    assert len(frames_of(tmp_path / 'annotated.mp4')) == 4
