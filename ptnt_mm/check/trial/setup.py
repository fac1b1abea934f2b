"""Shared setup for trying a training step and the evaluation of one image."""

import copy
import io
import random
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout

import numpy as np
import torch
from mmengine.config import Config
from mmengine.logging import MessageHub
from mmengine.registry import DefaultScope
from torch import nn

from ptnt_mm.check.data_sets import LoadedDataset
from ptnt_mm.check.trial.few_images import SIDE
from ptnt_mm.config.hosts import HOSTS
from ptnt_mm.config.settings import dicts_within, type_name
from ptnt_mm.config.view import ConfigView
from ptnt_mm.utils.numbers import is_number
from ptnt_mm.utils.quiet_logs import logging_disabled

_MANY_WEIGHTS = 300_000_000
_REGIONS = 64  # regions for the second stage of a detector
_MANY = dict(rpn=['max_per_img'], rpn_proposal=['max_per_img'], sampler=['num'])

# Parts of models read the progress of training from MMEngine.
_BEGINNING = dict(iter=0, epoch=0, max_iters=1000, max_epochs=10)

WHOLE = 10**6  # pixels: larger than any image


def config_for_trial(view: ConfigView) -> Config:
    """A copy of a config whose model keeps all predictions, and uses few regions.

    A model with random weights has no predictions above a threshold, so later steps would not be
    tried.
    """
    changed = copy.copy(view.config)
    changed.model = copy.deepcopy(view.config.model)
    for path, settings in dicts_within(changed.model, 'model'):
        if path.startswith('model.test_cfg') and is_number(settings.get('score_thr')):
            settings['score_thr'] = 0.0
        part = path.rpartition('.')[2]
        for key in _MANY.get(part, ()):
            if isinstance(settings.get(key), int):
                settings[key] = min(settings[key], _REGIONS)
    return changed


def why_not_tried(
    view: ConfigView,
    split: str,
    data: Sequence[LoadedDataset],
    model: nn.Module | None = None,
    thorough: bool = False,
) -> str:
    """Why a step on images of a split is not tried; empty if it is.

    Args:
        view: The config.
        split: 'train', 'val' or 'test'.
        data: The data sets of all splits, read as far as possible.
        model: The model, if it is built: a large one takes long on a CPU.
        thorough: Whether to try it even with a large model, or with data that was not read.
    """
    if view.host is None:
        return f'it is tried for models of {", ".join(HOSTS)} only'
    of_split = [data_set for data_set in data if split in data_set.pipelines]
    if fetched := [data_set for data_set in of_split if data_set.would_fetch]:
        return f'{type_name(fetched[0].settings)} has not downloaded its files yet'
    if thorough:
        return ''
    if not of_split or not all(data_set.sample_entries for data_set in of_split):
        return 'its data set was not read'
    weights = sum(parameter.numel() for parameter in model.parameters()) if model else 0
    if weights > _MANY_WEIGHTS:
        return f'the model has more than {_MANY_WEIGHTS / 1e6:.0f} million weights'
    return ''


def sides(view: ConfigView) -> tuple[int, ...]:
    """The sides in pixels that images are shrunk to, tried in turn: some models need larger ones.

    Classifiers get small images anyway, and many accept only one size. Sliding windows need an
    image that they fit into.
    """
    if view.scope == 'mmpretrain':
        return (WHOLE,)
    crop = view.test_cfg.get('crop_size')
    crop = [n for n in crop if isinstance(n, int)] if isinstance(crop, (list, tuple)) else []
    return max(SIDE, *crop, 0), WHOLE


@contextmanager
def undisturbed(scope: str) -> Iterator[None]:
    """Build in a scope without output, and without changing random generators."""
    states = random.getstate(), np.random.get_state()
    hub = MessageHub.get_current_instance()
    absent = {key: value for key, value in _BEGINNING.items() if key not in hub.runtime_info}
    for key, value in absent.items():
        hub.update_info(key, value)
    try:
        with (
            DefaultScope.overwrite_default_scope(scope),
            warnings.catch_warnings(action='ignore'),
            logging_disabled(),
            redirect_stdout(io.StringIO()),
            torch.random.fork_rng(devices=()),
        ):
            yield
    finally:
        for key in absent:
            hub.pop_info(key)
        random.setstate(states[0])
        np.random.set_state(states[1])
