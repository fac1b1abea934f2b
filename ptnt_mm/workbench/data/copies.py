"""Find images that show the same: copies, tiles of one image, frames of one video.

On both sides of a split they make a score too good. Three things show them: the bytes, the names,
and a small picture. Names and pictures may mislead, so a group that would be a large part of the
set is not believed.
"""

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from operator import sub
from pathlib import Path

import numpy as np
from PIL import Image

from ptnt_mm.utils.text import natural_order
from ptnt_mm.workbench.data.many_files import grouped, on_threads
from ptnt_mm.workbench.data.tree import split_named

Groups = list[list[int]]
Thumbnails = Mapping[Path, np.ndarray]

MOST_COMPARED = 50_000
"""Pictures of more images are not compared: all pairs of these take minutes."""

_SIDE = 16  # of a small picture, in pixels
_SAME = 0.98  # correlation; in BCCD, the only pair above 0.8 shows one sample twice
_CERTAIN = 0.995
_CHANGE = 0.4  # of a pixel, as a share of the contrast: an object that moves changes some by more
_TURNED = 0.9  # of names of copies: colours may be changed, too
_NEXT = 0.8  # of frames that follow each other
_BLANK = 1.5  # grey levels of 256: noise would decide
_ROWS = 256  # that are compared at a time
_LARGE = 0.2  # of the set
_FEW = 8

_ROBOFLOW = re.compile(r'([_.](jpe?g|png|bmp|tiff?|webp))?\.rf\.\w+$')
_CHANGED = re.compile(
    r'(?:[_\-. ]+(?:\w?flip\w*|fl[lu][rd]|mirror(?:ed)?|aug\w*|rot(?:ate[d]?|ation)?|crop(?:ped)?|'
    r'resized?|scaled?|blur(?:red)?|nois[ey]|bright\w*|contrast|shear(?:ed)?|jitter|copy|tile|'
    r'patch)[_\- ]?\d*(?:[_\-]\d+)*'
    r'|[_\-]x\d+[_\-]y\d+|[_\-]r(?:ow)?\d+[_\-]c(?:ol)?\d+)+$'
)
_TILE = re.compile(r'(.+?)[_\-](\d+)[_\-](\d+)$')
_NUMBERED = re.compile(r'(.*?)(\d+)$')


def digest(content: bytes) -> bytes:
    """The SHA-256 of the content of an image, by which equal files are found."""
    return hashlib.sha256(content).digest()


def digests_of(paths: Sequence[Path], what: str) -> dict[Path, bytes]:
    """The digest of each image; ``what`` is shown while this takes its time."""
    found = on_threads(lambda path: digest(path.read_bytes()), paths, what)
    return dict(zip(paths, found, strict=True))


def thumbnail(image: Image.Image) -> np.ndarray:
    """A small picture of an image: (256,) float32 of mean 0 and length 1; all 0 if it is blank."""
    if image.mode.startswith(('I', 'F')):
        image = Image.fromarray(np.nan_to_num(np.asarray(image, np.float32)))
    elif image.mode == 'P':
        image = image.convert('RGBA').convert('L')  # Pillow warns about transparency otherwise
    elif image.mode != 'L':
        # Images may be large, and converting copies them.
        image = (image if image.mode == 'RGB' else image.convert('RGB')).convert('L')
    pixels = np.asarray(image.resize((_SIDE, _SIDE), Image.Resampling.BOX), np.float32).ravel()
    pixels = pixels - pixels.mean()
    # Grey levels of 16 bits and floats have another range.
    largest = max(255.0, float(np.abs(pixels).max()))
    length = float(np.linalg.norm(pixels))
    blank = length / _SIDE < _BLANK * largest / 255
    return np.zeros_like(pixels) if blank else pixels / length


def similar_images(thumbnails: np.ndarray) -> Groups:
    """Images that look like the first of their group, or its mirror image; groups are not chained.

    Args:
        thumbnails: (N, 256), see :func:`thumbnail`; more than ``MOST_COMPARED`` are not compared.
    """
    count = len(thumbnails)
    if count > MOST_COMPARED:
        return []
    mirrored = thumbnails.reshape(count, _SIDE, _SIDE)[:, :, ::-1].reshape(count, -1)
    taken = np.zeros(count, bool)
    groups = []
    for start in range(0, count, _ROWS):
        rows = thumbnails[start : start + _ROWS]
        # Each image with later ones only.
        likeness = np.triu(np.maximum(rows @ thumbnails.T, rows @ mirrored.T) > _SAME, start + 1)
        for row in np.flatnonzero(likeness.any(axis=1)).tolist():
            others = np.flatnonzero(likeness[row] & ~taken).tolist()
            if others and not taken[start + row]:
                taken[others] = True
                groups.append([start + row, *others])
    return groups


def copies(
    paths: Sequence[Path], digests: Sequence[Hashable], similar: Groups | None = None
) -> Groups:
    """Groups of images that are copies, with single images as groups of one.

    Args:
        paths: The images.
        digests: A hash of the bytes of each.
        similar: Those of :func:`similar_images`; None for copies of equal bytes only.
    """
    count = len(paths)
    same = _by_key(digests)
    if similar is not None:
        changed = _by_key(map(_changed_name, paths))
        same += [group for group in changed if len(group) * 2 <= count]
        others = (*_with_originals(paths), *similar)
        same += [group for group in others if not _is_large(group, count)]
    return _joined(same, count)


def sequences(
    paths: Sequence[Path],
    thumbnails: np.ndarray,
    similar: Groups,
    together: Groups,
    by_names: bool = True,
) -> Groups | None:
    """Groups of images that belong together: copies, tiles of one image, frames of one video.

    Args:
        paths: The images.
        thumbnails: (N, 256), as :func:`thumbnail`.
        similar: Those of :func:`similar_images`.
        together: The groups of copies.
        by_names: Whether names are enough; otherwise neighbours by name must look alike.

    Returns:
        Larger groups; None if there are none.
    """
    names = list(map(_name, paths))
    found = [*together, *_videos(names, thumbnails, by_names)]
    found += [group for group in similar if _is_large(group, len(paths))]
    if by_names:
        found += [*_tiles(names), *_variants(paths)]
    groups = _joined(found, len(paths))
    return groups if len(groups) < len(together) else None


def in_blocks(paths: Sequence[Path], groups: Groups, together: Groups, size: int) -> Groups:
    """Cut groups above a size into blocks of neighbours by name; copies stay together."""
    of_image = {i: k for k, group in enumerate(together) for i in group}
    blocks = []
    for group in groups:
        if len(group) <= size:
            blocks.append(group)
            continue
        block: list[int] = []
        ordered = sorted(group, key=lambda i: natural_order(_name(paths[i])[-1]))
        for k in dict.fromkeys(of_image[i] for i in ordered):
            if len(block) >= size or not block:
                block = []
                blocks.append(block)
            block += together[k]
    return blocks


def crossing(
    train: Sequence[Path],
    other: Sequence[Path],
    digests: Mapping[Path, Hashable],
    thumbnails: Thumbnails,
) -> dict[Path, Path]:
    """The images of a given split that are copies of one to train on, with that one.

    A given split is only doubted for what is certain: equal bytes, pictures that are almost equal,
    or names of copies with pictures that are similar, perhaps turned or mirrored.
    """
    of_digest = {digests[path]: path for path in train}
    found = {path: of_digest[digests[path]] for path in other if digests[path] in of_digest}
    by_name = grouped((_name(path), path) for path in train)
    for path in other:
        for copy in by_name.get(_name(path), ())[:_ROWS]:
            # Images of the same name may be numbered from 0 in each split.
            if copy.stem != path.stem and _likeness(*stacked((path, copy), thumbnails)) > _TURNED:
                found.setdefault(path, copy)
    if train and other and len(train) + len(other) <= MOST_COMPARED:
        of_train, of_other = stacked(train, thumbnails), stacked(other, thumbnails)
        for start in range(0, len(other), _ROWS):
            correlation = of_other[start : start + _ROWS] @ of_train.T
            for i, row in enumerate(correlation, start=start):
                copy = int(row.argmax())
                change = np.abs(of_other[i] - of_train[copy]).max() * _SIDE
                if row[copy] > _CERTAIN and change < _CHANGE:
                    found.setdefault(other[i], train[copy])
    return found


def stacked(paths: Sequence[Path], thumbnails: Thumbnails) -> np.ndarray:
    """Small pictures, (N, 256); unknown ones are blank."""
    blank = np.zeros(_SIDE * _SIDE, np.float32)
    return np.stack([thumbnails.get(path, blank) for path in paths])


def _joined(groups: Groups, count: int) -> Groups:
    """The numbers below a count as disjoint groups; those that share a number are one."""
    parent = list(range(count))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = i = parent[parent[i]]
        return i

    for first, *others in groups:
        for other in others:
            parent[root(other)] = root(first)
    return list(grouped((root(i), i) for i in range(count)).values())


def _by_key(keys: Iterable[Hashable | None]) -> Groups:
    """The groups of two or more places with the same key that is not None."""
    found = grouped((key, i) for i, key in enumerate(keys) if key is not None)
    return [group for group in found.values() if len(group) > 1]


def _is_large(group: Sequence[int], count: int) -> bool:
    return len(group) > max(_FEW, _LARGE * count) or len(group) * 2 > count


def _name(path: Path) -> tuple[str, ...]:
    """The folders of an image without those of splits, its name without the endings of copies."""
    name = _ROBOFLOW.sub('', path.stem.casefold())
    places = (part for part in path.parts[:-1] if not split_named(part))
    return *places, _CHANGED.sub('', name) or name


def _changed_name(path: Path) -> tuple[str, ...] | None:
    """A key that copies of one image share, if the name has the ending of a copy."""
    name = _name(path)
    return name if name[-1] != path.stem.casefold() else None


def _with_originals(paths: Sequence[Path]) -> Groups:
    """Images whose names begin with that of another in the same folder: a.jpg and a_left.jpg."""
    stems = [(path.parent, path.stem.casefold()) for path in paths]
    known = {stem: i for i, stem in enumerate(stems)}
    found: dict[int, list[int]] = defaultdict(list)
    for i, (folder, stem) in enumerate(stems):
        begins = ((folder, stem[: match.start()]) for match in re.finditer(r'[_\-. (]', stem))
        if (begin := next(filter(known.__contains__, begins), None)) is not None:
            found[known[begin]].append(i)
    return [[original, *changed] for original, changed in found.items()]


def _tiles(names: Sequence[tuple[str, ...]]) -> Groups:
    """Names that end in a row and a column, for two or more images."""
    found: dict[tuple, dict[int, tuple[int, int]]] = defaultdict(dict)
    for i, (*place, name) in enumerate(names):
        if match := _TILE.fullmatch(name):
            found[*place, match[1]][i] = int(match[2]), int(match[3])
    groups = []
    for tiles in found.values():
        rows, columns = (set(numbers) for numbers in zip(*tiles.values(), strict=True))
        is_grid = len(rows) * len(columns) <= 1.5 * len(set(tiles.values()))
        if is_grid and min(len(rows), len(columns)) > 1 and len(tiles) * 2 <= len(names):
            groups.append(list(tiles))
    return groups if len(groups) > 1 else []


def _variants(paths: Sequence[Path]) -> Groups:
    """Names with an ending that recurs after other names: a_left, a_right, b_left, b_right."""
    found: dict[tuple, dict[int, str]] = defaultdict(dict)
    for i, path in enumerate(paths):
        head, _, ending = path.stem.casefold().rpartition('_')
        if head and not ending[-1:].isdigit():
            found[*_name(path)[:-1], head][i] = ending
    counts = Counter(ending for endings in found.values() for ending in set(endings.values()))
    if len(found) < 3 or len(counts) * 2 > counts.total():
        return []
    return list(map(list, found.values()))


def _videos(names: Sequence[tuple[str, ...]], thumbnails: np.ndarray, by_names: bool) -> Groups:
    """Names with a running number after a name, if frames are similar or names are numbered.

    ``img_0001`` to ``img_0364`` are not one video unless their pictures show it; ``clip1_0001``
    and ``clip2_0001`` are two.
    """
    found: dict[tuple, dict[int, int]] = defaultdict(dict)
    for i, (*place, name) in enumerate(names):
        if match := _NUMBERED.fullmatch(name):
            found[*place, match[1]][i] = int(match[2])
    alike_names = Counter(map(_without_numbers, found))
    groups = []
    for head, frames in found.items():
        is_numbered = by_names and alike_names[_without_numbers(head)] > 1
        if (is_numbered and _is_dense(frames.values())) or _is_filmed(frames, thumbnails):
            groups.append(list(frames))
    return groups


def _without_numbers(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(re.sub(r'\d+', '0', name) for name in names)


def _is_dense(numbers: Iterable[int]) -> bool:
    """Whether numbers are running, perhaps in steps, with few left out."""
    ordered = sorted(set(numbers))
    step = math.gcd(*map(sub, ordered[1:], ordered))
    return len(ordered) > 1 and (ordered[-1] - ordered[0]) // step < 2 * len(ordered)


def _is_filmed(frames: Mapping[int, int], thumbnails: np.ndarray) -> bool:
    """Whether most images look like the one before."""
    ordered = sorted(frames, key=frames.__getitem__)
    pictures = thumbnails[ordered]
    return len(frames) > 3 and float(np.median((pictures[1:] * pictures[:-1]).sum(1))) > _NEXT


def _likeness(one: np.ndarray, other: np.ndarray) -> float:
    """The correlation of two small pictures; one may be turned or mirrored."""
    square = other.reshape(_SIDE, _SIDE)
    turned = [np.rot90(side, k) for side in (square, square.T) for k in range(4)]
    return max(float(one @ picture.ravel()) for picture in turned)
