"""Find the mask of each image: the same name in another folder, NAME_mask, or a given pattern."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import takewhile
from pathlib import Path, PurePath
from typing import TypeVar

import numpy as np

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import nfc
from ptnt_mm.workbench.data.class_masks import read_thinned
from ptnt_mm.workbench.data.many_files import grouped
from ptnt_mm.workbench.data.tree import Tree, split_named

_MASK = re.compile(
    r'masks?|labels?|annot\w*|gt|ground|truths?|groundtruth|seg|segs|segment\w*|trimaps?|man|manual'
    r'|roi|\w*maps?|inst|instances?|panoptic|\w*object'
)
_IMAGE = re.compile(
    r'images?|imgs?|pictures?|photos?|inputs?|raw|originals?|rgb|sat|left|bit|jpeg|png|ch|t'
)
_MASK_OR_IMAGE = re.compile(f'{_MASK.pattern}|{_IMAGE.pattern}')
_PAINTED = re.compile(r'viz|visual.*|overlays?|overlaid|blend.*|preview|painted|drawn')
_OF_OBJECTS = re.compile(r'\w*object|inst|instances?|panoptic|tra|track\w*')
_COLOURED = re.compile(r'colou?r(s|ed)?|rgb')
_OF_SUPERVISELY = {'human', 'machine'}  # masks in colours, and the same with indices
_BY_HAND = re.compile(r'manual|truths?')
_RUNS = 'runs'  # the folder of YOLO's results

_CAMEL = re.compile(r'(?<=[a-z])(?=[A-Z])|(?<=[A-Z\d])(?=[A-Z][a-z])')
_ANNOT = re.compile(r'(?<=train)(?=annot)|(?<=val)(?=annot)|(?<=test)(?=annot)')
_EDGE = re.compile(
    rf'{_CAMEL.pattern}|(?<=[\W_])|(?=[\W_])|(?<=\d)(?=[^\W\d_])|(?<=[^\W\d_])(?=\d)'
)
_WORD = re.compile(r'\d+|[^\W\d_]+')
_ORDINAL = re.compile(r'^\d+[\W_]+(?=.*[^\W\d_])')
_VERSION = re.compile(r'v?\d+(?:\.\d+)+|(?<=[\W_])v\d+', re.IGNORECASE)

_SAMPLE = 6  # pairs of a kind that are looked at
_FLAT, _PHOTOGRAPH = 0.3, 0.8  # shares of neighbouring pixels that differ: below, above
_SIDE = 512  # pixels of the longer side that are looked at

Words = tuple[str, ...]
Kind = tuple[Words, Words]
Texts = tuple[str, ...]
Content = TypeVar('Content')


@dataclass(frozen=True)
class Further:
    """Masks of one kind that are not read, as their images have another one.

    Attributes:
        image: The first of the images.
        mask: Its mask of this kind.
        count: The number of images.
        is_alike: Whether they may show other objects or classes, and not the same in another way.
    """

    image: Path
    mask: Path
    count: int
    is_alike: bool


@dataclass
class Pairs:
    """The images and masks of a folder.

    Attributes:
        masks: The mask of each image.
        every: All masks of each image, with the words that only their own names have.
        aside: All masks, and pictures with labels painted on.
        unused: Masks without an image.
        painted: Pictures with labels painted on.
        further: The kinds of masks that are not read.
        unclear: A mask, and two images with its name, if nothing shows which is meant.
    """

    masks: dict[Path, Path] = field(default_factory=dict)
    every: dict[Path, dict[Path, Words]] = field(default_factory=dict)
    aside: set[Path] = field(default_factory=set)
    unused: list[Path] = field(default_factory=list)
    painted: list[Path] = field(default_factory=list)
    further: list[Further] = field(default_factory=list)
    unclear: tuple[Path, Path, Path] | None = None


class _Folder:
    """The folders above a file by their words, in lower case; numbers are words, too.

    Args:
        parts: The words of each folder, from the top.
    """

    def __init__(self, parts: Sequence[Words]):
        self.parts = parts
        self.words = frozenset(word for part in parts for word in part)
        self.splits = frozenset(filter(None, map(split_named, self.words)))
        self.numbers = frozenset(filter(str.isdigit, self.words))
        self.own = frozenset(w for w in self.words if not _MASK_OR_IMAGE.fullmatch(w))

    def distance(self, other: '_Folder') -> int | None:
        """How many words differ; None for another split or another number."""
        for ours, theirs in ((self.numbers, other.numbers), (self.splits, other.splits)):
            if ours and theirs and not ours & theirs:
                return None
        return len(self.own ^ other.own)


@dataclass(frozen=True, eq=False)  # there may be many
class _Picture:
    """A file, the words of its name, and its folders."""

    file: Path
    stem: Words
    folder: _Folder

    @property
    def words(self) -> set[str]:
        """The words of its path."""
        return {*self.stem, *self.folder.words}

    def role(self, shared: set[str]) -> re.Pattern | None:
        """The words that its name has, or else the nearest folder that has any of either."""
        if _any(_MASK, set(self.stem) - shared):
            return _MASK
        parts = (set(part) - shared for part in reversed(self.folder.parts))
        found = (role for words in parts for role in (_MASK, _IMAGE) if _any(role, words))
        return next(found, None)


@lru_cache(maxsize=1)  # several formats look for pairs in one folder
def find_pairs(tree: Tree) -> Pairs:
    """The mask of each image: never one of another split, and each mask for one image.

    Raises:
        UserError: if no files have the names that were given, or if these do not tell them apart.
    """
    return _given(tree, tree.pairs) if tree.pairs else _found(tree)


def has_folder_of_masks(tree: Tree) -> bool:
    """Whether the name of a folder of pictures is that of masks, which is seen at once."""
    names = {name for file in tree.images for name in tree.folders(file)}
    return any(_any(_MASK, words_of(name)) for name in names)


def _given(tree: Tree, given: str) -> Pairs:
    """The files whose paths fit two patterns, with the same texts in place of {}.

    Several {} of a pattern are one text, or different ones if more files fit so.
    """
    words = given.split(' ')
    paths = {tree.relative(file).as_posix(): file for file in tree.images}
    best: list[dict[Texts, list[Path]]] = [{}, {}]
    for end in range(1, len(words)):  # names may have spaces
        patterns = ' '.join(words[:end]), ' '.join(words[end:])
        if not all('{}' in pattern for pattern in patterns):
            continue
        for further in (r'\1', '(.+)'):
            found = [_fitting(pattern, further, paths) for pattern in patterns]
            best = max(best, found, key=lambda groups: len(groups[0].keys() & groups[1].keys()))
    images, masks = best
    if not (shared := images.keys() & masks.keys()):
        raise UserError(
            f'`pairs={given!r}` fits no image and mask in {tree.root}: expected two patterns '
            "relative to it, with {} for what both names share, such as 'images/{}.jpg "
            "masks/{}_m.png'"
        )
    for files in (group[name] for name in sorted(shared) for group in best):
        if len(files) > 1:
            first, second = map(tree.relative, files[:2])
            raise UserError(
                f'`pairs={given!r}` fits two files with the same text for {{}}, {first} and '
                f'{second}: use {{}} for the folder too, or a narrower pattern'
            )
    pairs = Pairs({images[name][0]: masks[name][0] for name in sorted(shared)})
    used = set(pairs.masks.values())
    if both := sorted(used & pairs.masks.keys()):
        raise UserError(
            f'`pairs={given!r}` fits {tree.relative(both[0])} both as an image and as a mask: '
            'expected patterns that tell them apart'
        )
    of_pairs = used | pairs.masks.keys()
    pairs.unused = [mask for files in masks.values() for mask in files if mask not in of_pairs]
    pairs.aside = used | {*pairs.unused}
    return pairs


def _fitting(pattern: str, further: str, paths: dict[str, Path]) -> dict[Texts, list[Path]]:
    """The files that fit a pattern, by what stands for {}; ``further`` is for all but the first."""
    first, *others = (re.escape(part).replace(r'\*', '[^/]*') for part in pattern.split('{}'))
    regex = re.compile(further.join([f'{first}(.+){others[0]}', *others[1:]]))
    fits = ((regex.fullmatch(path), file) for path, file in paths.items())
    return grouped((fit.groups(), file) for fit, file in fits if fit)


def _found(tree: Tree) -> Pairs:
    pictures = _pictures(tree)
    counts = Counter(word for picture in pictures for word in picture.words)
    shared = {word for word, count in counts.items() if count == len(pictures)}
    painted = {p for p in pictures if _any(_PAINTED, p.words - shared)}
    roles = {p: p.role(shared) for p in pictures if p not in painted}
    masks = [p for p, role in roles.items() if role is _MASK]
    images = _Images([p for p, role in roles.items() if role is not _MASK])
    candidates = masks or images.twins({p for p, role in roles.items() if role is _IMAGE})
    pairs = Pairs()
    kinds: dict[Kind, dict[Path, dict[Path, Words]]] = defaultdict(lambda: defaultdict(dict))
    for mask in candidates or images.numbered():
        if (found := images.of(mask, pairs, tree)) is not None:
            image, folders, words = found
            kind = folders, tuple(word for word in words if not word.isdigit())
            kinds[kind][image][mask.file] = words
    words = {word for folders, others in kinds for word in (*folders, *others)}
    is_twice = words >= _OF_SUPERVISELY

    def order(kind: Kind) -> tuple:
        is_human = is_twice and 'human' in (*kind[0], *kind[1])
        return *_rank(kind), is_human, -len(kinds[kind]), kind

    for kind in sorted(kinds, key=order):
        first = {image: next(iter(masks)) for image, masks in kinds[kind].items()}
        if not _are_flat(first, _PHOTOGRAPH if masks else _FLAT):
            continue
        for image, of_image in kinds[kind].items():
            pairs.every.setdefault(image, {}).update(of_image)
            pairs.aside |= of_image.keys()
        known = [image for image in first if image in pairs.masks]
        if candidates and 2 * len(known) < len(first):
            pairs.masks = first | pairs.masks
        several = [image for image, found in kinds[kind].items() if len(found) > 1]
        second = {image: list(kinds[kind][image])[1] for image in several if image in pairs.masks}
        is_alike = _rank(kind)[:2] == (False, False)
        for other in ({image: first[image] for image in known}, second):
            if other:
                image, mask = next(iter(other.items()))
                pairs.further.append(Further(image, mask, len(other), is_alike))
    pairs.unused = sorted({mask.file for mask in masks} - pairs.aside)
    if pairs.masks:
        pairs.painted = sorted(p.file for p in painted)
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
    words = {name: words_of(_VERSION.sub(' ', other)) for name, other in plain.items()}
    folders = {file.parent: tree.folders(file) for file in files}
    known = {path: _Folder([words[name] for name in names]) for path, names in folders.items()}
    return [_Picture(file, words_of(file.stem), known[file.parent]) for file in files]


def words_of(text: str) -> Words:
    """SegmentationClass_01b -> segmentation, class, 01, b."""
    return tuple(_WORD.findall(_ANNOT.sub(' ', _CAMEL.sub(' ', nfc(text))).casefold()))


def is_of_masks(word: str) -> bool:
    """Whether a word of a name tells that a picture is a mask."""
    return _fits(_MASK, word)


def _any(pattern: re.Pattern, words: Iterable[str]) -> bool:
    return any(_fits(pattern, word) for word in words)


@lru_cache(maxsize=100_000)
def _fits(pattern: re.Pattern, word: str) -> bool:
    return pattern.fullmatch(word) is not None


class _Images:
    """The pictures whose names are not those of masks."""

    def __init__(self, pictures: Sequence[_Picture]):
        self._pictures = pictures
        named = [(name, picture) for picture in pictures for name in dict(_names(picture, _IMAGE))]
        self._by_name = grouped(named)
        self._by_path = grouped(((name, p.folder.own), p) for name, p in named)

    def twins(self, named: set[_Picture]) -> list[_Picture]:
        """The pictures beside a JPEG, or outside of a folder of images, with an equal name."""
        jpegs = {p for p in self._pictures if p.file.suffix.lower() in ('.jpg', '.jpeg')}
        places, stems = {(p.folder, p.stem) for p in jpegs}, {p.stem for p in named}
        return [
            p
            for p in self._pictures
            if ((p.folder, p.stem) in places and p not in jpegs)
            or (p.stem in stems and p not in named)
        ]

    def numbered(self) -> list[_Picture]:
        """The pictures with the name of another one, and more that has a number."""

        def has_more(picture: _Picture) -> bool:
            names = (name for name, more in _names(picture, _MASK) if any(map(str.isdigit, more)))
            return any(name in self._by_name for name in names)

        return list(filter(has_more, self._pictures))

    def of(self, mask: _Picture, pairs: Pairs, tree: Tree) -> tuple[Path, Words, Words] | None:
        """The image of a mask, and the words that only the mask's folders and name have."""
        for name, others in _names(mask, _MASK):
            same = [p for p in self._by_path.get((name, mask.folder.own), ()) if p is not mask]
            known = same or [p for p in self._by_name.get(name, ()) if p is not mask]
            found = ((mask.folder.distance(p.folder), p) for p in known)
            near = [(distance, p) for distance, p in found if distance is not None]
            if not near:
                continue
            least = min(distance for distance, _ in near)
            nearest = [picture for distance, picture in near if distance == least]
            image, *more = sorted(nearest, key=lambda p: (len(p.stem), p.file))
            # im1.jpg and im1.png may be one picture; those of different folders only if equal.
            elsewhere = [p.file for p in more if p.file.parent != image.file.parent]
            if elsewhere and not tree.are_copies([image.file, *elsewhere]):
                pairs.unclear = mask.file, image.file, elsewhere[-1]
            words = sorted(mask.folder.words - image.folder.words - mask.folder.numbers)
            return image.file, tuple(words), others
        return None


def _names(picture: _Picture, pattern: re.Pattern) -> Iterator[tuple[Words, Words]]:
    """Names that a picture may share with its partner, the longest first; and the other words.

    The others are words of the pattern at the beginning, and all from one of the pattern on; for
    masks, from any word on: D_7_SP. The name of an image with numbers keeps some.
    """
    stem = picture.stem
    leading = list(takewhile(lambda w: pattern.fullmatch(w) and not w.isdigit(), stem))
    least = int(pattern is _IMAGE and any(map(str.isdigit, stem)))
    for start in dict.fromkeys((0, len(leading))):
        for end in range(len(stem), start, -1):
            name, others = stem[start:end], stem[end : end + 1]
            # nnU-Net's images end in _0000.
            may_end = pattern is _MASK or others in ((), ('0000',)) or _any(pattern, others)
            if may_end and sum(map(str.isdigit, name)) >= least:
                yield name, stem[:start] + stem[end:]
    if len(leading) == len(stem) and picture.folder.parts:
        yield picture.folder.parts[-1], stem  # 7/image.png and 7/mask.png


def _rank(kind: Kind) -> tuple[bool, ...]:
    """Sorts the masks for training first: those of classes, by index, drawn by hand."""
    folders, others = kind
    words = {*folders, *others}
    is_aside = _any(_OF_OBJECTS, words), _any(_COLOURED, words)
    return *is_aside, 'train' not in others, not _any(_BY_HAND, words)


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


def option_for(tree: Tree, image: Path, mask: Path, count: int) -> str:
    """The option that names files such as an image and its mask.

    It has patterns only if they fit: if with them, the two and no fewer than ``count`` images have
    a mask.
    """
    for given in _patterns(*(tree.relative(file) for file in (image, mask))):
        try:
            found = _given(tree, given).masks
        except UserError:
            continue
        if found.get(image) == mask and len(found) >= count:
            return f'`pairs={given!r}`'
    return '`pairs`'


def _patterns(image: PurePath, mask: PurePath) -> Iterator[str]:
    """Patterns with {} for the words that two paths share: for the last ones, then for more."""
    words = [_EDGE.split(str(file.with_suffix(''))) for file in (image, mask)]
    *blocks, _ = SequenceMatcher(None, *words, False).get_matching_blocks()
    for block in reversed(blocks):
        shared = [i for i in range(block.size) if words[0][block.a + i].isalnum()]
        if shared:
            for side, start in zip(words, (block.a, block.b), strict=True):
                side[start + shared[0] : start + shared[-1] + 1] = ['{}']
            yield ' '.join(
                ''.join(side) + file.suffix for side, file in zip(words, (image, mask), strict=True)
            )


def spread(items: Sequence[Content], most: int) -> list[Content]:
    """Some of the items, evenly spread."""
    return list(items[:: max(1, -(-len(items) // most))])
