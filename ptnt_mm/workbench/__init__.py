"""What ``ptnt`` and ``ptnt_mm.api`` add to the plugin.

Importing this package registers the classes that only configs of the workbench name: those of
``ptnt new`` and ``ptnt pretrain``, and those that ``ptnt train`` and ``ptnt test`` add to a config.
"""

from ptnt_mm.data import unlabelled
from ptnt_mm.engine import (
    distillation,
    drawing,
    evaluation_outputs,
    health,
    load_in_range,
    tiled_loops,
)

__all__ = [
    'distillation',
    'drawing',
    'evaluation_outputs',
    'health',
    'load_in_range',
    'tiled_loops',
    'unlabelled',
]
