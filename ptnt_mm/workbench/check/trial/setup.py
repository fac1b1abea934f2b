"""What tried steps need: a model that keeps its predictions, and a few small images."""

import copy
import io
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any

import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import Compose
from mmengine.logging import MessageHub
from mmengine.registry import DATASETS, FUNCTIONS, DefaultScope
from mmengine.structures import BaseDataElement
from torch import Tensor, nn
from torch.nn.functional import interpolate

from ptnt_mm.utils.noise import logging_disabled
from ptnt_mm.utils.numbers import is_number
from ptnt_mm.workbench.check.data_sets import LoadedDataset, identity
from ptnt_mm.workbench.config.build import build_model
from ptnt_mm.workbench.config.hosts import HOSTS, forget_copies
from ptnt_mm.workbench.config.settings import dicts_within, short_name
from ptnt_mm.workbench.config.view import ConfigView, Split

_MANY_WEIGHTS = 300_000_000
_REGIONS = 64  # regions for the second stage of a detector
_MANY = dict(rpn=['max_per_img'], rpn_proposal=['max_per_img'], sampler=['num'])

# Parts of models read the progress of training from MMEngine.
_BEGINNING = dict(iter=0, epoch=0, max_iters=1000, max_epochs=10)

_LARGEST = 1e6  # of random weights

WHOLE = 10**6  # pixels: larger than any image


def model_for_trial(view: ConfigView) -> nn.Module:
    """Build a config's model, which keeps all predictions and uses few regions.

    With random weights, none is above a threshold, so later steps would not be tried. Some
    parameters of mmdet are uninitialised memory until ``init_weights`` is called. It could also
    load a file, so they get random numbers here.
    """
    model = build_model(_config_for_trial(view))
    with torch.no_grad():
        for parameter in model.parameters():
            if not (parameter.abs() < _LARGEST).all():
                parameter.normal_(std=0.02)
    return model


def _config_for_trial(view: ConfigView) -> Config:
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
        return f'{short_name(fetched[0].settings)} has not downloaded its files yet'
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


SIDE = 256  # pixels that a side keeps, plus its remainder
_STEP = 64  # models that restrict sizes require multiples of a divisor of this


Samples = tuple[Mapping, list[dict]]


def load_samples(
    split: Split, data: Sequence[LoadedDataset], choose: Callable[[Any], list[dict]]
) -> Samples:
    """Load a few samples of a split.

    The host builds the data set as in training, with all wrappers, but the data sets inside list
    only a few images. A wrapper may need more of them, such as those that its settings choose by
    number: if it fails, the whole data set is built.

    Args:
        split: Of a config whose host library is imported.
        data: The data sets that were already read. If one was not, the whole data set is built.
        choose: Loads the samples from a data set.

    Returns:
        The metainfo of the data set, and its samples. Exceptions of the whole data set propagate.
    """
    settings = split.dataset
    inner = [dataset.settings for dataset in split.data_sets]
    read = {
        identity(dataset.settings, dataset.trains): dataset
        for dataset in data
        if dataset.sample_entries
    }
    few = {id(part): read.get(identity(part, split.name == 'train')) for part in inner}
    if all(few.values()):
        try:
            return _chosen(_with_samples(settings, few), choose)
        except Exception:  # wrappers may raise anything
            if settings is inner[0]:
                raise
    return _chosen(settings, choose)


def spread_over(data_set: Any) -> list[dict]:
    """The first and the last sample: joined data sets may be of two kinds, as labelled and not."""
    return [data_set[i] for i in sorted({0, len(data_set) - 1})]


def collate_of(split: Split) -> Callable[[list], Any]:
    """The function with which a data loader collates a batch of samples."""
    settings = dict(split.loader.get('collate_fn') or dict(type='pseudo_collate'))
    kind = settings.pop('type')
    function = FUNCTIONS.get(kind) if isinstance(kind, str) else kind
    return lambda samples: function(samples, **settings)


def shrunk(sample: dict, side: int = SIDE, with_truth: bool = False) -> dict:
    """A sample with a smaller image and matching annotations.

    A side of more than ``side`` + 64 pixels becomes ``side`` and its remainder of 64. The original
    size stays as it is: predictions are scaled to it. Samples of another kind are returned as they
    are.

    Args:
        sample: The output of a pipeline; may have several views of an image.
        side: Side in pixels.
        with_truth: Whether boxes and masks refer to the shrunk image, as in training, and not to
            the original, as in evaluation.
    """
    image, annotated = sample.get('inputs'), sample.get('data_samples')
    if isinstance(image, list) and isinstance(annotated, list):
        pairs = zip(image, annotated, strict=True)
        views = [shrunk(dict(inputs=i, data_samples=a), side, with_truth) for i, a in pairs]
        return {key: [view[key] for view in views] for key in ('inputs', 'data_samples')}
    if not isinstance(image, Tensor) or not isinstance(annotated, BaseDataElement):
        return sample
    old = tuple(image.shape[-2:])
    size = tuple(length if length < side + _STEP else side + length % _STEP for length in old)
    if size == old:
        return sample
    scales = size[0] / old[0], size[1] / old[1]
    annotated = copy.deepcopy(annotated)
    for key in ('img_shape', 'pad_shape'):
        if len(stated := annotated.get(key, ())) >= 2:
            lengths = (round(n * scale) for n, scale in zip(stated, scales, strict=False))
            annotated.set_metainfo({key: tuple(lengths)})
    if len(factor := annotated.get('scale_factor', ())) == 2:
        annotated.set_metainfo(dict(scale_factor=(factor[0] * scales[1], factor[1] * scales[0])))
    if with_truth:
        _resize(annotated, size, scales)
    smaller = interpolate(image[None].float(), size=size)[0].to(image.dtype)
    return dict(sample, inputs=smaller, data_samples=annotated)


def _with_samples(settings: Any, few: dict[int, LoadedDataset]) -> Any:
    """Settings in which functions that return a few images replace the innermost data sets."""
    if isinstance(settings, (list, tuple)):
        return [_with_samples(part, few) for part in settings]
    if not isinstance(settings, Mapping):
        return settings
    if id(settings) not in few:
        return {key: _with_samples(value, few) for key, value in settings.items()}

    # Wrappers that refuse other built wrappers build this like any other settings.
    def build(pipeline: Sequence = (), **_: Any) -> Any:
        data = few[id(settings)]
        small = copy.copy(data.built)
        small.data_list = copy.deepcopy(data.sample_entries)
        small.pipeline = Compose(pipeline or [])
        return small

    return dict(settings, type=build)


def _chosen(settings: Mapping, choose: Callable[[Any], list[dict]]) -> Samples:
    try:
        data_set = DATASETS.build(copy.deepcopy(settings))
        return data_set.metainfo, choose(data_set)
    finally:
        forget_copies()


def _resize(annotated: BaseDataElement, size: tuple[int, int], scales: tuple[float, float]) -> None:
    """Resize boxes, object masks and class masks to a size (height, width), in place."""
    for name in ('gt_instances', 'ignored_instances'):
        if name in annotated:
            instances = annotated.get(name)
            if 'bboxes' in instances:
                instances.bboxes.rescale_(scales[::-1])
            if 'masks' in instances:
                instances.masks = instances.masks.resize(size)
    for name in ('gt_sem_seg', 'gt_edge_map', 'gt_depth_map'):
        if name in annotated:
            maps = annotated.get(name)
            resized = {
                key: interpolate(pixels[None].float(), size=size)[0].to(pixels.dtype)
                for key, pixels in maps.items()
                if isinstance(pixels, torch.Tensor)
            }
            annotated.set_field(type(maps)(**resized), name)
