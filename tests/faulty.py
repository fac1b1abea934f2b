"""Run a tool that kills itself at the worst moment: `faulty.py MOMENT NUMBER TOOL ...`.

The process kills itself at the NUMBER-th checkpoint that it writes: MOMENT is `half` (half of its
bytes are on the disk), `before` or `after` it gets its name.
"""

import os
import runpy
import signal
import sys

_MOMENT, _NUMBER = sys.argv[1], int(sys.argv[2])
_count = 0


def _is_time(file: object) -> bool:
    """Count the checkpoints; return whether this is the chosen one."""
    global _count
    _count += '.pth' in os.path.basename(str(file))
    return '.pth' in os.path.basename(str(file)) and _count == _NUMBER


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _flush(descriptor: int) -> None:
    file = os.readlink(f'/proc/self/fd/{descriptor}')
    if _is_time(file):
        os.truncate(file, os.path.getsize(file) // 2)
        _die()
    _fsync(descriptor)


def _replace(source: object, target: object) -> None:
    time = _is_time(target)
    if time and _MOMENT == 'before':
        _die()
    _rename(source, target)
    if time:
        _die()


_rename, _fsync = os.replace, os.fsync
if _MOMENT == 'half':
    os.fsync = _flush
else:
    os.replace = _replace
sys.argv = sys.argv[3:]
sys.path[0] = os.path.dirname(sys.argv[0])
runpy.run_path(sys.argv[0], run_name='__main__')
