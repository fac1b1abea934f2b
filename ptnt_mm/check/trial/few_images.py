"""A few images of a data set, loaded by the config's pipeline, and shrunk."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from mmengine.dataset import BaseDataset, Compose
from mmengine.registry import DATASETS, FUNCTIONS
from mmengine.structures import BaseDataElement
from torch import Tensor
from torch.nn.functional import interpolate

from ptnt_mm.check.data_sets import LoadedDataset, identity
from ptnt_mm.config.view import ConfigView

SIDE = 256  # pixels that a side keeps, plus its remainder
_STEP = 64  # models that restrict sizes require multiples of a divisor of this


Samples = tuple[Mapping, list[dict]]


def load_samples(
    view: ConfigView, split: str, data: Sequence[LoadedDataset], choose: Callable[[Any], list[dict]]
) -> Samples:
    """Load a few samples of a split.

    The host builds the data set as in training, with all wrappers, but the data sets inside list
    only a few images. A wrapper may need more of them, such as those that its settings choose by
    number: if it fails, the whole data set is built.

    Args:
        view: A config whose host library is imported.
        split: 'train', 'val' or 'test'.
        data: The data sets that were already read. If one was not, the whole data set is built.
        choose: Loads the samples from a data set.

    Returns:
        The metainfo of the data set, and its samples. Exceptions of the whole data set propagate.
    """
    settings = view.split(split).dataset
    inner = [dataset.settings for dataset in view.split(split).data_sets]
    read = {
        identity(dataset.settings, dataset.trains): dataset
        for dataset in data
        if dataset.sample_entries
    }
    few = {id(part): read.get(identity(part, split == 'train')) for part in inner}
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


def collate_of(view: ConfigView, split: str) -> Callable[[list], Any]:
    """The function with which a data loader collates a batch of samples."""
    settings = dict(view.split(split).loader.get('collate_fn') or dict(type='pseudo_collate'))
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
        # MMEngine copies data sets, as for KFoldDataset, with a memo that it never empties. Its
        # keys are ids, which later objects get again: their copies would be of earlier ones.
        for memo in BaseDataset._copy_without_annotation.__defaults__ or ():
            memo.clear()


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
