"""MMEngine without needless work, for processes that run many configs.

Importing this module avoids five kinds of work; :func:`spare_imports` makes a sixth cheap. What
MMEngine returns stays the same, but for the layout of configs as text.
"""

import copy
import functools
import gc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mmengine.config import config, utils
from mmengine.dataset import base_dataset
from mmengine.runner import runner
from yapf.yapflib import yapf_api

# For each mmdet config that one of our configs inherits, a hundred YAML files are parsed.
utils.load = functools.cache(utils.load)

_read, _known = config.Config._file2dict, {}
_UNCHANGED = (str(Path(__file__).resolve().parents[1] / 'configs'), '.mim')


def _read_once(filename: str, *args: Any, **options: Any) -> tuple[dict, str, dict]:
    """Parse each file of this repository and of the hosts once.

    MMEngine copies a config and each of its bases to a temporary folder to read it.
    """
    key = (str(filename), args, *options.items())
    if not any(part in key[0] for part in _UNCHANGED):
        return _read(filename, *args, **options)
    if key not in _known:
        _known[key] = _read(filename, *args, **options)
    return copy.deepcopy(_known[key])


config.Config._file2dict = staticmethod(_read_once)

lay_out = yapf_api.FormatCode
# A config is laid out for the log, for its file, and for each checkpoint. The fork of MMEngine
# imports the function when it needs it.
yapf_api.FormatCode = config.FormatCode = lambda text, **settings: (text, True)

# It starts compilers, to log their versions for each run.
runner.collect_env = functools.cache(runner.collect_env)

# Reading a data set triggers a garbage collection over everything that PyTorch imported.
base_dataset.gc = SimpleNamespace(collect=int)


def spare_imports() -> None:
    """Exclude all current objects from garbage collection."""
    gc.freeze()
