"""The model settings of a config that differ from the fragment it inherits."""

from collections.abc import Iterator
from typing import Any

from ptnt_mm.workbench.project.backbones import FRAGMENT_BACKBONE
from ptnt_mm.workbench.project.code import Code, keyword, literal
from ptnt_mm.workbench.project.detectors import Place
from ptnt_mm.workbench.project.profile import Profile
from ptnt_mm.workbench.project.recipe import Recipe

_LEVELS = 5  # of a pyramid

# The defaults of the fragments.
_SCALED = [127.5, 127.5, 127.5]

_COUNT = Code('len(classes)')


def model_lines(profile: Profile, recipe: Recipe) -> Iterator[str]:
    """The lines of a config's model."""
    yield 'model = dict('
    if preprocessor := _preprocessor(profile):
        yield f'    data_preprocessor={literal(preprocessor)},'
    settings = dict(_delete_=True, **profile.backbone.settings)
    if profile.task == 'classification' and len(profile.backbone.channels) > 1:
        indices = settings.get('out_indices', range(len(profile.backbone.channels)))
        settings['out_indices'] = (indices[-1],)
    if recipe['norm'].value is not None:
        settings['norm_cfg'] = Code('norm')
    for line in keyword('backbone', settings):
        yield f'    {line}'
    for line in _neck(profile, recipe):
        yield f'    {line}'
    with_anchors = profile.detector.anchors.get(recipe['anchors'].value, {})
    reasons = dict.fromkeys(with_anchors, recipe['anchors'].because)
    reasons['test_cfg'] = recipe['max_per_img'].because
    for part, settings in _heads(profile, recipe).items():
        for line in keyword(part, settings, reasons.get(part, '')):
            yield f'    {line}'
    if profile.task == 'classification' and recipe['augmentation'].value != 'mixed':
        yield f'    train_cfg=None,  # no mixing of images: {recipe["augmentation"].because}'
    yield ')'


def _preprocessor(profile: Profile) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if profile.backbone.mean != _SCALED:
        settings |= dict(mean=profile.backbone.mean, std=profile.backbone.std)
    is_other = profile.divisor != profile.detector.divisor
    if profile.task == 'classification':
        settings |= dict(num_classes=_COUNT)
    elif profile.task == 'semantic':
        settings |= dict(size=Code('crop'))
        settings |= dict(test_cfg=dict(size_divisor=profile.divisor)) if is_other else {}
    elif is_other:
        settings |= dict(pad_size_divisor=profile.divisor)
    return settings


def _heads(profile: Profile, recipe: Recipe) -> dict[str, Any]:
    """Settings of the heads and of the test, by the names of the model's parts."""
    detector = profile.detector
    found: dict[str, Any] = {}
    for path in detector.places_of('num_classes'):
        if path[0] != 'data_preprocessor':
            _set(found, path, _COUNT)
    for path in detector.places_of('scale_ranges'):
        _set(found, path, _scale_ranges(recipe['size'].value))
    if profile.task == 'classification':
        found['head']['in_channels'] = profile.backbone.channels[-1]
    elif profile.task == 'semantic':
        found['decode_head'] |= _inputs(profile, recipe)
    for part, settings in detector.anchors.get(recipe['anchors'].value, {}).items():
        found.setdefault(part, {}).update(settings)
    if limit := recipe['max_per_img'].value:
        for path in detector.places_of('max_per_img'):
            if _is_last(path):
                _set(found, path, limit)
    return found


def _set(settings: dict[str, Any], path: Place, value: Any) -> None:
    """Set a value in nested settings; for a list of heads, in each of them."""
    *parts, key = path
    for i, part in enumerate(parts):
        if isinstance(parts[i + 1] if i + 1 < len(parts) else None, int):
            heads = '.'.join(['_base_.model', *parts[: i + 1]])
            settings[part] = Code(f'[dict(head, {key}={literal(value)}) for head in {heads}]')
            return
        settings = settings.setdefault(part, {})
    settings[key] = value


def _is_last(path: Place) -> bool:
    """Whether a limit is that of an image's results, and not of region proposals."""
    return path[0] == 'test_cfg' and 'rpn' not in path


def _scale_ranges(size: tuple[int, int]) -> list[tuple[int, int]]:
    """SOLOv2's sides of objects for each level in pixels, which are for images of 1333 pixels."""
    sides = [round(side * max(size) / 1333) for side in (48, 96, 192, 384, 768)]
    return [(1, sides[1]), *zip(sides[:-2], sides[2:], strict=True), (sides[3], 2048)]


def _inputs(profile: Profile, recipe: Recipe) -> dict[str, Any]:
    """The maps that a segmenter's head gets, where they are not those of its fragment."""
    if profile.detector.has_neck or len(profile.backbone.channels) == 1:
        # All strides from 4 to the backbone's last.
        levels = _strides(profile)
        channels = Code(f'[{recipe["width"].value}] * {len(levels)}')
        if len(levels) == _LEVELS:
            return {}
    else:
        levels, channels = profile.backbone.strides, list(profile.backbone.channels)
    head = profile.detector.model.decode_head
    inputs = dict(in_channels=channels, in_index=list(range(len(levels))))
    if 'feature_strides' in head:
        inputs['feature_strides'] = list(levels)
    return inputs


def _strides(profile: Profile) -> tuple[int, ...]:
    """Strides of the levels that a neck computes, in pixels."""
    levels = tuple(profile.detector.finest * 2**i for i in range(_LEVELS))
    if profile.task != 'semantic':
        return levels
    return tuple(stride for stride in levels if stride <= max(profile.backbone.strides[-1], 32))


def _neck(profile: Profile, recipe: Recipe) -> Iterator[str]:
    """The neck that computes the levels from the backbone's maps."""
    backbone, strides = profile.backbone, _strides(profile)
    if backbone.name == FRAGMENT_BACKBONE or profile.task == 'classification':
        return
    channels, width = list(backbone.channels), recipe['width'].value
    norm = profile.detector.norm_of_neck
    if len(channels) == 1:
        settings = dict(type='SimpleFeaturePyramid', in_channels=channels[0], out_channels=width)
        settings |= dict(in_stride=backbone.strides[0], out_strides=strides)
        yield f'neck={literal(dict(_delete_=True, **settings))},'
    elif not profile.detector.has_neck:
        return
    elif strides[0] == 8:
        # The fragment contains everything else.
        start = next((i for i, stride in enumerate(backbone.strides) if stride >= 8), 0)
        settings = dict(in_channels=channels) | (dict(start_level=start) if start else {})
        yield f'neck={literal(settings)},'
    elif backbone.strides[0] > strides[0]:
        finer = dict(type='FinerLevelNeck', in_channels=channels, norm_cfg=norm)
        fpn = dict(type='FPN', in_channels=[channels[0], *channels], out_channels=width)
        yield f'neck=[{literal(finer)},  # the first map, doubled, is stride {strides[0]}'
        yield f'      {literal(dict(**fpn, num_outs=len(strides), norm_cfg=norm))}],'
    else:
        fpn = dict(type='FPN', in_channels=channels, out_channels=width, num_outs=len(strides))
        yield f'neck={literal(dict(_delete_=True, **fpn, norm_cfg=norm))},'
