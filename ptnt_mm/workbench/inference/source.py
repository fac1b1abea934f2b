"""The source of ``ptnt infer``: an image, a folder, a video or a webcam; needs no torch."""

import os
from pathlib import Path

from ptnt_mm.utils.errors import UserError

_VIDEO_SUFFIXES = ('.avi', '.m4v', '.mkv', '.mov', '.mp4', '.mpeg', '.mpg', '.webm', '.wmv')


class Source:
    """An image, a folder of images, a video, or a webcam.

    Args:
        text: A file, a folder, or the number of a webcam, counted from 0.

    Attributes:
        path: The file or folder; the number of a webcam.
        name: Its path, or webcam_0 and so on.
        is_webcam: Whether it is a webcam.
        is_video: Whether it is a video or a webcam, and not an image or a folder.

    Raises:
        UserError: if there is no such file or folder. A webcam is looked for where it is opened.
    """

    def __init__(self, text: str):
        self.path = Path(text)
        exists = os.path.exists(text)  # of a path, a name that is too long is an error
        self.is_webcam = text.isdecimal() and not exists
        if not self.is_webcam and not exists:
            raise UserError(f'there is no image, folder or video {text}')
        is_movie = self.path.suffix.lower() in _VIDEO_SUFFIXES and not self.path.is_dir()
        self.is_video = self.is_webcam or is_movie
        self.name = f'webcam_{text}' if self.is_webcam else text

    @property
    def default_out(self) -> Path:
        """The folder of its results if no other is given."""
        name = self.name if self.is_webcam else self.path.resolve().name
        return Path('work_dirs', 'infer', name)
