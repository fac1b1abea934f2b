"""MMEngine without slow work that tests repeat, for processes that run many configs.

Importing this module avoids four kinds of work; :func:`spare_imports` makes a fifth cheap. What
MMEngine returns stays the same, but for line breaks in the text of a config.
"""

import functools
import gc
from types import SimpleNamespace

from mmengine.config import config, utils
from mmengine.dataset import base_dataset
from mmengine.runner import runner
from yapf.yapflib import yapf_api

# For each mmdet config that one of our configs inherits, a hundred YAML files are parsed.
utils.load = functools.cache(utils.load)

# A config is formatted for the log, for its file, and for each checkpoint: a twentieth of a second
# each. Unformatted, it is the same Python. The fork of MMEngine imports the function when it needs it.
yapf_api.FormatCode = config.FormatCode = lambda text, **settings: (text, False)

# It starts compilers, to log their versions for each run.
runner.collect_env = functools.cache(runner.collect_env)

# Reading a data set triggers a garbage collection over everything that PyTorch imported.
base_dataset.gc = SimpleNamespace(collect=int)


def spare_imports() -> None:
    """Exclude all current objects from garbage collection."""
    gc.freeze()
