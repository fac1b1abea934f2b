"""Additions to MMEngine: atomic checkpoints, repeatable training.

Importing this package registers every class of it that a config can name.
"""

from ptnt_mm.engine import dump_maps, hooks, load_in_range, train_loop

__all__ = ['dump_maps', 'hooks', 'load_in_range', 'train_loop']
