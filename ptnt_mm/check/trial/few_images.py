"""A few images of a data set, loaded by the config's pipeline, and shrunk."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from mmengine.config import Config
from mmengine.dataset import Compose
from mmengine.registry import DATASETS, FUNCTIONS
from mmengine.structures import BaseDataElement
from torch import Tensor
from torch.nn.functional import interpolate

from ptnt_mm.check.data_sets import Data, identity

SIDE = 256  # pixels that a side keeps, plus its remainder
_STEP = 64  # models that restrict sizes require multiples of a divisor of this


def few_images(config: Config, split: str, data: Sequence[Data]) -> Any:
    """The data set of a split, wrappers included, with a few of its images.

    Args:
        config: A config whose host library is imported.
        split: 'train', 'val' or 'test'.
        data: The data sets that were already read. Others are read as in training.
    """
    settings = config[f'{split}_dataloader'].dataset
    read = {identity(dataset.settings, dataset.trains): dataset for dataset in data if dataset.few}
    try:
        return _small(settings, split, read)
    except KeyError:
        return DATASETS.build(copy.deepcopy(settings))


def collate_of(config: Config, split: str) -> Callable[[list], Any]:
    """The function with which a data loader collates a batch of samples."""
    settings = dict(config[f'{split}_dataloader'].get('collate_fn') or dict(type='pseudo_collate'))
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


def _small(settings: dict, split: str, read: dict[str, Data]) -> Any:
    """Return the data set; raise a KeyError if one that it joins or wraps was not read."""
    if 'datasets' in settings:
        parts = [_small(part, split, read) for part in settings['datasets']]
        return DATASETS.build(dict(settings, datasets=parts))
    if 'dataset' in settings:
        return DATASETS.build(dict(settings, dataset=_small(settings['dataset'], split, read)))
    data = read[identity(settings, split == 'train')]
    small = copy.copy(data.built)
    small.data_list = copy.deepcopy(data.few)
    small.pipeline = Compose(settings.get('pipeline') or [])
    return small


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
