"""Videos and webcams: read frames, write and show them."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from ptnt_mm.utils.atomic_files import temporary_name
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.noise import opencv_silenced

VIDEO_SUFFIXES = ('.avi', '.m4v', '.mkv', '.mov', '.mp4', '.mpeg', '.mpg', '.webm', '.wmv')

_FPS = 25.0  # frames per second of a webcam that does not report a rate

_WHOLE = 0.95  # share of the announced frames in a complete video. Some formats round the number


class Video:
    """The frames of a video, one after the other, each (H, W, 3) uint8, BGR.

    Attributes:
        name: Name of the file or the webcam.
        fps: Frames per second.
        announced: Number of frames according to the file; None if unknown.
    """

    def __init__(self, name: str, capture: cv2.VideoCapture, ends: bool):
        self.name = name
        self.fps = capture.get(cv2.CAP_PROP_FPS)
        if not 0 < self.fps < 1000:
            self.fps = _FPS
        frames = int(capture.get(cv2.CAP_PROP_FRAME_COUNT))
        self.announced = frames if ends and frames > 0 else None
        self._capture = capture

    def __iter__(self) -> Iterator[np.ndarray]:
        while (found := self._capture.read())[0]:
            yield found[1]

    def check_end(self, frames: int) -> None:
        """Raise a UserError if a video that ended after ``frames`` frames is not complete."""
        if frames == 0:
            raise UserError(f'{self.name} has no readable frame: it is truncated, or damaged')
        if self.announced and frames < _WHOLE * self.announced:
            raise UserError(
                f'{self.name} ends after {frames} of {self.announced} frames: it is truncated, or '
                'damaged'
            )


def open_video(source: Path | int) -> Video:
    """Open a video file, or a webcam by its number, counted from 0, or raise a UserError."""
    is_webcam = isinstance(source, int)
    with opencv_silenced():
        capture = cv2.VideoCapture(source if is_webcam else str(source))
    if capture.isOpened():
        return Video(f'webcam_{source}' if is_webcam else str(source), capture, not is_webcam)
    if is_webcam:
        raise UserError(f'there is no webcam {source}, or another program uses it')
    raise UserError(f'{source} cannot be read as a video: it is truncated, damaged, or not a video')


class Movie:
    """Writes an .mp4 file whose frame size is that of its first frame.

    A context manager: at its end, even after an error, the file gets its name and contains the
    frames written so far.
    """

    def __init__(self, file: Path, fps: float):
        self._file = file
        # Not ``write_atomically``: OpenCV needs the file extension, and a stopped video is kept.
        self._partial = temporary_name(file, 'partial', file.suffix)
        self._fps = fps
        self._writer = None

    def __enter__(self) -> 'Movie':
        return self

    def __exit__(self, *error: object) -> None:
        if self._writer is not None:
            self._writer.release()
            os.replace(self._partial, self._file)

    def add(self, frame: np.ndarray) -> None:
        """Append a frame, (H, W, 3) uint8, BGR, or raise a UserError."""
        if self._writer is None:
            try:
                self._file.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UserError(f'{self._file} cannot be written: {error.strerror}') from error
            height, width = frame.shape[:2]
            code = cv2.VideoWriter_fourcc(*'mp4v')
            writer = cv2.VideoWriter(str(self._partial), code, self._fps, (width, height))
            if not writer.isOpened():
                self._partial.unlink(missing_ok=True)
                raise UserError(
                    f'{self._file}: OpenCV cannot write a video of {width} x {height} pixels '
                    'there; `draw=False` writes no video'
                )
            self._writer = writer
        self._writer.write(frame)


class Window:
    """A window that shows frames until q or Esc is pressed.

    Raises:
        UserError: if there is no screen.
    """

    def __init__(self, title: str):
        # Without a screen, OpenCV aborts the whole process.
        if sys.platform == 'linux' and not {'DISPLAY', 'WAYLAND_DISPLAY'} & os.environ.keys():
            raise UserError('`show=True` needs a screen, and there is none here: omit it')
        self._title = title

    def show(self, frame: np.ndarray) -> bool:
        """Show a frame, (H, W, 3) uint8, BGR. Return False if q or Esc was pressed."""
        cv2.imshow(self._title, frame)
        return cv2.waitKey(1) & 0xFF not in (27, ord('q'))  # 27 is Esc
