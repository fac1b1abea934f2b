"""Split images into training, validation and test sets."""

import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

from ptnt_mm.labels.model import LabelledImage, Labels
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.many_files import on_threads
from ptnt_mm.utils.text import counted

VAL_SHARE = 0.2


def split_off(labels: Labels) -> dict[str, list[LabelledImage]]:
    """The images of each split: those of the data set, or a share by their content.

    The hash of an image's bytes decides, so adding images does not move others, and copies of an
    image stay together.

    Returns:
        'train' and 'val', and 'test' if the data set has it. Notes are added to the labels.

    Raises:
        UserError: if there are fewer than two images to train on and to validate with.
    """
    counts = Counter(image.split for image in labels.images)
    images = labels.images
    if not counts['train'] and not counts[None]:
        # Nothing is left to train on: a single split is not a split.
        given = ', '.join(f'{count} {split}' for split, count in counts.items())
        labels.notes.append(f'there are no images to train on, only {given}: split again')
        images = [replace(image, split=None) for image in images]
        counts = Counter({None: len(images)})
    if counts[None] and counts['train'] and counts['val']:
        labels.notes.append(f'{counted(counts[None], "image")} in no split: used for training')
    splits: dict[str, list[LabelledImage]] = {'train': [], 'val': [], 'test': []}
    pool = []
    for image in images:
        if image.split in ('val', 'test') or (image.split and counts['val']):
            splits[image.split].append(image)
        elif counts['val']:
            splits['train'].append(image)
        else:
            pool.append(image)
    if pool:
        if len(pool) < 2:
            raise UserError(f'{pool[0].path} is the only image to train on: expected two or more')
        train, val = _by_content(pool)
        splits['train'] += train
        splits['val'] += val
        labels.notes.append(
            f'no validation split: {len(val)} of {len(pool)} images split off by their content'
        )
    return {
        split: [replace(image, split=split) for image in images]
        for split, images in splits.items()
        if images
    }


def _by_content(images: list[LabelledImage]) -> tuple[list[LabelledImage], list[LabelledImage]]:
    """Split images for training and validation; if possible, each class is in both."""
    found = on_threads(_share, [image.path for image in images], 'Hashing images')
    shares = dict(zip((image.path for image in images), found, strict=True))
    groups: dict[str | None, list[LabelledImage]] = {}
    for image in images:
        groups.setdefault(image.label, []).append(image)
    limits = {label: _limit({shares[i.path] for i in group}) for label, group in groups.items()}
    train = [image for image in images if shares[image.path] >= limits[image.label]]
    val = [image for image in images if shares[image.path] < limits[image.label]]
    # All are copies of one image, or there is one of each class.
    return (train, val) if val else (images[1:], images[:1])


def _limit(shares: set[float]) -> float:
    """The share for validation; for very few images, one that leaves some on both sides."""
    different = sorted(shares)
    if len(different) < 2:
        return 0.0
    return VAL_SHARE if different[0] < VAL_SHARE <= different[-1] else different[1]


def _share(path: Path) -> float:
    """A number from 0 to 1 that depends only on the content of a file."""
    digest = hashlib.sha256(path.read_bytes()).digest()
    return int.from_bytes(digest[:8]) / 2**64
