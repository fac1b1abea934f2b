"""The rules that choose a recipe from the statistics of a data set: one row each.

docs/data.md has the same rows, and the comments of a config contain the deciding numbers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from ptnt_mm.project.facts import Facts
from ptnt_mm.utils.text import binary


@dataclass(frozen=True)
class Choice:
    """A setting, and the number that determined it."""

    value: Any
    because: str = ''


Recipe = Mapping[str, Choice]


@dataclass(frozen=True)
class Rule:
    """A rule that chooses one setting.

    Attributes:
        setting: Its name in the config.
        rule: Its effect, for the docs.
        reason: Why, for the docs.
        choose: Makes the choice; later rules see the choices of earlier ones.
    """

    setting: str
    rule: str
    reason: str
    choose: Callable[[Facts, Recipe], Choice]


def choose_recipe(facts: Facts) -> dict[str, Choice]:
    """Apply all rules to the figures of a data set."""
    recipe: dict[str, Choice] = {}
    for rule in RULES:
        recipe[rule.setting] = rule.choose(facts, recipe)
    return recipe


_MODELS = {
    'detection': 'retinanet_native',
    'instance': 'mask_rcnn_native',
    'semantic': 'semantic_fpn_native',
    'classification': 'classifier_ptnt_ti',
}

# Pixels of a small object. For RetinaNet, two thirds of the smallest usual anchor. Mask R-CNN has
# smaller anchors, so for masks it is two cells of the finest map, whose stride is 4.
_SMALL = {'detection': 21, 'instance': 8, 'semantic': 8}
_ANCHOR = 32  # pixels, the smallest usual one
_LEAST_ANCHOR = {'detection': 16, 'instance': 8}  # two cells of the finest map
_SIDES = (320, 1333)  # of images in which objects or areas are found
_CROPPED = 512  # pixels of a segmenter's crop, at most
_CLASSIFIED = (64, 224)  # sides of images that are classified
_BATCHES = ((500, 2), (5_000, 4), (20_000, 8))  # images in a step, below this many images
_SHARE = 0.8  # of the free memory
_ENOUGH_FOR_BATCHNORM = 8  # images in a step
_WARM_UP = 50  # iterations
_USUAL_LIMIT = 100  # default limit of detections in an image


def _width(facts: Facts, _: Recipe) -> Choice:
    count = facts.counts['train']
    return Choice(64 if count < 5_000 else 256, f'{count:,} images')


def _model(facts: Facts, recipe: Recipe) -> Choice:
    name = _MODELS[facts.task]
    if facts.task == 'classification':
        return Choice(name)
    width = recipe['width']
    narrow = '_narrow' if width.value == 64 else ''
    return Choice(name + narrow, f'{width.value} channels for {width.because}')


def _size(facts: Facts, _: Recipe) -> Choice:
    long, short = max(facts.size), min(facts.size)
    if facts.task == 'classification':
        side = facts.asked_size or min(max(_near_32(short), _CLASSIFIED[0]), _CLASSIFIED[1])
        asked = f'images are {facts.size[0]} x {facts.size[1]}'
        return Choice(side, 'as asked' if facts.asked_size else asked)
    if facts.asked_size:
        side, because = facts.asked_size, 'as asked'
    elif facts.small is None:
        side = min(max(_near_32(long), _SIDES[0]), 2 * _CROPPED)
        because = f'images are {facts.size[0]} x {facts.size[1]}'
    else:
        # Enlarging more than twice adds no information.
        side = min(
            max(_near_32(_SMALL[facts.task] / facts.small), _SIDES[0]),
            _SIDES[1],
            2 * _near_32(long),
        )
        because = (
            f'images are {facts.size[0]} x {facts.size[1]}; {facts.smaller} below '
            f'{facts.small * long:.0f} pixels, here {facts.small * side:.0f}'
        )
    return Choice((side, max(_near_32(side * short / long), 32)), because)


def _crop(facts: Facts, recipe: Recipe) -> Choice:
    if facts.task != 'semantic':
        return Choice(None)
    side = min(_CROPPED, *recipe['size'].value)
    return Choice((side, side), 'the shorter side, or 512')


def _anchors(facts: Facts, recipe: Recipe) -> Choice:
    if facts.task not in ('detection', 'instance') or facts.small is None:
        return Choice(None)
    pixels = facts.small * max(recipe['size'].value)
    anchor = _ANCHOR
    while anchor > 1.6 * pixels and anchor > _LEAST_ANCHOR[facts.task]:
        anchor //= 2
    if anchor == _ANCHOR:
        return Choice(None)
    return Choice(anchor, f'{facts.smaller} below {pixels:.0f} pixels')


def _max_per_img(facts: Facts, _: Recipe) -> Choice:
    if facts.most <= _USUAL_LIMIT * 0.8:
        return Choice(None)
    return Choice(ceil(facts.most * 1.5 / 100) * 100, f'there are up to {facts.most} in an image')


def _augmentation(facts: Facts, recipe: Recipe) -> Choice:
    if facts.task == 'classification':
        count = facts.counts['train']
        kind = 'strong' if count < 1_000 else 'medium' if count < 10_000 else 'mixed'
        return Choice(kind, f'{count:,} images')
    times = recipe['epochs'].value
    kind = 'strong' if times >= 100 else 'medium' if times >= 30 else 'light'
    return Choice(kind, f'each image is seen {times} times')


def _effective_batch(facts: Facts, _: Recipe) -> Choice:
    count = facts.counts['train']
    batch = next((batch for below, batch in _BATCHES if count < below), 16)
    if facts.task == 'classification':
        batch *= 16
    # At least two steps an epoch.
    batch = min(batch, 2 ** max(count.bit_length() - 2, 1))
    return Choice(batch, f'{count:,} images')


def _batch_size(facts: Facts, recipe: Recipe) -> Choice:
    batch = recipe['effective batch'].value
    device, free = facts.free
    if facts.memory is None or free is None:
        return Choice(batch, recipe['effective batch'].because)
    weights, image = facts.memory.weights, facts.memory.image
    # BatchNorm cannot train on one image.
    least = 2 if facts.task == 'semantic' else 1
    while batch > least and weights + batch * image > _SHARE * free:
        batch //= 2
    step = f'{binary(weights + batch * image)} of {binary(free)} that {device} has free'
    return Choice(batch, f'{recipe["effective batch"].because}; {step}')


def _norm(facts: Facts, recipe: Recipe) -> Choice:
    batch = recipe['batch_size'].value
    if batch >= _ENOUGH_FOR_BATCHNORM or facts.backbone.norm is None:
        return Choice(None)
    return Choice(facts.backbone.norm, f'{batch} images a step are too few for BatchNorm')


def _accumulation(_: Facts, recipe: Recipe) -> Choice:
    effective, batch = recipe['effective batch'].value, recipe['batch_size'].value
    steps = effective // batch
    return Choice(steps, f'steps to make a batch of {effective}' if steps > 1 else '')


def _epochs(facts: Facts, _: Recipe) -> Choice:
    if facts.asked_epochs:
        return Choice(facts.asked_epochs, 'as asked')
    seen, passes = (30_000, 30) if facts.task == 'classification' else (12_000, 12)
    if facts.backbone.weights:
        seen //= 2
    count = facts.counts['train']
    epochs = min(max(round(seen / count), passes), 300)
    return Choice(epochs, f'{epochs * count:,} images seen')


def _warm_up(facts: Facts, recipe: Recipe) -> Choice:
    steps = recipe['epochs'].value * ceil(facts.counts['train'] / recipe['batch_size'].value)
    if steps >= 10 * _WARM_UP:
        return Choice(None)
    # MMEngine's warm-up of one iteration never ends: its rate stays at the start factor.
    return Choice(max(steps // 10, 2), f'a tenth of {steps} iterations')


def _lr(facts: Facts, recipe: Recipe) -> Choice:
    batch = recipe['effective batch'].value
    if facts.backbone.weights:
        start, rate = 'pretrained weights', 1e-4
    else:
        start, rate = 'random initialisation', 1e-3
    of = 32 if facts.task == 'classification' else 4
    lr = float(f'{min(rate * (batch / of) ** 0.5, 2e-3):.2g}')
    return Choice(lr, f'from {start}, batches of {batch}')


def _near_32(pixels: float) -> int:
    return max(round(pixels / 32), 1) * 32


RULES = (
    Rule(
        'width',
        'Neck and head are 64 channels wide below 5,000 images, else 256.',
        'The published 256 channels take most of the time for small images, and learn no more from '
        'a few thousand of them.',
        _width,
    ),
    Rule(
        'model',
        'Boxes get RetinaNet, objects with masks Mask R-CNN, class masks Semantic FPN, class '
        'folders a classifier.',
        'The labels determine the task. These heads are simple and well known.',
        _model,
    ),
    Rule(
        'size',
        'The longer side at which one object in ten, or half of a class, is below 21 pixels, or 8 '
        'for masks; 320 to 1333, and at most twice that of the images. Without objects: the size '
        'of the images, 320 to 1024. Classifiers: the shorter side, 64 to 224.',
        'RetinaNet finds objects down to two thirds of its smallest usual anchor, which has 32 '
        'pixels. Mask R-CNN needs two cells of the finest map, which has one for 4 pixels. Larger '
        'images take longer and add no information.',
        _size,
    ),
    Rule(
        'crop',
        'Segmenters train on squares of the shorter side, at most 512.',
        'A batch needs one size, and 512 is the usual one.',
        _crop,
    ),
    Rule(
        'anchors',
        'From 32 pixels; from 16 where one object in ten, or half of a class, is below 20 pixels; '
        'for masks from 8 where it is below 10.',
        'An anchor of 32 pixels overlaps too little with an object that is half as wide, so '
        'such objects are hardly ever found. The larger anchors stay.',
        _anchors,
    ),
    Rule(
        'max_per_img',
        'At most 100 detections per image, or 1.5 times the largest number of objects in one.',
        'Objects beyond the limit would count as missed.',
        _max_per_img,
    ),
    Rule(
        'effective batch',
        '2 images a step below 500 images, 4 below 5,000, 8 below 20,000, else 16; classifiers 16 '
        'times as many, with at least two steps an epoch.',
        'A small data set has few steps per epoch, and the model learns more from two steps of 2 '
        'images than from one step of 4.',
        _effective_batch,
    ),
    Rule(
        'batch_size',
        'The effective batch, halved until a step takes at most 80 % of the free memory.',
        'A training step is tried on the CPU, and the memory that it keeps is counted. A GPU may '
        'need more: PyramidTNT recomputes less there.',
        _batch_size,
    ),
    Rule(
        'norm',
        'From random initialisation, a PyramidTNT or ResNet has GroupNorm below 8 images a step, '
        'else BatchNorm.',
        'In steps of 2, the nuclei of [Results](results.md#batchnorm-or-groupnorm) reach a mIoU of '
        "77 with BatchNorm and 84 with GroupNorm; in steps of 8, the demo's segmenter reaches 72 "
        'and 62.',
        _norm,
    ),
    Rule(
        'accumulation',
        'As many steps as make up the effective batch.',
        'The learning rate is for the effective batch, which may not fit into memory.',
        _accumulation,
    ),
    Rule(
        'epochs',
        '12,000 images seen, at least 12 epochs and at most 300; half as many images from '
        'pretrained weights. Classifiers: 30,000 images, at least 30 epochs.',
        'Learning takes iterations, even with few images. COCO is trained for 12 epochs.',
        _epochs,
    ),
    Rule(
        'augmentation',
        'Mirroring always; sizes of 75 to 133 % where each image is seen 30 times or more, colours '
        'from 100 times. Classifiers: crops always, colours below 1,000 images, mixed images from '
        '10,000.',
        'An image that is seen only a few times needs little augmentation: with more, the blood '
        'cells of [Results](results.md) reach a lower AP after 10 epochs. COCO is trained with '
        'mirroring for 12 epochs, and with many sizes for 36.',
        _augmentation,
    ),
    Rule(
        'warm-up',
        '50 iterations, or a tenth of a run of fewer than 500.',
        'A longer warm-up would take up most of a short run.',
        _warm_up,
    ),
    Rule(
        'lr',
        '1e-3 from random initialisation, 1e-4 from pretrained weights, for 4 images a step (32 '
        'for classifiers); with the square root of the batch, at most 2e-3.',
        'For AdamW, the rate grows with the square root of the batch. Pretrained weights need '
        'small steps.',
        _lr,
    ),
)
"""All rules, in the order in which they are applied."""
