"""Split images into training, validation and test sets."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import counted, first_few
from ptnt_mm.workbench.data.copies import (
    MOST_COMPARED,
    Groups,
    Thumbnails,
    copies,
    crossing,
    digests_of,
    in_blocks,
    sequences,
    similar_images,
    stacked,
)
from ptnt_mm.workbench.data.labels import LabelledImage, Labels
from ptnt_mm.workbench.project.previous import PreviousProject

VAL_SHARE = 0.2

_SHOWN = 6  # classes whose numbers are all listed


def split_off(
    labels: Labels, share: float | None = None, previous: PreviousProject | None = None
) -> dict[str, list[LabelledImage]]:
    """The images of each split: those of the data set, or a share by their content.

    The hash of an image's bytes decides, so the split is the same on every machine, and adding
    images moves few others. Copies of an image, its tiles, and frames of a video stay together,
    also with images of the previous project.

    Args:
        labels: The images. Notes are added.
        share: The share of the images to validate on, if the data set has no such split; 0.2 if
            None.
        previous: A project whose images keep their splits. Only the others are split.

    Returns:
        'train' and 'val', and 'test' if the data set has it.

    Raises:
        UserError: if there are no images to train on, or none to validate with.
    """
    digests = digests_of([image.path for image in labels.images], 'Hashing images')
    kept = {} if previous is None else previous.splits_of(list(digests), digests)
    images = [image for image in labels.images if image.path not in kept]
    counts = Counter(image.split for image in images)
    if not kept and not counts['train'] and not counts[None]:
        # Nothing is left to train on: a single split is not a split.
        given = ', '.join(f'{count} {split}' for split, count in counts.items())
        labels.notes.append(f'there are no training images, only {given}: split them again')
        images = [replace(image, split=None) for image in images]
        counts = Counter({None: len(images)})
    if counts[None] and counts['train'] and counts['val']:
        labels.notes.append(f'{counted(counts[None], "image")} in no split: used for training')
    if counts['val'] and share is not None:
        labels.notes.append(f'the data set has a validation split: val_share {share:g} is not used')
    splits: dict[str, list[LabelledImage]] = {'train': [], 'val': [], 'test': []}
    for image in labels.images:
        if image.path in kept:
            splits[kept[image.path]].append(image)
    if previous is not None:
        labels.notes.append(_of_previous(previous, kept))
    pool = []
    for image in images:
        if counts['val'] or image.split == 'test':
            splits[image.split or 'train'].append(image)
        else:
            pool.append(image)
    if pool:
        if len(pool) < 2 and not kept:
            raise UserError(
                f'{pool[0].path} is the only image to train on: expected two or more; if other '
                'labels were meant, pass their `format`'
            )
        others = [image for images in splits.values() for image in images if image.path in kept]
        both = [*pool, *others]
        sides = {len(pool) + i: kept[image.path] for i, image in enumerate(others)}
        hashes = [digests[image.path] for image in both]
        drawn = _Pool(both, hashes, labels.thumbnails, share or VAL_SHARE, sides)
        train, val, note = drawn.split()
        splits['train'] += train
        splits['val'] += val
        labels.notes.append(note)
    if empty := [split for split in ('train', 'val') if not splits[split]]:
        missing = ' and '.join(empty)
        if previous is None:
            raise UserError(
                f'copies stay in one split, and no image is left for {missing}: add images'
            )
        raise UserError(
            f'{previous.folder}: its images keep their splits, and none is left for {missing}: add '
            'images, or leave out `like`'
        )
    _note_copies(labels, splits, digests, drawn_from={image.path for image in pool})
    _note_classes(labels, splits, is_given=not pool)
    _note_contradictions(labels, digests)
    return {
        split: [replace(image, split=split) for image in images]
        for split, images in splits.items()
        if images
    }


def _of_previous(previous: PreviousProject, kept: Mapping[Path, str]) -> str:
    """A note about the images of a previous project."""
    if not kept:
        count = counted(len(previous.splits), 'image')
        return f'warning: {previous.folder}: none of its {count} was found, so all images are split'
    counts = Counter(kept.values())
    numbers = '/'.join(
        f'{counts[split]:,} {split}' for split in ('train', 'val', 'test') if counts[split]
    )
    gone = len(previous.splits) - len(kept)
    lost = f'; {gone:,} of its images were not found' if gone > 0 else ''
    return f'{previous.folder}: its images keep their splits, {numbers}{lost}'


def classes_of(image: LabelledImage) -> Counter[str]:
    """The objects of each class in an image that count, or the class of the image."""
    if image.label is not None:
        return Counter([image.label])
    return Counter(item.label for item in image.objects if not item.ignored)


@dataclass(frozen=True)
class _Pool:
    """Images to split.

    Attributes:
        images: The images.
        digests: The hash of each.
        thumbnails: Small pictures of images.
        share: The share to validate with.
        sides: The splits of those that have one already, by their places; the last ones.
    """

    images: Sequence[LabelledImage]
    digests: Sequence[bytes]
    thumbnails: Thumbnails
    share: float
    sides: Mapping[int, str]

    @property
    def new(self) -> int:
        """The number of images to split."""
        return len(self.images) - len(self.sides)

    @property
    def target(self) -> int:
        """The number of images to validate with."""
        return min(max(round(self.new * self.share), 1), self.new - 1)

    def split(self) -> tuple[list[LabelledImage], list[LabelledImage], str]:
        """The images to train on, those to validate with, and a note."""
        paths = [image.path for image in self.images]
        thumbnails = stacked(paths, self.thumbnails)
        similar = similar_images(thumbnails)
        alone = copies(paths, self.digests, similar)
        seen, size = sequences(paths, thumbnails, similar, alone, by_names=False), self.target // 2
        blocks = in_blocks(paths, seen, alone, size) if seen and size > 1 else None
        larger = sequences(paths, thumbnails, similar, alone)
        val = self._draw(copies(paths, self.digests))
        notes = ['copies are on both sides, because a class has no other images']
        for groups, what in (
            (larger, ['tiles of an image, and frames of a video, stay together']),
            (blocks, ['images with similar names and content stay together, in blocks']),
            (alone, []),
        ):
            drawn = self._draw(groups) if groups else set()
            is_usable = groups is alone or (groups and self._is_usable(drawn, groups))
            if is_usable and not self._loses(drawn, val):
                together = [group for group in alone if len(group) > 1]
                number = sum(map(len, together))
                said = [
                    f'copies stay together ({number} images in {counted(len(together), "group")})'
                ]
                val, notes = drawn, [*(said if together else []), *what]
                break
        if len(paths) > MOST_COMPARED:
            notes.append('there are too many images to look for similar ones')
        which, why = ('new images', '') if self.sides else ('images', 'no validation split: ')
        share = f'{len(val)} of {self.new} {which} ({len(val) / self.new:.0%})'
        train = [image for i, image in enumerate(self.images[: self.new]) if i not in val]
        note = '; '.join([f'{why}{share} split off by a hash of their content', *notes])
        return train, [self.images[i] for i in sorted(val)], note

    def _draw(self, groups: Groups) -> set[int]:
        """Draw groups to validate with, in the order of their hashes.

        Copies of images that have a split follow them: into training only if all of those are
        there.
        """
        free = [group for group in groups if self.sides.keys().isdisjoint(group)]
        not_to_train = {i for i, split in self.sides.items() if split != 'train'}
        tied = [group for group in groups if not not_to_train.isdisjoint(group)]
        chosen = []
        if free and self.target:
            draw = _Draw(self, sorted(free, key=lambda g: min(self.digests[i] for i in g)))
            draw.cover()
            draw.fill(proportional=True)
            draw.fill(proportional=False)
            draw.approach()
            chosen = draw.chosen
        return {i for group in (*tied, *chosen) for i in group if i < self.new}

    def _is_usable(self, val: set[int], groups: Groups) -> bool:
        """Whether the number is near what was asked for, and no group is most of the set."""
        is_near = 0.5 * self.target <= len(val) <= max(1.75 * self.target, 2)
        return is_near and max(map(len, groups)) * 2 <= len(self.images)

    def _loses(self, val: set[int], other: set[int]) -> bool:
        """Whether a draw has far fewer classes on both sides than another one."""
        there, before = self._on_both_sides(val), self._on_both_sides(other)
        is_whole = any(image.label is not None for image in self.images)
        lost = len(before - there)
        return lost > 0 if is_whole else lost * 2 > len(before)

    def _on_both_sides(self, val: set[int]) -> set[str]:
        sides = [set(), set()]
        for i, image in enumerate(self.images):
            sides[i in val or self.sides.get(i) == 'val'] |= classes_of(image).keys()
        return sides[0] & sides[1]


class _Draw:
    """Groups that are drawn for validation so that each class stays on both sides.

    Attributes:
        chosen: The groups drawn so far.
    """

    def __init__(self, pool: _Pool, groups: Groups):
        self.chosen: list[tuple[int, ...]] = []
        # The number of images of each class, as rare objects are often in one image together.
        self._rest = {
            tuple(group): Counter(c for i in group for c in classes_of(pool.images[i]))
            for group in groups
        }
        self._new, self._target = pool.new, pool.target
        self._images = _total(self._rest.values())
        self._left = Counter(c for classes in self._rest.values() for c in classes)
        self._drawn: Counter[str] = Counter()
        self._size = 0

    def cover(self) -> None:
        """Draw a group with each class that is in two or more, the rarest first."""
        coverable = sorted((count, c) for c, count in self._left.items() if count > 1)
        by_class: dict[str, list[tuple[int, ...]]] = {c: [] for _, c in coverable}
        is_small = len(by_class) <= math.ceil(self._new / 3)
        most = max(self._target, len(by_class)) if is_small else self._target
        for group, classes in self._rest.items():
            for c in classes.keys() & by_class.keys():
                by_class[c].append(group)
        for c, groups in by_class.items():
            if not self._drawn[c]:
                fit = (g for g in groups if self._may(g) and self._size + len(g) <= most)
                if (group := next(fit, None)) is not None:
                    self._take(group)

    def fill(self, proportional: bool) -> None:
        """Draw groups until the number is reached; each class in proportion, if possible."""
        share = self._target / self._new
        for group, classes in list(self._rest.items()):
            if self._size + len(group) <= self._target and self._may(group):
                is_even = all(
                    self._drawn[c] + n <= self._images[c] * share + 0.5 for c, n in classes.items()
                )
                if is_even or not proportional:
                    self._take(group)

    def approach(self) -> None:
        """Draw one more group if this is nearer to the number, or if there is none yet."""
        allowed = [group for group in self._rest if self._may(group)]
        if not self.chosen:
            if len(self._rest) == 1:  # all are copies of one image
                self.chosen = [group[:1] for group in self._rest]
                return
            allowed = allowed or list(self._rest)
        left = self._target - self._size
        nearest = min((abs(len(group) - left) for group in allowed), default=left)
        if not self.chosen or nearest < left:
            near = [group for group in allowed if abs(len(group) - left) == nearest]
            self._take(max(near, key=lambda g: sum(not self._drawn[c] for c in self._rest[g])))

    def _may(self, group: tuple[int, ...]) -> bool:
        """Whether all classes of a group remain in training without it."""
        return all(self._left[c] > 1 for c in self._rest[group])

    def _take(self, group: tuple[int, ...]) -> None:
        self.chosen.append(group)
        self._size += len(group)
        for c, number in self._rest.pop(group).items():
            self._drawn[c] += number
            self._left[c] -= 1


def _total(counters: Iterable[Counter[str]]) -> Counter[str]:
    return Counter(chain.from_iterable(map(Counter.elements, counters)))


def _note_copies(
    labels: Labels,
    splits: Mapping[str, Sequence[LabelledImage]],
    digests: Mapping[Path, bytes],
    drawn_from: set[Path],
) -> None:
    """Note images of given splits that are copies of training images."""
    for split in ('val', 'test'):
        given = [image.path for image in splits[split] if image.path not in drawn_from]
        train = [image.path for image in splits['train']]
        if found := crossing(train, given, digests, labels.thumbnails):
            listed = first_few((f'{a.name} (of {b.name})' for a, b in sorted(found.items())), 2)
            labels.notes.append(
                f'warning: {len(found)} of {counted(len(given), "image")} in {split} are copies of '
                f'training images: {listed}'
            )


def _note_contradictions(labels: Labels, digests: Mapping[Path, bytes]) -> None:
    """Note equal files in the folders of several classes."""
    first: dict[bytes, LabelledImage] = {}
    pairs = ((image, first.setdefault(digests[image.path], image)) for image in labels.images)
    if found := [(image, other) for image, other in pairs if image.label != other.label]:
        listed = (f'{i.label}/{i.path.name} equals {o.label}/{o.path.name}' for i, o in found)
        labels.notes.append(
            f'warning: {counted(len(found), "image")} in more than one class folder: '
            f'{first_few(listed, 2)}; keep the right one'
        )


def _note_classes(
    labels: Labels, splits: Mapping[str, Sequence[LabelledImage]], is_given: bool
) -> None:
    """Note how often each class occurs in each split, and the classes that one of them lacks."""
    numbers = {split: _total(map(classes_of, images)) for split, images in splits.items() if images}
    total = _total(numbers.values())
    if not total:
        return
    what = 'images' if any(image.label is not None for image in labels.images) else 'objects'
    ranked = sorted(total, key=lambda c: (total[c], c))
    is_short = len(ranked) <= _SHOWN
    shown = [c for c in labels.classes if c in total] if is_short else ranked[:3]
    listed = ', '.join(
        f'{c} {"/".join(f"{of_split[c]:,}" for of_split in numbers.values())}' for c in shown
    )
    rarest = '' if is_short else 'rarest: '
    labels.notes.append(f'{what} in {"/".join(numbers)}: {rarest}{listed}')
    for split, other in (('val', 'train'), ('train', 'val')):
        lost = [c for c in ranked if numbers[other][c] and not numbers[split][c]]
        if lost:
            # ptnt check warns about objects.
            warning = 'warning: ' if is_given and what == 'images' else ''
            missing = f'{len(lost)} of {counted(len(ranked), "class")} missing in {split}'
            labels.notes.append(f'{warning}{missing}: {first_few(lost)}')
