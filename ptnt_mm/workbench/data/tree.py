"""The files of a data set, listed once, and the search for images named in label files."""

import filecmp
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import takewhile
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from ptnt_mm.deploy.decoding import FORMATS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import first_few, name_key, printable
from ptnt_mm.workbench.data.encodings import as_utf8
from ptnt_mm.workbench.data.many_files import grouped
from ptnt_mm.workbench.data.predictions import FILE, LABELS
from ptnt_mm.workbench.data.walk import walk

_SPLITS = {
    'train': ('train', 'training', 'trainset', 'trn'),
    'val': ('val', 'valid', 'validate', 'validation', 'valset', 'dev', 'eval'),
    'test': ('test', 'testing', 'testset', 'tst'),
}
_USUAL = ('images', 'jpegimages')
_NO_IMAGES = re.compile(
    r'(.*(mask|label|annotation|segmentation|overlay|visual|trimap).*|gt|runs|results?|predict.*)'
)
"""Folders of pictures that may have the names of images."""

_SPLIT_OF = {word: split for split, words in _SPLITS.items() for word in words}


def require_folder(root: Path) -> None:
    """Raise a UserError if the data is not in a folder."""
    if not root.is_dir():
        what = 'is a file: pass the folder with images and labels'
        raise UserError(f'{root} {what if root.exists() else "does not exist"}')


class Tree:
    """A folder of images and labels with a listing of its files, without hidden ones.

    Args:
        root: The folder.
        pairs: The names of images and their masks, as two patterns; None to find them.
        settings: YOLO's data.yaml that describes the data; None to find it.

    Attributes:
        results: JSON files of ``ptnt infer``; neither they nor their pictures are listed.
        copies: Images that are not used because an equal one of their name is.

    Raises:
        UserError: if it does not exist, is not a folder, or contains no file.
    """

    def __init__(self, root: Path, pairs: str | None = None, settings: Path | None = None):
        require_folder(root)
        self.root = Path(os.path.abspath(root))
        self.pairs = pairs
        self.settings = settings and Path(os.path.abspath(settings))
        self.results: list[Path] = []
        self.copies: dict[Path, Path] = {}
        self.files = sorted(self._walk())
        if not self.files:
            what = 'contains only results of ptnt infer' if self.results else 'is empty'
            raise UserError(f'{root} {what}: expected images and labels')
        self._containing: dict[tuple, list[Path]] = {}

    @cached_property
    def images(self) -> list[Path]:
        """The files that are images by their suffix."""
        return [file for file in self.files if file.suffix.lower() in FORMATS]

    @cached_property
    def _by_name(self) -> dict[str, list[Path]]:
        return grouped((name_key(image.name), image) for image in self.images)

    @cached_property
    def _by_stem(self) -> dict[str, list[Path]]:
        return grouped((name_key(image.stem), image) for image in self.images)

    def with_stem(self, stem: str) -> list[Path]:
        """The images with a name, whatever its case and their suffix."""
        return self._by_stem.get(name_key(stem), [])

    def name_of(self, image: Path) -> str:
        """The name of an image, or its path in this folder if others have the name."""
        alone = len(self._by_name.get(name_key(image.name), ())) < 2
        return image.name if alone else str(self.relative(image))

    def with_suffix(self, *suffixes: str) -> list[Path]:
        """The files with one of these suffixes, in lower case."""
        return [file for file in self.files if file.suffix.lower() in suffixes]

    def containing(self, suffix: str, *patterns: bytes, without: bytes | None = None) -> list[Path]:
        """The files with a suffix and a certain content; those that cannot be read are skipped.

        Args:
            suffix: In lower case, such as '.json'.
            patterns: Regular expressions that must all match somewhere.
            without: A regular expression that must not match anywhere, if any.
        """
        key = suffix, patterns, without
        if key not in self._containing:
            self._containing[key] = []
            for file in self.with_suffix(suffix):
                try:
                    content = as_utf8(file.read_bytes())
                except (OSError, UnicodeDecodeError):
                    continue
                is_found = all(re.search(pattern, content) for pattern in patterns)
                if is_found and not (without and re.search(without, content)):
                    self._containing[key].append(file)
        return self._containing[key]

    def is_predicted(self, file: Path) -> bool:
        """Whether a label file is in a folder for those that ``ptnt infer`` writes."""
        return bool(self.results) and not self.predicted.isdisjoint(file.parents)

    @cached_property
    def predicted(self) -> set[Path]:
        """The folders for the label files that ``ptnt infer`` writes."""
        return {results.with_name(LABELS) for results in self.results}

    def without_predictions(self) -> 'Tree':
        """The same folder without the labels that ``ptnt infer`` wrote."""
        tree = Tree(self.root, self.pairs, self.settings)
        tree.files = [file for file in tree.files if not self.is_predicted(file)]
        return tree

    def cut_off(self) -> list[Path]:
        """The JSON and XML files whose end is missing."""
        ends = {'.json': (b'}', b']'), '.xml': (b'>',)}
        files = self.with_suffix(*ends)
        return [file for file in files if not _end(file).endswith(ends[file.suffix.lower()])]

    def relative(self, path: Path) -> PurePosixPath:
        """A path below the folder, relative to it."""
        return PurePosixPath(*path.parts[len(self.root.parts) :])

    def first_few(self, paths: Iterable[Path], number: int = 5) -> str:
        """The first few of some paths below the folder, as text."""
        return first_few((str(self.relative(path)) for path in paths), number)

    def folders(self, path: Path) -> tuple[str, ...]:
        """The names of the folders on the way to a file, from the top."""
        return path.parts[len(self.root.parts) : -1]

    def holds(self, path: Path) -> bool:
        """Whether a path, with '..' resolved, is a file or folder inside this one."""
        return Path(os.path.normpath(path)).is_relative_to(self.root) and path.exists()

    def split_of(self, path: Path) -> str | None:
        """The split in the name of the nearest folder above a file."""
        return next(filter(None, map(split_named, reversed(self.folders(path)))), None)

    def find_image(self, name: str, near: Path, split: str | None = None) -> Path | None:
        """Find the image that a label file refers to; never one outside this folder.

        The path is tried unchanged, relative to the label file and to the folder; then its last
        parts, since label files contain old locations of images; then other suffixes; then all
        that as the path of an address, whose characters may be encoded.

        Args:
            name: Name in the label file; may be a path on another machine.
            near: The folder of the label file.
            split: Split of the label file, which decides between images with the same name.
        """
        return self._find(name, near, split) or self._find(_path_of_address(name), near, split)

    def _find(self, name: str, near: Path, split: str | None) -> Path | None:
        parts = [part for part in re.split(r'[\\/]+', name) if part not in ('', '.')]
        if not parts:
            return None
        for folder in (near, self.root):
            path = Path(os.path.normpath(folder.joinpath(*parts)))
            if path.suffix.lower() in FORMATS and self.holds(path) and path.is_file():
                return path
        last = PurePosixPath(parts[-1])  # 'v1.0' has no suffix
        stem = name_key(last.stem if last.suffix.lower() in FORMATS else last.name)
        known = self._by_name.get(name_key(parts[-1])) or self._by_stem.get(stem) or []
        known = [image for image in known if not self._replaces(image, parts, near)]
        return self._nearest(known, [part for part in parts if part != '..'], near, split)

    def _replaces(self, image: Path, parts: list[str], near: Path) -> bool:
        """Whether an image is a mask or a result of the image that a label file names.

        Its folder tells, unless the label file is in it or names it. But ``labelled`` may also hold
        the images themselves, with names that no other folder has.
        """
        named = set(_folded((*parts, *near.parts)))
        if not any(map(_NO_IMAGES.fullmatch, set(_folded(self.folders(image))) - named)):
            return False
        is_other = image.suffix.lower() != PurePosixPath(parts[-1]).suffix.lower()
        is_elsewhere = len(parts) > 1 and bool(self._outside)
        return is_other or is_elsewhere or image.parent in self._companions

    @cached_property
    def _outside(self) -> set[str]:
        """The names of images that are in no folder of masks or results, without suffix."""
        return {name_key(image.stem) for image in self.images if not self._is_aside(image)}

    @cached_property
    def _companions(self) -> set[Path]:
        """Folders of masks or results, most of whose images have the name of one outside."""
        aside = grouped((image.parent, image) for image in filter(self._is_aside, self.images))
        return {
            folder
            for folder, images in aside.items()
            if sum(name_key(image.stem) in self._outside for image in images) * 2 > len(images)
        }

    def _is_aside(self, image: Path) -> bool:
        return any(map(_NO_IMAGES.fullmatch, _folded(self.folders(image))))

    def _nearest(
        self, images: list[Path], parts: list[str], near: Path, split: str | None
    ) -> Path | None:
        """The image whose folders fit best; None if several that differ fit equally well."""

        def fit(image: Path) -> tuple[int, bool, int, int, bool, bool]:
            same = _common_end(image.parts[:-1], parts[:-1])
            of_split = split is not None and self.split_of(image) == split
            # Annotations/a/1.xml means images/a/1.jpg.
            parallel = _common_end(self.folders(image), self.folders(near / 'file'))
            common = len(os.path.commonpath([image.parent, near]))
            is_usual = image.parent.name.casefold() in _USUAL
            return same, of_split, parallel, common, is_usual, image.name == parts[-1]

        best = max(map(fit, images), default=None)
        fitting = [image for image in images if fit(image) == best]
        return fitting[0] if fitting and self.are_copies(fitting) else None

    def are_copies(self, images: Sequence[Path]) -> bool:
        """Whether all images equal the first; they are then listed as its copies."""
        first, *others = images
        with suppress(OSError):
            if all(filecmp.cmp(first, other, shallow=False) for other in others):
                self.copies |= dict.fromkeys(others, first)
                return True
        return False

    def why_not_found(self, name: str, near: Path) -> str:
        """Why :meth:`find_image` found nothing."""
        shown = printable(name)
        base = name_key(re.split(r'[\\/]+', name)[-1])
        several = self._by_name.get(base) or self._by_stem.get(PurePosixPath(base).stem) or []
        if len(several) > 1:
            where = self.first_few(several)
            return f'{shown}: {len(several)} different images have this name: {where}'
        path = Path(os.path.normpath(near / name.replace('\\', '/')))
        leaves = not path.is_relative_to(self.root)
        return f'{shown} leads out of {self.root}' if leaves else f'{shown} does not exist'

    def overview(self) -> str:
        """Numbers of files by suffix: '364 .jpg, 364 .xml and 4 .txt'."""
        counts = Counter(file.suffix.lower() or 'without suffix' for file in self.files)
        ranked = counts.most_common()
        listed = ', '.join(f'{count:,} {suffix}' for suffix, count in ranked[:6])
        return listed + (f', {len(ranked) - 6} other kinds' if len(ranked) > 6 else '')

    def _walk(self) -> Iterator[Path]:
        for folder, names, has_results in walk(self.root):
            if has_results:
                self.results.append(folder / FILE)
                names.remove(FILE)
            yield from (folder / name for name in names)


def _common_end(one: Sequence[str], other: Sequence[str]) -> int:
    """The number of names at the end of two paths that are equal, whatever their case."""
    pairs = zip(reversed(_folded(one)), reversed(_folded(other)), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _path_of_address(name: str) -> str:
    """The path of an address, or of a path with characters like '%20'; empty for others."""
    if '://' in name:
        return unquote(re.sub(r'[?#].*', '', name))
    return unquote(name) if '%' in name else ''


def _folded(names: Iterable[str]) -> list[str]:
    return [name.casefold() for name in names]


def _end(file: Path) -> bytes:
    """The last bytes of a file without the spaces after them; empty if it cannot be read."""
    try:
        with file.open('rb') as stream:
            stream.seek(-min(file.stat().st_size, 100), os.SEEK_END)
            return stream.read().rstrip(b' \t\r\n\0')  # also in UTF-16
    except OSError:
        return b''


def split_named(name: str) -> str | None:
    """The split in the name of a folder or list, such as 'train2017' and 'valid'."""
    return _SPLIT_OF.get(re.sub(r'[\d_\-. ]+$', '', name.casefold()))


def split_in(name: str) -> str | None:
    """The first split among the words of a folder's name, such as 'val_images'."""
    return next(_splits_in(name), None)


def split_of_all(file: Path) -> str | None:
    """The split of all images in a label file, by its name, such as 'instances_val2017.json'.

    None if it names several, as in 'labels_train_val.json'.
    """
    found = set(_splits_in(file.stem))
    return found.pop() if len(found) == 1 else None


def _splits_in(name: str) -> Iterator[str]:
    return filter(None, map(split_named, re.split(r'[_\-. ]+', name)))
