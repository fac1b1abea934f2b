"""The model settings of a config that differ from the fragment it inherits."""

from collections.abc import Iterator
from typing import Any

from ptnt_mm.project.backbones import DEFAULT_BACKBONE
from ptnt_mm.project.code import Code, comment, keyword, literal
from ptnt_mm.project.facts import Facts
from ptnt_mm.project.recipe import Choice, Recipe

_RETINANET = (8, 16, 32, 64, 128)
_FROM_4 = (4, 8, 16, 32, 64)

# Sides of anchors in cells, by the smallest in pixels. The usual ones stay, with which objects are
# found on fine maps: half the usual sides alone would find all of them on maps half as fine.
_RETINANET_SCALES = {16: [2, 3, 4, 6]}  # usual: [4, 5, 6.3]
_MASK_RCNN_SCALES = {16: [4, 8], 8: [2, 4, 8]}  # usual: [8]

# The defaults of the fragments.
_SCALED = [127.5, 127.5, 127.5]

_COUNT = Code('len(classes)')


def model_lines(facts: Facts, recipe: Recipe) -> Iterator[str]:
    """The lines of a config's model."""
    if facts.task == 'instance':
        yield 'count = dict(num_classes=len(classes))'
    yield 'model = dict('
    if preprocessor := _preprocessor(facts):
        yield f'    data_preprocessor={literal(preprocessor)},'
    settings = dict(_delete_=True, **facts.backbone.settings)
    if facts.task == 'classification' and len(facts.backbone.channels) > 1:
        settings['out_indices'] = (len(facts.backbone.channels) - 1,)
    if recipe['norm'].value is not None:
        settings['norm_cfg'] = Code('norm')
    for line in keyword('backbone', settings):
        yield f'    {line}'
    for line in _HEADS[facts.task](facts, recipe):
        yield f'    {line}'
    yield ')'


def _preprocessor(facts: Facts) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if facts.backbone.mean != _SCALED:
        settings |= dict(mean=facts.backbone.mean, std=facts.backbone.std)
    if facts.task == 'semantic':
        settings |= dict(size=Code('crop'))
    if facts.task == 'classification':
        settings |= dict(num_classes=_COUNT)
    return settings


def _retinanet(facts: Facts, recipe: Recipe) -> Iterator[str]:
    strides = facts.backbone.strides
    start = next((i for i, stride in enumerate(strides) if stride >= _RETINANET[0]), 0)
    yield from _neck(facts, recipe, _RETINANET, dict(start_level=start) if start else {})
    head = dict(num_classes=_COUNT)
    if anchor := recipe['anchors'].value:
        octaves = dict(octave_base_scale=None, scales_per_octave=None)
        head |= dict(anchor_generator=dict(scales=_RETINANET_SCALES[anchor], **octaves))
    yield from keyword('bbox_head', head, recipe['anchors'].because)
    limit = recipe['max_per_img']
    yield from _test(limit, dict(max_per_img=limit.value))


def _mask_rcnn(facts: Facts, recipe: Recipe) -> Iterator[str]:
    yield from _neck(facts, recipe, _FROM_4)
    if recipe['anchors'].value is not None:
        rpn = dict(anchor_generator=dict(scales=_MASK_RCNN_SCALES[recipe['anchors'].value]))
        yield f'rpn_head={literal(rpn)},{comment(recipe["anchors"].because)}'
    yield 'roi_head=dict(bbox_head=count, mask_head=count),'
    limit = recipe['max_per_img']
    yield from _test(limit, dict(rcnn=dict(max_per_img=limit.value)))


def _semantic_fpn(facts: Facts, recipe: Recipe) -> Iterator[str]:
    # A segmenter's head gets all strides from 4 to the backbone's last.
    levels = [stride for stride in _FROM_4 if stride <= max(facts.backbone.strides[-1], 32)]
    yield from _neck(facts, recipe, tuple(levels))
    head: dict[str, Any] = dict(num_classes=_COUNT)
    if len(levels) < len(_FROM_4):
        head |= dict(in_channels=[recipe['width'].value] * len(levels))
        head |= dict(in_index=list(range(len(levels))), feature_strides=levels)
    yield f'decode_head={literal(head)},'


def _classifier(facts: Facts, recipe: Recipe) -> Iterator[str]:
    head = dict(num_classes=_COUNT, in_channels=facts.backbone.channels[-1])
    yield f'head={literal(head)},'
    choice = recipe['augmentation']
    if choice.value != 'mixed':
        yield f'train_cfg=None,  # images are not mixed: {choice.because}'


_HEADS = {
    'detection': _retinanet,
    'instance': _mask_rcnn,
    'semantic': _semantic_fpn,
    'classification': _classifier,
}


def _test(choice: Choice, settings: dict[str, Any]) -> Iterator[str]:
    if choice.value is not None:
        yield f'test_cfg={literal(settings)},{comment(choice.because)}'


def _neck(
    facts: Facts, recipe: Recipe, strides: tuple[int, ...], more: dict[str, Any] | None = None
) -> Iterator[str]:
    """The neck that computes levels of these strides from the backbone's maps."""
    backbone = facts.backbone
    if backbone.name == DEFAULT_BACKBONE:
        return
    channels, width = list(backbone.channels), recipe['width'].value
    if len(channels) == 1:
        settings = dict(type='SimpleFeaturePyramid', in_channels=channels[0], out_channels=width)
        settings |= dict(in_stride=backbone.strides[0], out_strides=strides)
        yield f'neck={literal(dict(_delete_=True, **settings))},'
    elif facts.task == 'detection':
        # The fragment contains everything else.
        yield f'neck={literal(dict(in_channels=channels, **(more or {})))},'
    elif backbone.strides[0] > strides[0]:
        finer = dict(type='FinerLevelNeck', in_channels=channels)
        fpn = dict(type='FPN', in_channels=[channels[0], *channels], out_channels=width)
        yield f'neck=[{literal(finer)},  # the first map, doubled, is stride {strides[0]}'
        yield f'      {literal(dict(**fpn, num_outs=len(strides)))}],'
    else:
        fpn = dict(type='FPN', in_channels=channels, out_channels=width, num_outs=len(strides))
        yield f'neck={literal(dict(_delete_=True, **fpn))},'
