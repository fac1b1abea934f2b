"""Silence what libraries print during a command and its user cannot act on.

Only commands do this, and not ``import ptnt_mm``; the log of a run is filtered by
`ptnt_mm.utils.terminal`. Errors, warnings of the user's code and of ptnt_mm, and the log files stay
as they are. ``python -W default`` and a level in the variable OPENCV_LOG_LEVEL show warnings again.
"""

import logging
import os
import re
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any

_ENVIRONMENT = {
    'OPENCV_LOG_LEVEL': 'ERROR',  # a line for each unknown tag of each TIFF file
    'OPENCV_FFMPEG_LOGLEVEL': '-8',  # a damaged video
}
"""Variables that are read when a library is imported; child processes inherit them."""

_OPENCV_SILENT, _OPENCV_ERROR = 0, 2  # the numbers of these levels in OpenCV 4 and 5

_LOGGERS = ('tifffile', 'PIL.TiffImagePlugin', 'matplotlib.font_manager')
"""They write about tags of files that they do not name, and a cache of fonts that is built once."""

_ANNOUNCEMENTS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, SyntaxWarning)
"""Only the authors of the code can act on them."""

_ANNOUNCEMENT = re.compile(
    r'deprecated|(future|upcoming|later) (release|version)|will be removed|'
    r'is skipped since its requires_grad',  # what --pretrained freezes
    re.IGNORECASE,
)
"""The same as text, because the hosts use other categories, and their logs have none."""

_IN_NORMAL_USE = (
    'Default ``avg_non_ignore`` is False',
    'Detected call of `scheduler.step()` before',  # with accumulated gradients
    'For binary segmentation, we suggest',
    'The draw is False',
    'The prefix is not set in metric class',
    'Since `metrics` is an empty dict',  # HealthHook says why
)
"""How warnings of the hosts begin that our own configs and flags cause."""

_DECODERS = {'PIL', 'cv2', 'imageio', 'tifffile'}
"""Packages whose warnings are about the metadata of a file that they do not name."""

_HOSTS = ('mmcv', 'mmdet', 'mmengine', 'mmpretrain', 'mmrotate', 'mmseg')  # may be checkouts

_OURS = Path(__file__).parents[1]


def silence_libraries() -> None:
    """Silence warnings, and those libraries that read the environment: before they are imported.

    Warnings stay as they are if Python was started with options for them.
    """
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if not sys.warnoptions and not getattr(warnings.showwarning, 'is_ours', False):
        warnings.showwarning = _without_noise(warnings.showwarning)


@cache
def silence_imported() -> None:
    """Silence libraries that print without warnings. Those that are missing are skipped."""
    with suppress(ImportError):
        if os.environ.get('OPENCV_LOG_LEVEL') == _ENVIRONMENT['OPENCV_LOG_LEVEL']:
            # ``python -m ptnt_mm`` has imported it before.
            _set_opencv_level(_OPENCV_ERROR)
    with suppress(ImportError):
        from pycocotools import coco, cocoeval

        # They always print their progress. Their functions find this `print` before Python's.
        coco.print = cocoeval.print = lambda *args, **kwargs: None


@contextmanager
def opencv_silenced() -> Iterator[None]:
    """Drop what OpenCV prints about an error that its caller reports."""
    before = _set_opencv_level(_OPENCV_SILENT)
    try:
        yield
    finally:
        _set_opencv_level(before)


def _set_opencv_level(level: int) -> int:
    """Set the level of OpenCV's log; return the level before."""
    import cv2

    # OpenCV 5 has moved the function.
    return (getattr(cv2, 'setLogLevel', None) or cv2.utils.logging.setLogLevel)(level)


def _without_noise(show: Callable) -> Callable:
    """A `warnings.showwarning` that drops what a user cannot act on."""

    @wraps(show)
    def show_others(
        message: Warning, category: type, filename: str, lineno: int, *others: Any, **named: Any
    ) -> None:
        if not is_noise(str(message), filename, category):
            show(message, category, filename, lineno, *others, **named)

    show_others.is_ours = True
    return show_others


def is_noise(text: str, file: str, category: type[Warning] = UserWarning) -> bool:
    """Whether a user cannot act on a warning that comes from a file of Python code."""
    package = library_of(file)
    return bool(package) and (
        package in _DECODERS
        or issubclass(category, _ANNOUNCEMENTS)
        or text.startswith(_IN_NORMAL_USE)
        or bool(_ANNOUNCEMENT.search(text))
    )


def is_ours(file: str) -> bool:
    """Whether a file of Python code belongs to ptnt_mm."""
    return Path(file).is_relative_to(_OURS)


@cache
def library_of(file: str) -> str:
    """The package or module of a library that a file belongs to; empty for other code."""
    path = Path(file)
    if is_ours(file):
        return ''
    if file.startswith('<frozen '):  # the import system
        return 'importlib'
    for i, part in enumerate(path.parts[:-1]):
        if part in ('site-packages', 'dist-packages'):
            return path.parts[i + 1]
    for name in _HOSTS:
        origin = getattr(sys.modules.get(name), '__file__', None)
        if origin and path.is_relative_to(Path(origin).parent):
            return name
    stdlib = Path(sysconfig.get_path('stdlib'))
    return path.relative_to(stdlib).parts[0] if path.is_relative_to(stdlib) else ''


@contextmanager
def logging_disabled(level: int = logging.CRITICAL) -> Iterator[None]:
    """Drop the messages of all loggers up to a level; then restore what was dropped before."""
    before = logging.root.manager.disable
    logging.disable(max(level, before))
    try:
        yield
    finally:
        logging.disable(before)
