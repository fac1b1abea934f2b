"""Files that belong together, such as images and masks, by what their names have in common.

The path of a mask is that of its image, but for a few words that all masks have, and a few that all
images have: `images/7_image.png` and `masks/7_mask.png`. Which words these are follows from the
files: they are the difference between many pairs of them.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path

from ptnt_mm.labels.tree import split_named

_SAMPLE = 300  # files whose names are compared with others
_NEAR = 500  # other files that each is compared with
_FEW = 5  # files; a word that as many have may name their kind
_MOST = 32  # differences that are tried

_RUN = re.compile(r'[^\W_]+')
_CAMEL = re.compile(r'(?<=[a-z])(?=[A-Z])|(?<=[A-Z\d])(?=[A-Z][a-z])')
_ANNOT = re.compile(r'(?<=train)(?=annot)|(?<=val)(?=annot)|(?<=test)(?=annot)')
_ORDINAL = re.compile(r'^\d+[\W_]+(?=.*[^\W\d_])')
_VERSION = re.compile(r'\d+(?:\.\d+)+')
_NUMBERED = re.compile(r'(\D+)(\d+)|(\d+)(\D+)')

Words = frozenset[str]


@dataclass(frozen=True)
class Name:
    """The words in the path of a file.

    Attributes:
        file: The file.
        words: The words in order, numbers included; `<train>` for a split comes first.
        kinds: The different words, and the suffix of the file.
    """

    file: Path
    words: tuple[str, ...]
    kinds: Words

    def without(self, words: Words) -> tuple[str, ...]:
        """The words that are not among the given ones."""
        return tuple(word for word in self.words if word not in words)


@dataclass(frozen=True)
class Relation:
    """Two groups of files with the same names, but for some words.

    Attributes:
        first: The words that only the files of the first group have.
        second: The words that only those of the second group have.
        pairs: A file of each group with the same name; each file is in one pair at most.
    """

    first: Words
    second: Words
    pairs: tuple[tuple[Path, Path], ...]

    def turned(self) -> 'Relation':
        """The same with the groups exchanged."""
        return Relation(self.second, self.first, tuple((b, a) for a, b in self.pairs))


def name_of(file: Path, folders: Sequence[str], constant: Words = frozenset()) -> Name:
    """The words in the name of a file and in those of the folders above it.

    Args:
        file: The file.
        folders: The names of the folders.
        constant: Words with numbers that name a kind of file, as :func:`constant_words` finds them.
    """
    stem = _words(file.stem, constant)
    above = dict.fromkeys(entry for folder in folders for entry in _folder_words(folder, constant))
    splits = [split for _, split in above]
    # In the name of a file, train may be a part of another word, as in labelTrainIds.
    runs = set(_RUN.findall(file.stem.casefold())) & set(stem)
    are_splits = {word for word in runs if word.isalpha() and split_named(word)}
    splits += [split_named(word) for word in stem if word in are_splits]
    words = [f'<{split}>' for split in dict.fromkeys(filter(None, splits))]
    # aachen/aachen_000019 is the same as aachen_000019; numbers may be those of series.
    words += [w for w, split in above if not split and (w.isdigit() or w not in stem)]
    words += [word for word in stem if word not in are_splits]
    return Name(file, tuple(words), frozenset((*words, file.suffix.lower())))


def without_ordinals(folders: Collection[str]) -> dict[str, str]:
    """The names of folders without the numbers that only sort them: 5_Labels -> Labels.

    A number that tells two folders apart stays, as in 01_GT and 02_GT.
    """
    plain = {folder: _ORDINAL.sub('', folder) for folder in set(folders)}
    counts = Counter(name.casefold() for name in plain.values())
    return {
        folder: name if counts[name.casefold()] == 1 else folder for folder, name in plain.items()
    }


def constant_words(paths: Sequence[Sequence[str]]) -> Words:
    """Words with numbers that many files share: the 1 of manual1 does not name a picture.

    Args:
        paths: For each file, its name without suffix and those of the folders above it.
    """
    counts = Counter(run for path in paths for run in set(chain(*map(_runs, path))))
    least = max(_FEW, len(paths) / 8)
    return frozenset(run for run, count in counts.items() if count >= least and not run.isalpha())


def relations(names: Sequence[Name]) -> list[Relation]:
    """The relations between groups of files, those with the most pairs first."""
    having = defaultdict(list)
    for name in names:
        for word in name.kinds:
            having[word].append(name)
    counts = Counter(_differences(names, having))
    found = [_relation(names, having, *words) for words, _ in counts.most_common(_MOST)]
    return sorted(
        (relation for relation in found if len(relation.pairs) > 1),
        key=lambda relation: (-len(relation.pairs), len(relation.first | relation.second)),
    )


@cache
def _folder_words(folder: str, constant: Words) -> list[tuple[str, str | None]]:
    """The words in the name of a folder, and the splits that they name."""
    # The numbers of v1.2 are no numbers of pictures.
    folder = _VERSION.sub(lambda found: found[0].replace('.', 'x'), folder)
    return [(word, split_named(word)) for word in _words(folder, constant)]


def _words(text: str, constant: Words) -> list[str]:
    """SegmentationClass -> segmentation, class; trainannot -> train, annot; im01 -> im, 01."""
    words = []
    for run in _runs(text):
        parts = None if run in constant else _NUMBERED.fullmatch(run)
        words += filter(None, parts.groups()) if parts else [run]
    return words


@lru_cache(maxsize=10000)  # mostly of folders
def _runs(text: str) -> list[str]:
    return _RUN.findall(_ANNOT.sub(' ', _CAMEL.sub(' ', text)).casefold())


def is_split(word: str) -> bool:
    """Whether a word of a name stands for a split."""
    return word.startswith('<')


def _differences(
    names: Sequence[Name], having: dict[str, list[Name]]
) -> Iterator[tuple[Words, Words]]:
    """The words by which some of the files differ from others with the same name."""
    for name in random.Random(0).sample(names, min(_SAMPLE, len(names))):
        near = _near(name, having)
        differences = {_difference(name, other) for other in near} - {None}
        for words in differences:
            # A mask of another place differs in both.
            if not any(_is_part(other, words) for other in differences):
                yield min(words, words[::-1], key=lambda pair: tuple(map(sorted, pair)))


def _near(name: Name, having: dict[str, list[Name]]) -> list[Name]:
    """The files with the rare words of a file: those that its partner shares are among them."""
    rare, *others = sorted(set(name.words), key=lambda word: len(having[word]))
    near = having[rare]
    for word in others:
        if len(near) > _NEAR:
            near = [other for other in near if word in other.kinds]
        elif len(near) + len(having[word]) <= _NEAR:
            near = near + having[word]
    return near[:_NEAR]


def _is_part(words: tuple[Words, Words], others: tuple[Words, Words]) -> bool:
    """Whether a difference is a part of another one, on both sides."""
    return words[0] < others[0] and words[1] < others[1]


def _difference(name: Name, other: Name) -> tuple[Words, Words] | None:
    """The words that only one of two files has; None if the rest of their names is not equal."""
    if name.file == other.file:
        return None
    suffixes = frozenset((name.file.suffix.lower(), other.file.suffix.lower()))
    first, second = name.kinds - other.kinds - suffixes, other.kinds - name.kinds - suffixes
    # Two numbers are two pictures, and two splits have different pictures.
    for is_own in (str.isdigit, is_split):
        if any(map(is_own, first)) and any(map(is_own, second)):
            return None
    rest = name.without(first)
    if all(map(is_split, rest)) or rest != other.without(second):
        return None
    if not first and not second:
        first, second = name.kinds - other.kinds, other.kinds - name.kinds
    return (first, second) if first or second else None


def _relation(
    names: Sequence[Name], having: dict[str, list[Name]], first: Words, second: Words
) -> Relation:
    """All pairs of files that differ by certain words."""
    groups = [
        _by_rest(_with_all(names, having, own), own, others)
        for own, others in ((first, second), (second, first))
    ]
    shared = sorted(groups[0].keys() & groups[1].keys())
    return Relation(first, second, tuple((groups[0][rest], groups[1][rest]) for rest in shared))


def _with_all(
    names: Sequence[Name], having: dict[str, list[Name]], words: Words
) -> Collection[Name]:
    """The files that have all of some words."""
    fewest = min((having[word] for word in words), key=len, default=names)
    return [name for name in fewest if words <= name.kinds]


def _by_rest(names: Iterable[Name], own: Words, others: Words) -> dict[tuple[str, ...], Path]:
    """The files without the other words, by the rest of their names; none of two that are equal."""
    found: dict[tuple[str, ...], list[Path]] = defaultdict(list)
    for name in names:
        if not name.kinds & others:
            found[name.without(own)].append(name.file)
    return {
        rest: min(files)
        for rest, files in found.items()
        # im1.jpg and im1.png may be the same picture; those of different folders are not.
        if len({file.with_suffix('') for file in files}) == 1
    }
