"""Training and testing, and what they add to MMEngine.

Importing this package registers every class of it that a config can name.
"""

from ptnt_mm.data import unlabelled
from ptnt_mm.engine import evaluation_outputs, hooks, load_in_range, repeat, tiled_loops

__all__ = ['evaluation_outputs', 'hooks', 'load_in_range', 'repeat', 'tiled_loops', 'unlabelled']
