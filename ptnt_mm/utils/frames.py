"""Read tracebacks: where an exception was raised, and what was being done. Nothing else reads them.

The local variables that are read here are listed in `tests/config/private_names.py`.
"""

import os
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from mmengine.dataset import Compose
from mmengine.evaluator import BaseMetric
from mmengine.registry import build_from_cfg
from mmengine.runner import Runner, TestLoop, ValLoop
from torch import nn

from ptnt_mm.utils.errors import message_of

_LIBRARIES = tuple(
    f'{folder}{os.sep}'
    for folder in (
        Path(__file__).parents[1],
        *map(sysconfig.get_path, ('stdlib', 'purelib', 'platlib')),
    )
)
_CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


def place_in_own_code(error: BaseException) -> str:
    """The last line of the user's own code in a traceback, as ' (/me/head.py, line 9)', or ''."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not f.filename.startswith((*_LIBRARIES, '<'))]
    return f' ({own[-1].filename}, line {own[-1].lineno})' if own else ''


def failing_line(error: BaseException) -> str:
    """The line that raised an exception, as 'head.py, line 9: assert x'; '' if it is unknown."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ''
    last = frames[-1]
    return f'{Path(last.filename).name}, line {last.lineno}: {last.line}'


def one_line(error: BaseException, named: bool = False) -> str:
    """The first line of an exception's message.

    Args:
        error: The exception. Without a message, as many assertions are, it is described by its
            class and the line of code that raised it.
        named: Whether to put the name of the class before the message too.
    """
    name = type(error).__name__
    message, _, rest = message_of(error).strip().partition('\n')
    if ' in DataLoader worker process ' in message:
        # torch makes the worker's traceback the message; its last line has the name, too.
        return rest.rpartition('\n')[2]
    message = message.strip()
    if not message:
        return ': '.join(filter(None, (name, failing_line(error))))
    return f'{name}: {message}' if named else message


def running_objects(error: BaseException) -> Iterator[Any]:
    """The objects whose methods were running, the innermost last."""
    return (f.f_locals['self'] for f in _frames(error) if 'self' in f.f_locals)


def failing_part(error: BaseException) -> str | None:
    """The class of the innermost module, metric or transform that was running; None without any.

    Those of torch and MMEngine do not count.
    """
    found = None
    for owner in running_objects(error):
        is_part = isinstance(owner, (nn.Module, BaseMetric)) or hasattr(owner, 'transform')
        named = type(owner).__module__.split('.')[0] not in ('torch', 'mmengine')
        if is_part and named and not isinstance(owner, _CONTAINERS):
            found = type(owner).__name__
    return found


def failing_transform(error: BaseException) -> tuple[list, Any] | None:
    """The transforms of a pipeline, and the one that was running; None outside of pipelines."""
    for found in _locals_of(Compose.__call__, error):
        if 't' in found:
            return found['self'].transforms, found['t']
    return None


def last_built(error: BaseException) -> tuple[object, dict] | None:
    """What MMEngine's registry called last, a class or a function, and its arguments."""
    calls = [found for found in _locals_of(build_from_cfg, error) if 'obj_cls' in found]
    return (calls[-1]['obj_cls'], calls[-1]['args']) if calls else None


def evaluating_runner(error: BaseException) -> Runner | None:
    """The runner whose validation was running; None outside of validations."""
    return next((found['self'].runner for found in _locals_of(ValLoop.run, error)), None)


def evaluated_split(error: BaseException) -> str:
    """The split whose evaluation was running: 'val', 'test', or '' outside of evaluations."""
    loops = {'val': ValLoop, 'test': TestLoop}
    return next((name for name in loops if any(_locals_of(loops[name].run, error))), '')


def failed_download(error: BaseException) -> tuple[str, str] | None:
    """The address of a data set that mmpretrain was downloading, and the folder it goes to."""
    for frame in _frames(error):
        if frame.f_code.co_name == 'download_and_extract_archive':
            return frame.f_locals['url'], frame.f_locals['download_root']
    return None


def _frames(error: BaseException) -> Iterator[FrameType]:
    return (frame for frame, _ in traceback.walk_tb(error.__traceback__))


def _locals_of(function: Callable, error: BaseException) -> Iterator[dict[str, Any]]:
    """The local variables of each call of a function in a traceback, the innermost last."""
    return (f.f_locals for f in _frames(error) if f.f_code is function.__code__)
