"""Reading and writing videos."""

import os
from pathlib import Path

import cv2
import numpy as np
import pytest

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.inference.source import Source
from ptnt_mm.workbench.inference.video import Movie, Video, Window


def write_video(file: Path, frames: int = 20, code: str = 'mp4v') -> Path:
    """Noise, because a format may drop repeated frames."""
    writer = cv2.VideoWriter(str(file), cv2.VideoWriter_fourcc(*code), 12.5, (96, 64))
    noise = np.random.default_rng(0)
    for _ in range(frames):
        writer.write(noise.integers(0, 256, (64, 96, 3), np.uint8))
    writer.release()
    return file


def frames_of(file: Path) -> list[np.ndarray]:
    """The frames of a video, (H, W, 3) uint8, BGR."""
    capture, frames = cv2.VideoCapture(str(file)), []
    while (read := capture.read())[0]:
        frames.append(read[1])
    return frames


def test_a_movie_that_cannot_be_written(tmp_path: Path):
    with (
        pytest.raises(UserError, match='cannot write a video of 1 x 1 pixels'),
        Movie(tmp_path / 'x.mp4', 25) as movie,
    ):
        movie.add(np.zeros((1, 1, 3), np.uint8))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('content', [b'', b'no video', None], ids=['empty', 'text', 'cut off'])
def test_unreadable_video_is_named(content: bytes | None, tmp_path: Path):
    file = write_video(tmp_path / 'x.mp4')
    # The index is at the end of the file.
    file.write_bytes(file.read_bytes()[:5000] if content is None else content)
    with pytest.raises(UserError, match='x.mp4 cannot be read as a video'):
        Video(Source(str(file)))


def test_opencv_prints_its_other_errors_as_before(tmp_path: Path):
    set_level = getattr(cv2, 'setLogLevel', None) or cv2.utils.logging.setLogLevel
    before, variables = set_level(4), dict(os.environ)
    try:
        Video(Source(str(write_video(tmp_path / 'x.mp4'))))
        assert set_level(before) == 4 and dict(os.environ) == variables
    finally:
        set_level(before)


@pytest.mark.parametrize(('key', 'goes_on'), [(-1, True), (ord('q'), False), (27, False)])
def test_a_window(key: int, goes_on: bool, monkeypatch: pytest.MonkeyPatch):
    shown = []
    monkeypatch.setenv('DISPLAY', ':0')
    monkeypatch.setattr(cv2, 'imshow', lambda *image: shown.append(image))
    monkeypatch.setattr(cv2, 'waitKey', lambda wait: key)
    assert Window('x').show(np.zeros((4, 4, 3), np.uint8)) is goes_on
    assert len(shown) == 1


def test_window_without_a_screen_is_refused(monkeypatch: pytest.MonkeyPatch):
    for name in ('DISPLAY', 'WAYLAND_DISPLAY'):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UserError, match='`show=True` needs a screen'):
        Window('x')
