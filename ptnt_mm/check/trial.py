"""What a step of training and the evaluation of one image have in common when they are tried."""

import copy
import io
import logging
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

import numpy as np
import torch
from mmengine.config import Config
from mmengine.registry import DefaultScope

from ptnt_mm.check.few_images import SIDE
from ptnt_mm.engine.config import within
from ptnt_mm.engine.hosts import scope_of

WHOLE = 10**6  # pixels: larger than any image


def without_thresholds(config: Config) -> Config:
    """A copy of a config whose model reports everything, however low the score."""
    changed = copy.copy(config)
    changed.model = copy.deepcopy(config.model)
    for _, settings in within(changed.model.get('test_cfg') or {}, 'test_cfg'):
        if isinstance(settings.get('score_thr'), (int, float)):
            settings['score_thr'] = 0.0
    return changed


def sides(config: Config) -> tuple[int, ...]:
    """The sides in pixels that images are shrunk to, in turn: some models take no smaller ones.

    Classifiers get small images anyway, and many take one size alone. Sliding windows need an image
    that they fit into.
    """
    if scope_of(config) == 'mmpretrain':
        return (WHOLE,)
    crop = (config.model.get('test_cfg') or {}).get('crop_size')
    crop = [n for n in crop if isinstance(n, int)] if isinstance(crop, (list, tuple)) else []
    return max(SIDE, *crop, 0), WHOLE


@contextmanager
def undisturbed(config: Config) -> Iterator[None]:
    """Build in the config's scope, print and log nothing, and leave random generators alone."""
    states = random.getstate(), np.random.get_state()
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            DefaultScope.overwrite_default_scope(scope_of(config)),
            warnings.catch_warnings(action='ignore'),
            redirect_stdout(io.StringIO()),
            torch.random.fork_rng(devices=()),
        ):
            yield
    finally:
        logging.disable(disabled)
        random.setstate(states[0])
        np.random.set_state(states[1])
