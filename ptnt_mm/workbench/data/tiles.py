"""Tiles of a large image: where they are, and how the objects of all tiles are merged.

Needs only NumPy, so that it also serves exported files.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ptnt_mm.utils.errors import UserError

Window = tuple[int, int, int, int]
"""Left, top, right and bottom of a part of an image, in pixels."""

OVERLAP = 0.2
"""The share of a tile that neighbours have in common by default, as in SAHI."""

_LEAST = 32  # pixels: the shortest side that ptnt new chooses for a network
_SAME = 0.5  # overlap of two detections of one object
_NEAR = 0.1  # of a box's side: a box that ends so near to the border of its window may be cut there


TILED = ('detection', 'instance')
"""The tasks whose training images can be cut into tiles."""


def check_tiled(tile: int | None, task: str) -> None:
    """Raise a UserError if images of a task cannot be cut into tiles, and are to be."""
    if tile is not None and task not in TILED:
        raise UserError(
            f'`tile={tile}` is for the tasks {" and ".join(TILED)}, and this is {task}: leave it '
            'out'
        )


@dataclass(frozen=True)
class Tiling:
    """Square tiles that cover an image; neighbours overlap.

    Args:
        tile: The side of a tile in pixels, from 32.
        overlap: The share of it that neighbours have in common, from 0 and below 1.

    Raises:
        UserError: if a value is of another type or out of its range.
    """

    tile: int
    overlap: float = OVERLAP

    def __post_init__(self) -> None:
        if type(self.tile) is not int or self.tile < _LEAST:
            raise UserError(f'`tile={self.tile!r}`: expected an integer from {_LEAST}')
        if type(self.overlap) not in (int, float) or not 0 <= self.overlap < 1:
            raise UserError(f'`overlap={self.overlap!r}`: expected a number from 0 and below 1')

    @property
    def shared(self) -> int:
        """Pixels that neighbours have in common: an object of this side is whole in some tile."""
        return min(round(self.tile * self.overlap), self.tile - 1)

    def windows(self, width: int, height: int) -> list[Window]:
        """The windows of an image, row by row; the last of a row or column is moved inwards."""
        return [
            (left, top, min(left + self.tile, width), min(top + self.tile, height))
            for top in self._starts(height)
            for left in self._starts(width)
        ]

    def _starts(self, length: int) -> list[int]:
        last = max(length - self.tile, 0)
        return [*range(0, last, self.tile - self.shared), last]


class Patch(NamedTuple):
    """The mask of an object inside a rectangle of its image."""

    pixels: np.ndarray  # (h, w) bool
    left: int
    top: int


@dataclass(frozen=True)
class Found:
    """Objects that were detected in one window.

    Attributes:
        window: The window.
        boxes: (n, 4) left, top, right, bottom in pixels of the image.
        scores: (n,).
        labels: (n,) int.
        masks: Theirs; None for a detector of boxes.
    """

    window: Window
    boxes: np.ndarray
    scores: np.ndarray
    labels: np.ndarray
    masks: list[Patch] | None = None


def merge(parts: list[Found], width: int, height: int) -> Found:
    """Merge the objects of all windows of an image by greedy non-maximum merging, class by class.

    Two detections of different windows are the same object if they overlap in the area that both
    windows see: by an IoU of 0.5, or, if one is cut by its window, by half of its visible area. Two
    of one window are two objects, because the model has told them apart. A complete box absorbs
    others; cut ones are joined to their union. The highest score counts.

    Returns:
        The objects of the whole image, the best first.
    """
    window_of = np.repeat(np.arange(len(parts)), [len(part.boxes) for part in parts])
    boxes = np.concatenate([part.boxes.reshape(-1, 4) for part in parts]).astype(np.float64)
    scores = np.concatenate([part.scores for part in parts])
    labels = np.concatenate([part.labels for part in parts])
    masks = None
    if any(part.masks is not None for part in parts):
        masks = [mask for part in parts for mask in part.masks or ()]
    windows = np.array([part.window for part in parts])
    cut = _is_cut(boxes, windows[window_of], (width, height))
    partners = _partners(boxes, labels, cut, window_of, windows)
    # Complete boxes first, those of the finest view before others.
    areas = np.prod(windows[:, 2:] - windows[:, :2], axis=1)[window_of]
    free, groups = np.ones(len(boxes), bool), []
    for i in np.lexsort((-scores, np.where(cut, 0, areas), cut)).tolist():
        if free[i]:
            group = _group(i, partners, free, cut, window_of)
            free[group] = False
            groups.append(group)
    groups.sort(key=lambda group: -scores[group].max())
    heads = [group[0] for group in groups]
    joined = [group if cut[group[0]] else group[:1] for group in groups]
    low = [boxes[group, :2].min(axis=0) for group in joined]
    high = [boxes[group, 2:].max(axis=0) for group in joined]
    merged = np.hstack([low, high]).reshape(-1, 4)
    if masks is not None:
        masks = [_union([masks[i] for i in group]) for group in joined]
    best = np.array([scores[group].max() for group in groups], scores.dtype)
    return Found((0, 0, width, height), merged, best, labels[heads], masks)


def _group(
    head: int,
    partners: list[list[tuple[float, int]]],
    free: np.ndarray,
    cut: np.ndarray,
    window_of: np.ndarray,
) -> list[int]:
    """The detections of one object, at most one of each window; cut ones lead on to others."""
    group, windows, queue = [head], {window_of[head]}, [head]
    while queue:
        for _, other in sorted(partners[queue.pop()], reverse=True):
            if free[other] and window_of[other] not in windows:
                group.append(other)
                windows.add(window_of[other])
                if cut[head] and cut[other]:
                    queue.append(other)
    return group


def _partners(
    boxes: np.ndarray,
    labels: np.ndarray,
    cut: np.ndarray,
    window_of: np.ndarray,
    windows: np.ndarray,
) -> list[list[tuple[float, int]]]:
    """For each detection, those of other windows that are the same object, with their overlap."""
    found: list[list[tuple[float, int]]] = [[] for _ in boxes]
    members = np.split(np.arange(len(boxes)), np.searchsorted(window_of, range(1, len(windows))))
    for one, other, area in _sharing(windows):
        rows, columns = members[one], members[other]
        if not len(rows) or not len(columns):
            continue
        overlap = _overlap(boxes[rows], boxes[columns], cut[rows], cut[columns], area)
        overlap[labels[rows][:, None] != labels[columns]] = 0
        for a, b in np.argwhere(overlap >= _SAME).tolist():
            found[rows[a]].append((overlap[a, b], int(columns[b])))
            found[columns[b]].append((overlap[a, b], int(rows[a])))
    return found


def _sharing(windows: np.ndarray) -> Iterator[tuple[int, int, np.ndarray]]:
    """The pairs of windows that see a common area, and that area."""
    for one, window in enumerate(windows):
        later = windows[one + 1 :]
        first = np.maximum(window[:2], later[:, :2])
        last = np.minimum(window[2:], later[:, 2:])
        for k in np.flatnonzero((last > first).all(axis=1)):
            yield one, one + 1 + k, np.concatenate([first[k], last[k]])


def _overlap(
    ones: np.ndarray, others: np.ndarray, cut: np.ndarray, are_cut: np.ndarray, area: np.ndarray
) -> np.ndarray:
    """The overlap of boxes (n, 4) and (m, 4) inside an area -> (n, m)."""
    low, high = np.tile(area[:2], 2), np.tile(area[2:], 2)
    ones, others = ones.clip(low, high), others.clip(low, high)
    first = np.maximum(ones[:, None, :2], others[:, :2])
    last = np.minimum(ones[:, None, 2:], others[:, 2:])
    both = (last - first).clip(0).prod(axis=2)
    mine = (ones[:, 2:] - ones[:, :2]).prod(axis=1)[:, None]
    theirs = (others[:, 2:] - others[:, :2]).prod(axis=1)
    least = mine + theirs - both
    least = np.where(cut[:, None], np.minimum(least, mine), least)
    least = np.where(are_cut, np.minimum(least, theirs), least)
    return np.divide(both, least, out=np.zeros_like(both), where=both > 0)


def _is_cut(boxes: np.ndarray, windows: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Whether boxes (n, 4) end at a border of their windows that is not one of the image, (n,)."""
    sides = np.tile(boxes[:, 2:] - boxes[:, :2], 2)
    is_inner = windows != np.array([0, 0, *size])
    return (is_inner & (np.abs(boxes - windows) <= np.maximum(_NEAR * sides, 1))).any(axis=1)


def _union(patches: list[Patch]) -> Patch:
    if len(patches) == 1:
        return patches[0]
    left, top = min(p.left for p in patches), min(p.top for p in patches)
    right = max(p.left + p.pixels.shape[1] for p in patches)
    bottom = max(p.top + p.pixels.shape[0] for p in patches)
    pixels = np.zeros((bottom - top, right - left), bool)
    for patch in patches:
        height, width = patch.pixels.shape
        y, x = patch.top - top, patch.left - left
        pixels[y : y + height, x : x + width] |= patch.pixels
    return Patch(pixels, left, top)
