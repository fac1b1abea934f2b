"""Videos and webcams: read frames, predict on them, write and show them."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from ptnt_mm.utils.atomic_files import fitted_name, temporary_name
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.noise import opencv_silenced
from ptnt_mm.utils.progress import new_bar
from ptnt_mm.workbench.inference.predictor import Predictor
from ptnt_mm.workbench.inference.results import Results, reason_of
from ptnt_mm.workbench.inference.source import Source

_FRAME_RATE = 25.0  # frames per second of a webcam that does not report a rate

_WHOLE = 0.95  # share of the announced frames in a complete video. Some formats round the number


class Video:
    """The frames of a video or a webcam, one after the other, each (H, W, 3) uint8, BGR.

    Args:
        source: Which one.
        shows: Whether to show its frames in a window.

    Attributes:
        name: Name of the file or the webcam.
        frame_rate: Frames per second.

    Raises:
        UserError: if it cannot be read, or if there is no screen for a window.
    """

    def __init__(self, source: Source, shows: bool = False):
        self.name = source.name
        # FFmpeg takes the start of a name such as 12:30.mp4 for a protocol.
        file = int(str(source.path)) if source.is_webcam else str(source.path.absolute())
        with opencv_silenced():
            capture = cv2.VideoCapture(file)
        if not capture.isOpened():
            if source.is_webcam:
                raise UserError(f'there is no webcam {source.path}, or another program uses it')
            raise UserError(
                f'{self.name} cannot be read as a video: it is truncated, damaged, or not a video'
            )
        rate = capture.get(cv2.CAP_PROP_FPS)
        self.frame_rate = rate if 0 < rate < 1000 else _FRAME_RATE
        frames = int(capture.get(cv2.CAP_PROP_FRAME_COUNT))
        self._announced = frames if not source.is_webcam and frames > 0 else None
        self._capture = capture
        self._window = Window(self.name) if shows else None

    def sort_frames(self) -> None:
        """Do nothing: frames are read in order."""

    def remarks(self) -> tuple[str, ...]:
        """Lines about files that are not read: none."""
        return ()

    def __iter__(self) -> Iterator[np.ndarray]:
        while (found := self._capture.read())[0]:
            yield found[1]

    def process(self, predictor: Predictor, results: Results, draws: bool) -> None:
        """Predict on each frame until the video ends or its window is closed.

        Raises:
            UserError: if it is damaged, or a frame cannot be processed.
        """
        file, frames = results.drawn / fitted_name(f'{Path(self.name).stem}.mp4'), 0
        with new_bar() as bar, Movie(file, self.frame_rate) as movie:
            for frame in bar.track(self, total=self._announced, description='Frames'):
                try:
                    entry, drawn = predictor.result(frame, draws or self._window is not None)
                except Exception as error:  # the other frames have its size, and would fail too
                    reason = reason_of(error)
                    raise UserError(f'{self.name}, frame {frames}: {reason}') from error
                if draws:
                    movie.add(drawn)
                results.add(file=Path(self.name).name, frame=frames, **entry)
                frames += 1
                if self._window is not None and not self._window.show(drawn):
                    return
        self._check_end(frames)

    def _check_end(self, frames: int) -> None:
        """Raise a UserError if a video that ended after ``frames`` frames is not complete."""
        if frames == 0:
            raise UserError(f'{self.name} has no readable frame: it is truncated, or damaged')
        if self._announced and frames < _WHOLE * self._announced:
            raise UserError(
                f'{self.name} ends after {frames} of {self._announced} frames: it is truncated, or '
                'damaged'
            )


class Movie:
    """Writes an .mp4 file whose frame size is that of its first frame.

    A context manager: at its end, even after an error, the file gets its name and contains the
    frames written so far.
    """

    def __init__(self, file: Path, frame_rate: float):
        self._file = file
        # Not ``write_atomically``: OpenCV needs the file extension, and a stopped video is kept.
        self._partial = temporary_name(file, 'partial', file.suffix)
        self._frame_rate = frame_rate
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
            partial = str(self._partial.absolute())
            writer = cv2.VideoWriter(partial, code, self._frame_rate, (width, height))
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
