"""Find the mask of each image: the same name in another folder, NAME_mask, or a given pattern."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import takewhile
from pathlib import Path, PurePath
from typing import TypeVar

import numpy as np

from ptnt_mm.labels.class_masks import read_thinned
from ptnt_mm.labels.tree import Tree, split_named
from ptnt_mm.utils.errors import UserError

_MASK = re.compile(
    r'masks?|labels?|annot\w*|gt|ground|truths?|groundtruth|seg|segs|segment\w*|trimaps?|man|manual'
    r'|roi|\w*maps?|inst|instances?|panoptic|\w*object'
)
_IMAGE = re.compile(
    r'images?|imgs?|pictures?|photos?|inputs?|raw|originals?|rgb|sat|left|bit|jpeg|png|ch|t|0000'
)
_PAINTED = re.compile(r'viz|visual.*|overlays?|overlaid|blend.*|preview|painted|drawn')
_OF_OBJECTS = re.compile(r'\w*object|inst|instances?|panoptic|tra|track\w*')
_COLOURED = re.compile(r'colou?r(s|ed)?|rgb')
_BY_HAND = re.compile(r'manual|truths?')
_RUNS = 'runs'  # the folder of YOLO's results

_CAMEL = re.compile(r'(?<=[a-z])(?=[A-Z])|(?<=[A-Z\d])(?=[A-Z][a-z])')
_ANNOT = re.compile(r'(?<=train)(?=annot)|(?<=val)(?=annot)|(?<=test)(?=annot)')
_NUMBER = re.compile(r'\d+')
_WORD = re.compile(r'\d+|[^\W\d_]+')
_ORDINAL = re.compile(r'^\d+[\W_]+(?=.*[^\W\d_])')
_VERSION = re.compile(r'v?\d+(?:\.\d+)+|(?<=[\W_])v\d+', re.IGNORECASE)

_SAMPLE = 6  # pairs of a kind that are looked at
_FLAT, _PHOTOGRAPH = 0.3, 0.8  # shares of neighbouring pixels that differ: below, above
_SIDE = 512  # pixels of the longer side that are looked at

Words = tuple[str, ...]
Kind = tuple[Words, Words]
Content = TypeVar('Content')


@dataclass
class Pairs:
    """The images and masks of a folder.

    Attributes:
        masks: The mask of each image.
        aside: All masks, and pictures with labels painted on.
        unused: Masks without an image.
        painted: Pictures with labels painted on.
        others: For each kind of further masks: the mask that is used, the other mask of its image,
            and the number of such images.
        unclear: A mask, and two images with its name, if nothing shows which is meant.
    """

    masks: dict[Path, Path] = field(default_factory=dict)
    aside: set[Path] = field(default_factory=set)
    unused: list[Path] = field(default_factory=list)
    painted: list[Path] = field(default_factory=list)
    others: list[tuple[Path, Path, int]] = field(default_factory=list)
    unclear: tuple[Path, Path, Path] | None = None


@dataclass(frozen=True)
class _Picture:
    """A file by the words of its path, in lower case; numbers are words, too."""

    file: Path
    stem: Words
    folders: tuple[Words, ...]
    splits: frozenset[str]

    @property
    def words(self) -> set[str]:
        """The words of its path."""
        return {*self.stem, *self.above}

    @property
    def above(self) -> set[str]:
        """The words of its folders."""
        return {word for folder in self.folders for word in folder}

    def role(self, shared: set[str]) -> re.Pattern | None:
        """The words that its name has, or else the nearest folder that has any of either."""
        if _any(_MASK, set(self.stem) - shared):
            return _MASK
        folders = (set(folder) - shared for folder in reversed(self.folders))
        found = (role for words in folders for role in (_MASK, _IMAGE) if _any(role, words))
        return next(found, None)

    def distance(self, other: '_Picture') -> int | None:
        """How many words of the folders differ; None for another split or another number."""
        here, there = self.above, other.above
        numbers = [set(filter(str.isdigit, words)) for words in (here, there)]
        for ours, theirs in (numbers, (self.splits, other.splits)):
            if ours and theirs and not ours & theirs:
                return None
        return sum(not (_MASK.fullmatch(w) or _IMAGE.fullmatch(w)) for w in here ^ there)


@lru_cache(maxsize=1)  # several formats look for pairs in one folder
def find_pairs(tree: Tree) -> Pairs:
    """The mask of each image: never one of another split, and each mask for one image.

    Raises:
        UserError: if no files have the names that were given.
    """
    return _given(tree) if tree.pairs else _found(tree)


def _given(tree: Tree) -> Pairs:
    """The files whose paths fit two patterns, with the same text in place of {}."""
    words = tree.pairs.split(' ')
    paths = {tree.relative(file).as_posix(): file for file in tree.images}
    best: list[dict[str, Path]] = [{}, {}]
    for end in range(1, len(words)):  # names may have spaces
        patterns = ' '.join(words[:end]), ' '.join(words[end:])
        if all('{}' in pattern for pattern in patterns):
            found = [_fitting(pattern, paths) for pattern in patterns]
            best = max(best, found, key=lambda groups: len(groups[0].keys() & groups[1].keys()))
    images, masks = best
    if not (shared := images.keys() & masks.keys()):
        raise UserError(
            f'`pairs={tree.pairs!r}` fits no image and mask in {tree.root}: expected two patterns '
            "relative to it, with {} for what both names share, such as 'images/{}.jpg "
            "masks/{}_m.png'"
        )
    pairs = Pairs({images[name]: masks[name] for name in sorted(shared)}, set(masks.values()))
    pairs.unused = [mask for name, mask in masks.items() if name not in shared]
    return pairs


def _fitting(pattern: str, paths: dict[str, Path]) -> dict[str, Path]:
    """The files that fit a pattern, by what stands for {}."""
    first, *others = (re.escape(part).replace(r'\*', '[^/]*') for part in pattern.split('{}'))
    regex = re.compile(r'\1'.join([f'{first}(.+){others[0]}', *others[1:]]))
    fits = ((regex.fullmatch(path), file) for path, file in paths.items())
    return {fit[1]: file for fit, file in fits if fit}


def _found(tree: Tree) -> Pairs:
    pictures = _pictures(tree)
    counts = Counter(word for picture in pictures for word in picture.words)
    shared = {word for word, count in counts.items() if count == len(pictures)}
    painted = [p for p in pictures if _any(_PAINTED, p.words - shared)]
    rest = [p for p in pictures if p.file not in {p.file for p in painted}]
    roles = {p.file: p.role(shared) for p in rest}
    masks = [p for p in rest if roles[p.file] is _MASK]
    named = {mask.file for mask in masks}
    images = _Images([p for p in rest if p.file not in named])
    candidates = masks or images.twins({file for file, role in roles.items() if role is _IMAGE})
    pairs = Pairs()
    kinds: dict[Kind, dict[Path, Path]] = defaultdict(dict)
    for mask in candidates:
        if (found := images.of(mask, pairs)) is not None:
            image, kind = found
            kinds[kind].setdefault(image, mask.file)
    ranks: dict[Path, tuple] = {}
    for kind in sorted(kinds, key=lambda kind: (*_rank(kind), -len(kinds[kind]), kind)):
        usual = _usual(kinds[kind])
        if not _are_flat(usual, _PHOTOGRAPH if masks else _FLAT):
            continue
        pairs.aside |= set(kinds[kind].values())
        known = [image for image in usual if image in pairs.masks]
        if not known or 2 * len(known) < len(usual):
            pairs.masks = usual | pairs.masks
            ranks = dict.fromkeys(usual, _rank(kind)) | ranks
        elif ranks[known[0]] == _rank(kind):
            pairs.others.append((pairs.masks[known[0]], usual[known[0]], len(known)))
    if pairs.masks:
        pairs.painted = [p.file for p in painted]
        pairs.unused = sorted(named - pairs.aside)
        pairs.aside |= {*pairs.painted, *pairs.unused}
    return pairs


def _pictures(tree: Tree) -> list[_Picture]:
    """The files that may be images or masks: not the pictures of YOLO's runs."""
    files = [file for file in tree.images if _RUNS not in tree.folders(file)]
    names = {name for file in files for name in tree.folders(file)}
    # Numbers that only sort folders, as in 5_Labels, are no words; those in 01_GT and 02_GT are.
    plain = {name: _ORDINAL.sub('', name) for name in names}
    times = Counter(name.casefold() for name in plain.values())
    plain = {name: other if times[other.casefold()] == 1 else name for name, other in plain.items()}
    words = {name: _words(_VERSION.sub(' ', other)) for name, other in plain.items()}
    found = []
    for file in files:
        folders = tuple(words[name] for name in tree.folders(file))
        splits = frozenset(split for f in folders for word in f if (split := split_named(word)))
        found.append(_Picture(file, _words(file.stem), folders, splits))
    return found


def _words(text: str) -> Words:
    """SegmentationClass_01b -> segmentation, class, 01, b."""
    return tuple(_WORD.findall(_ANNOT.sub(' ', _CAMEL.sub(' ', text)).casefold()))


def _any(pattern: re.Pattern, words: Sequence[str] | set[str]) -> bool:
    return any(map(pattern.fullmatch, words))


class _Images:
    """The pictures that are no masks, by their names."""

    def __init__(self, pictures: Sequence[_Picture]):
        self._pictures = pictures
        self._by_name: dict[Words, list[_Picture]] = defaultdict(list)
        for picture in pictures:
            for name, _ in dict(_names(picture, _IMAGE)).items():
                self._by_name[name].append(picture)

    def twins(self, named: set[Path]) -> list[_Picture]:
        """The pictures beside a JPEG, or outside of a folder of images, with an equal name."""
        jpegs = {p.file.with_suffix('') for p in self._pictures if _is_jpeg(p.file)}
        stems = {p.stem for p in self._pictures if p.file in named}
        return [
            p
            for p in self._pictures
            if (p.file.with_suffix('') in jpegs and not _is_jpeg(p.file))
            or (p.stem in stems and p.file not in named)
        ]

    def of(self, mask: _Picture, pairs: Pairs) -> tuple[Path, Kind] | None:
        """The image of a mask, and its kind: the words by which masks differ from images."""
        for name, others in _names(mask, _MASK):
            found = [p for p in self._by_name.get(name, ()) if p is not mask]
            near = [(d, p) for p in found if (d := mask.distance(p)) is not None]
            if not near:
                continue
            least = min(distance for distance, _ in near)
            nearest = [picture for distance, picture in near if distance == least]
            # im1.jpg and im1.png may be one picture; those of different folders are not.
            if len({picture.file.parent for picture in nearest}) > 1:
                pairs.unclear = mask.file, nearest[0].file, nearest[-1].file
            image = min(nearest, key=lambda p: (len(p.stem), p.file))
            words = sorted(w for w in mask.above - image.above if not w.isdigit())
            return image.file, (tuple(words), others)
        return None


def _is_jpeg(file: Path) -> bool:
    return file.suffix.lower() in ('.jpg', '.jpeg')


def _names(picture: _Picture, pattern: re.Pattern) -> Iterator[tuple[Words, Words]]:
    """Names that a picture may share with its partner, the longest first; and the other words.

    The others are words of the pattern at the beginning, and all from one of the pattern on; for
    masks, from any word on: D_7_SP. A name with numbers keeps some.
    """
    stem = picture.stem
    leading = list(takewhile(lambda w: pattern.fullmatch(w) and not w.isdigit(), stem))
    least = int(any(map(str.isdigit, stem)))
    for start in dict.fromkeys((0, len(leading))):
        for end in range(len(stem), start, -1):
            name, others = stem[start:end], stem[end : end + 1]
            may_end = _any(pattern, others) or (pattern is _MASK and not _any(_NUMBER, others))
            if (may_end or not others) and sum(map(str.isdigit, name)) >= least:
                yield name, stem[:start] + stem[end:]
    if len(leading) == len(stem) and picture.folders:
        yield picture.folders[-1], stem  # 7/image.png and 7/mask.png


def _rank(kind: Kind) -> tuple[bool, ...]:
    """Sorts the masks for training first: those of classes, by index, drawn by hand."""
    folders, others = kind
    words = {*folders, *others}
    is_aside = _any(_OF_OBJECTS, words), _any(_COLOURED, words)
    return *is_aside, 'train' not in others, not _any(_BY_HAND, words)


def _usual(masks: dict[Path, Path]) -> dict[Path, Path]:
    """The pairs without those of folders that have hardly any: strangers of the same name."""
    folders = Counter(re.sub(r'\d+', '0', str(image.parent)) for image in masks)
    most = max(folders.values())
    return {
        image: mask
        for image, mask in masks.items()
        if folders[re.sub(r'\d+', '0', str(image.parent))] * 10 >= most
    }


def _are_flat(masks: dict[Path, Path], most: float) -> bool:
    """Whether masks have areas of one value, and no less than their images have."""
    pairs = spread([*masks.items()], _SAMPLE)
    of_images, of_masks = (_roughness([pair[i] for pair in pairs]) for i in (0, 1))
    return of_masks <= most and not of_images < min(_FLAT, of_masks / 3)


def _roughness(files: Sequence[Path]) -> float:
    """The mean share of neighbouring pixels that differ; 0.5, for neither, without pixels."""
    read = (read_thinned(file, _SIDE) for file in files)
    shares = [(np.diff(p, axis=1) != 0).mean() for p in read if p is not None and p.shape[1] > 1]
    return float(np.mean(shares)) if shares else 0.5


def which_is_flat(folders: Sequence[Sequence[Path]]) -> int | None:
    """Which of two groups of pictures is flat, as masks are, if the other is not; or None."""
    rough = [_roughness(spread(files, _SAMPLE)) for files in folders]
    flat = int(rough[1] < rough[0])
    return flat if rough[flat] < min(_FLAT, rough[1 - flat] / 3) else None


def patterns(image: PurePath, mask: PurePath) -> str:
    """How ``pairs`` names files such as an image and its mask."""
    found = SequenceMatcher(None, image.stem, mask.stem, False).find_longest_match()
    name = image.stem[found.a : found.a + found.size]
    return ' '.join(str(p.with_name(p.name.replace(name, '{}', 1))) for p in (image, mask))


def spread(items: Sequence[Content], most: int) -> list[Content]:
    """Some of the items, evenly spread."""
    return list(items[:: max(1, -(-len(items) // most))])
