"""Compare pictures: whether they are flat, as masks are, and whether they belong together."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np

from ptnt_mm.labels.class_masks import colours_of, is_coloured, read_thinned

FLAT, PHOTOGRAPH = 0.3, 0.8
"""Shares of neighbouring pixels that differ: below the first in masks, above the second in
photographs."""

_SIDE = 512  # pixels of the longer side that are looked at


class Pictures:
    """The pixels of some files, each read once, at most 512 x 512."""

    def __init__(self):
        self._read = lru_cache(maxsize=256)(lambda file: read_thinned(file, _SIDE))

    def roughness(self, files: Sequence[Path]) -> float:
        """The mean share of neighbouring pixels that differ; 0.5, for neither, without pixels."""
        shares = [
            (np.diff(pixels, axis=1) != 0).mean()
            for pixels in map(self._read, files)
            if pixels is not None and pixels.shape[1] > 1
        ]
        return float(np.mean(shares)) if shares else 0.5

    def contrast(self, pairs: Sequence[tuple[Path, Path]]) -> int:
        """1 if the second pictures are flat and the first are not, -1 the other way round, or 0."""
        first, second = (self.roughness([pair[i] for pair in pairs]) for i in (0, 1))
        if second < min(FLAT, first / 3):
            return 1
        return -int(first < min(FLAT, second / 3))

    def are_coloured(self, masks: Sequence[Path]) -> bool:
        """Whether masks have colours, without a palette."""
        read = [pixels for mask in masks if (pixels := self._read(mask)) is not None]
        return any(is_coloured(pixels) for pixels in read)

    def are_constant(self, masks: Sequence[Path]) -> bool:
        """Whether masks are nearly equal, but not empty."""
        read = [pixels for mask in masks if (pixels := self._read(mask)) is not None]
        if len(read) < 3 or len({pixels.shape for pixels in read}) > 1:
            return False
        areas = [pixels != pixels[0, 0] for pixels in read]
        return np.all(areas, axis=0).sum() > 0.9 * np.any(areas, axis=0).sum()

    def are_aligned(self, pairs: Sequence[tuple[Path, Path]]) -> bool:
        """Whether images have edges where their masks have them, and not where others have."""
        read = self._of_one_size(pairs)
        if not read or len(read) < len(pairs):
            return False
        with_edges = [(image, mask) for image, mask in read if _edges(mask).any()]
        own, others = [], []
        for i, (image, mask) in enumerate(with_edges):
            rest = (*with_edges[i + 1 :], *with_edges[:i])
            other = next((m for _, m in rest if m.shape == mask.shape), None)
            own.append(_fit(image, mask))
            others.append(1.0 if other is None else max(1.0, _fit(image, other)))
        is_better = np.array(own) > np.array(others)
        return bool(own) and np.mean(own) > 1.1 and is_better.mean() > 0.8

    def say_the_same(self, pairs: Sequence[tuple[Path, Path]]) -> bool:
        """Whether one of two masks follows from the other, as the colours of classes do.

        Those of two annotators, or of the left and the right lung, do not.
        """
        shares = [_follows(*pair) for pair in self._of_one_size(pairs)]
        return not shares or bool(np.max(np.mean(shares, axis=0)) > 0.9)

    def detail(self, pairs: Sequence[tuple[Path, Path]]) -> float:
        """The mean difference of neighbouring pixels in images, but for the edges of masks."""
        found = []
        for image, mask in self._of_one_size(pairs):
            inside = ~_near_edges(mask)
            if inside.any():
                found.append(_steps(image)[inside].mean())
        return float(np.mean(found)) if found else 0.0

    def are_painted(self, triples: Sequence[tuple[Path, Path, Path]]) -> bool:
        """Whether other pictures are images in which the classes of masks are coloured.

        They have the same details. Either they differ only where there are objects, or their
        colours depend on the class more than those of the images.
        """
        found = []
        for files in triples:
            image, other, mask = map(self._read, files)
            if any(pixels is None or pixels.shape != mask.shape for pixels in (image, other, mask)):
                return False
            inside = ~_near_edges(mask)
            steps = [_steps(pixels)[inside] for pixels in (image, other)]
            if not all(step.any() for step in steps) or np.corrcoef(*steps)[0, 1] < 0.5:
                return False
            ground = np.bincount(np.unique(mask, return_inverse=True)[1].ravel()).argmax()
            areas = _dilated(mask != np.unique(mask)[ground])
            change = np.abs(colours_of(image) - colours_of(other)).mean(-1)
            inside, outside = (change[area].mean() if area.any() else 0 for area in (areas, ~areas))
            explained = [_explained(pixels, mask) for pixels in (image, other)]
            found.append(inside > 5 + 3 * outside or explained[1] > explained[0] + 0.1)
        return np.mean(found) > 0.5 if found else False

    def _of_one_size(
        self, pairs: Sequence[tuple[Path, Path]]
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """The pixels of the pairs that have the same size."""
        read = [(self._read(first), self._read(second)) for first, second in pairs]
        known = [(a, b) for a, b in read if a is not None and b is not None]
        return [(a, b) for a, b in known if a.shape == b.shape]


def _steps(pixels: np.ndarray) -> np.ndarray:
    """The difference of each pixel from the one before it, (H, W - 1)."""
    return np.abs(np.diff(colours_of(pixels).mean(-1), axis=1))


def _edges(mask: np.ndarray) -> np.ndarray:
    """Where neighbouring pixels have different values, (H, W - 1) bool."""
    return np.diff(mask, axis=1) != 0


def _near_edges(mask: np.ndarray) -> np.ndarray:
    """Where an edge of a mask is at most two pixels away, (H, W - 1) bool."""
    return _dilated(_edges(mask))


def _dilated(area: np.ndarray) -> np.ndarray:
    return cv2.dilate(area.astype(np.uint8), np.ones((5, 5))).astype(bool)


def _fit(image: np.ndarray, mask: np.ndarray) -> float:
    """How much larger the steps in an image are at the edges of a mask; 1 without edges."""
    steps, edges = _steps(image), _edges(mask)
    return float(steps[edges].mean() / steps.mean()) if edges.any() and steps.any() else 1.0


def _follows(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """The shares of pixels where a value of the first mask has one value in the second, and back.

    The most frequent pair of values, mostly of the background, does not count.
    """
    indices = [np.unique(mask, return_inverse=True)[1].ravel() for mask in (first, second)]
    table = np.zeros([index.max() + 1 for index in indices])
    np.add.at(table, tuple(indices), 1)
    usual = table.max()
    if usual == table.sum():
        return 1.0, 1.0
    total = table.sum() - usual
    return tuple(float(table.max(axis).sum() - usual) / total for axis in (1, 0))


def _explained(image: np.ndarray, mask: np.ndarray) -> float:
    """The share of the variance of an image's hues that is between the classes of its mask."""
    colours = colours_of(image).reshape(-1, 3)
    hues = colours - colours.mean(-1, keepdims=True)
    hues -= hues.mean(0)
    places = np.unique(mask, return_inverse=True)[1].ravel()
    counts = np.bincount(places)
    between = sum((np.bincount(places, hue) ** 2 / counts).sum() for hue in hues.T)
    return float(between / (hues**2).sum()) if hues.any() else 0.0
