"""What is behind ``ptnt`` and ``ptnt_mm.api``, for any config of the hosts.

Importing this package registers the classes that only configs of the workbench name: those of
``ptnt new`` and ``ptnt pretrain``, and those that ``ptnt train`` and ``ptnt test`` add to a config.
"""

import sys
from functools import cache

import ptnt_mm


@cache
def register() -> None:
    """Register the classes: once, on import, or later where ``ptnt_mm.register`` is called later.

    Without torch, on machines that only run exported files, there is nothing to register.
    """
    ptnt_mm.register()
    if 'torch' in sys.modules:
        from ptnt_mm.workbench.data import unlabelled  # noqa: F401
        from ptnt_mm.workbench.engine import (  # noqa: F401
            distillation,
            drawing,
            evaluation_outputs,
            health,
            load_in_range,
            tiled_loops,
        )


if not ptnt_mm.registers_later():
    register()
