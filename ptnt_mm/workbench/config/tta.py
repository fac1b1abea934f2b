"""Test-time augmentation: that of a config, or the sizes and mirroring that training used."""

import copy
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mmengine.config import ConfigDict

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Finding, warning
from ptnt_mm.utils.numbers import is_integer, is_pair
from ptnt_mm.workbench.config.hosts import HOSTS
from ptnt_mm.workbench.config.settings import dicts_within, loads_annotations, short_name, type_name
from ptnt_mm.workbench.config.view import ConfigView

_FACTORS = (1.0, 0.75, 1.25)  # of the size of test images
_NEAR = 1.1  # times the sizes in training, at which a model works as well
_CHANGES_SIZE = re.compile(
    'affine|expand|miniou|mixup|mosaic|resizedcrop|scale(jitter|rotate)', re.I
)
_FAR = 1.5  # times that size, at which a model has not been trained
_MIRRORED = ('flip', 'flip_direction')  # what merging needs to know


def with_tta(view: ConfigView) -> ConfigView:
    """A copy of a config, viewed, whose test data and model are those of ``ptnt test --tta``.

    Without ``tta_pipeline``, the views of an image are made by its test pipeline: also at 0.75 and
    1.25 times the size if training used such sizes, and each mirrored if training mirrored. Without
    ``tta_model``, their predictions are merged by the host's: boxes by non-maximum suppression, the
    scores of pixels and images by their mean.

    Raises:
        UserError: if there is no ``tta_pipeline`` and training used one size without mirroring, or
            if there is no ``tta_model`` and the host has none for this model.
    """
    view = ConfigView(copy.deepcopy(view.config))
    config = view.config
    if not config.get('tta_model'):
        if view.host is None or view.host.tta_model is None:
            raise UserError(f'`tta=True` needs tta_model and tta_pipeline in {view.name}')
        config.tta_model = _model(view)
    stated = config.get('tta_pipeline')
    trained = [step for part in view.train.data_sets for _, step in dicts_within(part.pipeline, '')]
    for data_set in view.test.data_sets:
        if not stated and not data_set.pipeline:
            raise UserError(f'`tta=True` needs a test pipeline, and {view.name} has none')
        pipeline = stated or _pipeline(data_set.pipeline, trained)
        if not stated and views_of(pipeline) == 1:
            reason = 'training used one size and did not mirror, so there is nothing to average'
            advice = f'to choose views, add tta_pipeline to {view.name}'
            raise UserError(f'`tta=True`: {reason}; {advice}')
        data_set.settings['pipeline'] = pipeline
    config.tta_pipeline = view.test.pipeline
    return view


def views_of(pipeline: Sequence[Mapping]) -> int:
    """The number of views of an image that a test pipeline makes."""
    steps = [step for step in pipeline if type_name(step) == 'TestTimeAug']
    return math.prod(len(choices) for step in steps for choices in step['transforms'])


def check_tta_scales(view: ConfigView) -> Iterator[Finding]:
    """Compare the scales of ``tta_pipeline`` with that of the test images."""
    own = [step['scale'] for step in view.test.pipeline if _resizes(step)]
    given = view.config.get('tta_pipeline') or []
    scales = [step['scale'] for _, step in dicts_within(given, 'tta') if _resizes(step)]
    ratios = [max(scale) / max(own[0]) for scale in scales if own]
    if ratios and all(not 1 / _FAR < ratio < _FAR for ratio in ratios):
        listed = ', '.join(str(tuple(scale)) for scale in scales)
        what = f'resizes images to {listed}, the test pipeline to {tuple(own[0])}'
        advice = 'the model was not trained for such sizes: remove tta_pipeline, or use near ones'
        yield warning('tta_pipeline', what, advice)


def _model(view: ConfigView) -> dict[str, Any]:
    settings = dict(type=HOSTS[view.scope].tta_model)
    if view.scope != 'mmdet':
        return settings
    if view.test_cfg.get('panoptic_on'):
        raise UserError('`tta=True`: mmdet merges boxes and masks, but no panoptic maps. Omit it')
    found = [inner for _, inner in dicts_within(view.test_cfg.get('rcnn', view.test_cfg), '')]
    most = next((inner['max_per_img'] for inner in found if 'max_per_img' in inner), 100)
    nms = dict(type='nms', iou_threshold=0.5)
    return dict(settings, tta_cfg=dict(nms=nms, max_per_img=most))


def _pipeline(steps: Sequence[Mapping], trained: Sequence[Mapping]) -> list[dict]:
    """A test pipeline with several views of an image; masks and boxes stay those of the image.

    Args:
        steps: The test pipeline.
        trained: All transforms of training; empty if they are unknown.
    """
    *steps, packing = [ConfigDict(step) for step in steps]
    first = next((i for i, step in enumerate(steps) if short_name(step) == 'Resize'), 1)
    labels = [step for step in steps if loads_annotations(short_name(step))]
    before = [step for step in steps[:first] if step not in labels]
    after = [step for step in steps[first:] if step not in labels]
    views = []
    if after and _resizes(after[0]):
        resize, *after = after
        views = [[_scaled(resize, factor) for factor in _factors(trained, resize['scale'])]]
    if 'meta_keys' in packing:
        packing = dict(packing, meta_keys=(*dict.fromkeys((*packing.meta_keys, *_MIRRORED)),))
    mirrors = not trained or any(map(_mirrors, trained))
    flips = [dict(type='RandomFlip', prob=prob) for prob in ((1.0, 0.0) if mirrors else (0.0,))]
    views += [[step] for step in after] + [flips] + [[step] for step in (*labels, packing)]
    return [*before, dict(type='TestTimeAug', transforms=views)]


def _factors(trained: Sequence[Mapping], size: Sequence[int]) -> list[float]:
    """The factors of a size, (width, height) in pixels, at which images were seen in training."""
    seen = [factor for step in trained for factor in _factors_of(step, size)] or [1.0]
    low, high = min(seen) / _NEAR, max(seen) * _NEAR
    return [f for f in _FACTORS if f == 1 or not trained or low <= f <= high]


def _factors_of(step: Mapping, size: Sequence[int]) -> list[float]:
    """The factors of a size to which a transform resizes; none if it does not resize."""
    if _CHANGES_SIZE.search(type_name(step)):
        return [*_FACTORS]
    if type_name(step) not in ('Resize', 'RandomResize', 'RandomChoiceResize'):
        return []
    # As mmcv does, with the ratio of the sides kept.
    fits = [min(max(scale) / max(size), min(scale) / min(size)) for scale in _scales(step)]
    return [fit * ratio for fit in fits for ratio in step.get('ratio_range') or (1,)]


def _scales(step: Mapping) -> list[Sequence[float]]:
    """The sizes that a transform chooses from, as mmcv reads them: an integer is a square."""
    if 'scales' in step:
        stated = step['scales'] if isinstance(step['scales'], list) else [step['scales']]
    else:
        scale = step.get('scale')
        are_several = isinstance(scale, (list, tuple)) and all(map(is_pair, scale))
        stated = scale if are_several else [scale]
    pairs = [(scale, scale) if is_integer(scale) else scale for scale in stated]
    return [pair for pair in pairs if is_pair(pair)]


def _mirrors(step: Mapping) -> bool:
    """Whether a transform mirrors from left to right."""
    name, direction = type_name(step).lower(), step.get('direction') or 'horizontal'
    is_horizontal = 'vertical' not in name and 'horizontal' in direction
    return 'flip' in name and is_horizontal and step.get('prob', step.get('p')) != 0


def _resizes(step: Mapping) -> bool:
    """Whether a step resizes to a stated size, (width, height)."""
    return type_name(step) == 'Resize' and isinstance(step.get('scale'), (tuple, list))


def _scaled(resize: Mapping, factor: float) -> dict:
    return dict(resize, scale=tuple(round(side * factor) for side in resize['scale']))
