"""Choose a recipe from the statistics of a data set: one function per rule.

docs/data.md lists the rules with their reasons, and the comments of a config contain the deciding
numbers.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, sqrt
from operator import itemgetter
from typing import Any

from ptnt_mm.utils.text import counted, format_bytes
from ptnt_mm.workbench.data.tiles import TILED
from ptnt_mm.workbench.project.profile import Profile


@dataclass(frozen=True)
class Choice:
    """A setting, and the number that determined it."""

    value: Any
    because: str = ''


Recipe = Mapping[str, Choice]
"""The choices by setting. A rule sees those of the rules before it."""

"""The tasks whose images can be cut into tiles."""

_ANCHOR = 32  # pixels, the smallest usual one
_SIDES = (320, 1333)  # of images in which objects or areas are found
_TILE_INPUT = 640  # pixels that a tile is resized to; its side is half to twice as long
_CROPPED = 512  # pixels of a segmenter's crop, at most
_CLASSIFIED = (64, 224)  # sides of images that are classified
_BATCHES = ((500, 2), (5_000, 4), (20_000, 8))  # images in a step, below this many images
_SHARE = 0.8  # of the free memory
_ENOUGH_FOR_BATCHNORM = 8  # images in a step
_WARM_UP = 50  # iterations
_MOST_LR = 2e-3
_RARE, _REPEATED, _LONGER = 0.05, 0.25, 1.25  # see balance
_USUAL_LIMIT = 100  # default limit of detections in an image


def choose_recipe(profile: Profile) -> dict[str, Choice]:
    """Apply all rules to the statistics of a data set."""
    recipe: dict[str, Choice] = {}
    for setting, choose in RECIPE_RULES.items():
        recipe[setting] = choose(profile, recipe)
    return recipe


def model(profile: Profile, _: Recipe) -> Choice:
    """The detector, segmenter or classifier."""
    return Choice(profile.detector.name, 'as requested' if profile.asked_detector else '')


def width(profile: Profile, _: Recipe) -> Choice:
    """Channels of neck and head."""
    count = profile.counts['train']
    return Choice(64 if count < 5_000 else 256, counted(count, profile.trained_on))


def tile(profile: Profile, _: Recipe) -> Choice:
    """The side of the tiles that training images are cut into, in pixels; None for whole images."""
    whole = profile.whole or profile
    if whole.asked_tile is not None:
        return Choice(whole.asked_tile or None, 'as requested')
    long, most = max(whole.size), _SIDES[1]
    if whole.task not in TILED or whole.small is None or long <= most:
        return Choice(None)
    needed, pixels = whole.detector.smallest, whole.small * long
    if whole.small * most >= needed:
        return Choice(None)
    resized = whole.asked_size or _TILE_INPUT
    side = min(max(_near_32(resized * pixels / needed), resized // 2), 2 * resized)
    return Choice(
        side,
        f'images are {whole.size[0]} x {whole.size[1]}; {whole.smaller} below {pixels:.0f} pixels, '
        f'or {whole.small * most:.0f} at a size of {most}; {whole.detector.name} needs {needed}',
    )


def size(profile: Profile, _: Recipe) -> Choice:
    """Width and height of the images, or the side of those that are classified, in pixels."""
    long, short = max(profile.size), min(profile.size)
    because = f'{profile.trained_on}s are {profile.size[0]} x {profile.size[1]}'
    because = 'as requested' if profile.asked_size else because
    if profile.task == 'classification':
        side = profile.asked_size or min(max(_near_32(short), _CLASSIFIED[0]), _CLASSIFIED[1])
        return Choice(side, because)
    if profile.asked_size:
        side = profile.asked_size
    elif profile.small is None:
        side = min(max(_near_32(long), _SIDES[0]), 2 * _CROPPED)
    else:
        # Enlarging more than twice adds no information.
        side = min(
            max(_near_32(profile.detector.smallest / profile.small), _SIDES[0]),
            _SIDES[1],
            2 * _near_32(long),
        )
        below = f'{profile.small * long:.0f} pixels, here {profile.small * side:.0f}'
        because += f'; {profile.smaller} below {below}'
    other = side * short / long
    # Rounded up, the other side does not limit what was asked for.
    other = ceil(other / 32) * 32 if profile.asked_size else _near_32(other)
    return Choice((side, other), because)


def crop(profile: Profile, recipe: Recipe) -> Choice:
    """Width and height of a segmenter's crop in pixels, or None."""
    if profile.task != 'semantic':
        return Choice(None)
    side = ceil(min(_CROPPED, *recipe['size'].value) / profile.divisor) * profile.divisor
    return Choice((side, side), f'the shorter side, or 512, up to a multiple of {profile.divisor}')


def anchors(profile: Profile, recipe: Recipe) -> Choice:
    """The smallest anchor in pixels; None for the usual one."""
    if profile.small is None or not profile.detector.anchors:
        return Choice(None)
    pixels = profile.small * max(recipe['size'].value)
    smaller = sorted(profile.detector.anchors, reverse=True)
    fitting = [anchor for anchor in (_ANCHOR, *smaller) if anchor <= 1.6 * pixels]
    anchor = fitting[0] if fitting else min((_ANCHOR, *smaller))
    if anchor == _ANCHOR:
        return Choice(None)
    return Choice(anchor, f'{profile.smaller} below {counted(round(pixels), "pixel")}')


def max_per_img(profile: Profile, _: Recipe) -> Choice:
    """The limit of detections in an image; None for the usual one."""
    if profile.most <= _USUAL_LIMIT * 0.8:
        return Choice(None)
    return Choice(
        ceil(profile.most * 1.5 / 100) * 100,
        f'there are up to {profile.most} per {profile.trained_on}',
    )


def augmentation(profile: Profile, recipe: Recipe) -> Choice:
    """'light', 'medium' or 'strong'; for classifiers 'strong', 'medium' or 'mixed'."""
    if profile.task == 'classification':
        count = profile.counts['train']
        kind = 'strong' if count < 1_000 else 'medium' if count < 10_000 else 'mixed'
        return Choice(kind, counted(count, 'image'))
    times = recipe['epochs'].value
    kind = 'strong' if times >= 100 else 'medium' if times >= 30 else 'light'
    return Choice(kind, f'each {profile.trained_on} is seen {counted(times, "time")}')


def effective_batch(profile: Profile, _: Recipe) -> Choice:
    """Images for one step of the optimizer."""
    count = profile.counts['train']
    batch = next((batch for below, batch in _BATCHES if count < below), 16)
    if profile.task == 'classification':
        batch *= 16
    # At least two steps per epoch.
    batch = min(batch, 2 ** max(count.bit_length() - 2, 1))
    return Choice(batch, counted(count, profile.trained_on))


def batch_size(profile: Profile, recipe: Recipe) -> Choice:
    """Images that are computed at a time."""
    batch = recipe['effective batch'].value
    device, free = profile.free
    if profile.memory is None or free is None:
        return Choice(batch, recipe['effective batch'].because)
    weights, image = profile.memory.weights, profile.memory.image
    # BatchNorm cannot train on one image.
    least = 2 if profile.task == 'semantic' else 1
    while batch > least and weights + batch * image > _SHARE * free:
        batch //= 2
    step = f'{format_bytes(weights + batch * image)} of {format_bytes(free)} free on {device}'
    return Choice(batch, f'{recipe["effective batch"].because}; {step}')


def norm(profile: Profile, recipe: Recipe) -> Choice:
    """The backbone's ``norm_cfg``; None for its own."""
    batch = recipe['batch_size'].value
    if batch >= _ENOUGH_FOR_BATCHNORM or profile.backbone.norm is None:
        return Choice(None)
    return Choice(
        profile.backbone.norm, f'{counted(batch, "image")} per step, too few for BatchNorm'
    )


def accumulation(_: Profile, recipe: Recipe) -> Choice:
    """Batches for one step of the optimizer."""
    effective, batch = recipe['effective batch'].value, recipe['batch_size'].value
    steps = effective // batch
    return Choice(steps, f'steps to make a batch of {effective}' if steps > 1 else '')


def balance(profile: Profile, _: Recipe) -> Choice:
    """The threshold of ``ClassBalancedDataset``; None if no image is repeated.

    Classes in less than a twentieth of the images are repeated, unless that makes an epoch more
    than a quarter longer: with many rare classes, most images have one.
    """
    if profile.task not in ('detection', 'instance'):
        return Choice(None)
    count = len(profile.labels)
    images_of = Counter(label for labels in profile.labels for label in labels)
    label, images = min(images_of.items(), key=itemgetter(1), default=('', count))
    if images >= _RARE * count or _images_of_epoch(profile, _REPEATED) > _LONGER * count:
        return Choice(None)
    times = ceil(_repeats(_REPEATED, images / count))
    rare = f'{label!r} is in {images} of {counted(count, profile.trained_on)}'
    return Choice(_REPEATED, f'{rare}, seen {times} times each')


def _repeats(threshold: float, share: float) -> float:
    """How often the images of a class in a share of all are repeated, before rounding up."""
    return max(sqrt(threshold / share), 1)


def _images_of_epoch(profile: Profile, threshold: float | None) -> int:
    """Images in a pass through the training images, repeated as by ``ClassBalancedDataset``."""
    count = profile.counts['train']
    if threshold is None:
        return count
    images_of = Counter(label for labels in profile.labels for label in labels)
    times = {label: _repeats(threshold, n / count) for label, n in images_of.items()}
    return sum(ceil(max(map(times.get, labels), default=1)) for labels in profile.labels)


def epochs(profile: Profile, recipe: Recipe) -> Choice:
    """Passes through the training images."""
    if profile.asked_epochs:
        return Choice(profile.asked_epochs, 'as requested')
    seen, passes = (30_000, 30) if profile.task == 'classification' else (12_000, 12)
    if profile.backbone.weights:
        seen //= 2
    count = _images_of_epoch(profile, recipe['balance'].value)
    epochs = min(max(round(seen / count), passes), 300)
    return Choice(epochs, f'{epochs * count:,} {profile.trained_on}s seen')


def warm_up(profile: Profile, recipe: Recipe) -> Choice:
    """Iterations; None for the usual number, 0 for no warm-up."""
    count = _images_of_epoch(profile, recipe['balance'].value)
    steps = recipe['epochs'].value * ceil(count / recipe['batch_size'].value)
    if steps >= 10 * _WARM_UP:
        return Choice(None)
    if steps < 2:
        return Choice(0, f'no warm-up for {counted(steps, "iteration")}')
    # MMEngine's warm-up of one iteration never ends: its rate stays at the start factor.
    return Choice(max(steps // 10, 2), f'a tenth of {counted(steps, "iteration")}')


def lr(profile: Profile, recipe: Recipe) -> Choice:
    """The learning rate; a pretrained backbone may have a share of it."""
    batch = recipe['effective batch'].value
    start = 'pretrained weights' if profile.backbone.weights else 'random initialisation'
    factor = profile.detector.head_lr if profile.backbone.weights else 1
    lr = min(factor * _backbone_lr(profile, batch), _MOST_LR)
    return Choice(float(f'{lr:.2g}'), f'from {start}, batches of {batch}')


def lr_mult(profile: Profile, recipe: Recipe) -> Choice:
    """The backbone's share of the learning rate; None if it has the same."""
    lr, batch = recipe['lr'].value, recipe['effective batch'].value
    share = float(f'{_backbone_lr(profile, batch) / lr:.2g}')
    return Choice(None) if share == 1 else Choice(share, 'neck and head are new')


def scaled_lr(lr: float, batch: int, base_batch: int) -> float:
    """A learning rate for another batch: it grows with the square root, up to 2e-3."""
    return float(f'{min(lr * (batch / base_batch) ** 0.5, _MOST_LR):.2g}')


def _backbone_lr(profile: Profile, batch: int) -> float:
    base_batch = 32 if profile.task == 'classification' else 4
    return scaled_lr(profile.backbone.lr, batch, base_batch)


def _near_32(pixels: float) -> int:
    return max(round(pixels / 32), 1) * 32


RECIPE_RULES: dict[str, Callable[[Profile, Recipe], Choice]] = {
    'model': model,
    'width': width,
    'tile': tile,
    'size': size,
    'crop': crop,
    'anchors': anchors,
    'max_per_img': max_per_img,
    'effective batch': effective_batch,
    'batch_size': batch_size,
    'norm': norm,
    'accumulation': accumulation,
    'balance': balance,
    'epochs': epochs,
    'augmentation': augmentation,
    'warm-up': warm_up,
    'lr': lr,
    'lr_mult': lr_mult,
}
"""The rule for each setting, in the order in which they are applied."""
