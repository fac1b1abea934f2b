"""Changes to other libraries on ``import ptnt_mm``; an environment variable switches each off.

The variables are read once, on import. No other module changes another library on import.
"""

import os

from ptnt_mm.mmcv_ops import installation
from ptnt_mm.utils import multimodal
from ptnt_mm.weights.mmengine import make_loading_safe


def apply() -> None:
    """Make the changes that are not switched off with ``=0``.

    - ``PTNT_SAFE_LOADING``: MMEngine loads every checkpoint with our reader, which runs no code in
      the file. Our own commands and functions do so in any case.
    - ``PTNT_MMCV_OPS``: ``import mmcv._ext`` finds our operators if mmcv has none.
    - ``PTNT_OPTIONAL_MULTIMODAL``: mmpretrain is imported without its multimodal models if they
      cannot be imported, such as with a recent transformers.
    """
    if os.environ.get('PTNT_SAFE_LOADING') != '0':
        make_loading_safe()
    if os.environ.get('PTNT_MMCV_OPS') != '0':
        installation.add_finder()
    if os.environ.get('PTNT_OPTIONAL_MULTIMODAL') != '0':
        multimodal.add_finder()
