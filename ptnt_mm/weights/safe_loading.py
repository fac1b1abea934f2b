"""Importing this module makes MMEngine load checkpoints safely, also before a run has hooks.

For ``custom_imports``: mmdet's ``init_detector`` and the inferencers read a config, then a file.
"""

from ptnt_mm.weights.mmengine import make_loading_safe

make_loading_safe()
