"""The split and the classes of a previous project, which a new one with more images keeps."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.config.read import read_config
from ptnt_mm.workbench.config.zoo import PROJECT_CONFIG
from ptnt_mm.workbench.data.coco import read_coco
from ptnt_mm.workbench.data.copies import digests_of
from ptnt_mm.workbench.project.write import LABELS


@dataclass(frozen=True)
class PreviousProject:
    """A project that was created before.

    Attributes:
        folder: Its folder.
        classes: The names of its classes.
        splits: The split of each of its images: 'train', 'val' or 'test'.
    """

    folder: Path
    classes: tuple[str, ...]
    splits: Mapping[Path, str]

    def splits_of(self, paths: Sequence[Path], digests: Mapping[Path, bytes]) -> dict[Path, str]:
        """The splits of those images of a new project that it has, too.

        An image is the same in the same place, or if its bytes are the same; where the previous
        image is gone, if no other one has its name.

        Args:
            paths: The images of the new project.
            digests: The SHA-256 of the bytes of each.
        """
        places = {path: os.path.realpath(path) for path in paths}
        by_place = {os.path.realpath(path): split for path, split in self.splits.items()}
        taken = set(places.values())
        others = [path for path in self.splits if os.path.realpath(path) not in taken]
        there = [path for path in others if path.is_file()]
        hashed = digests_of(there, 'Hashing previous images')
        by_digest = {digest: self.splits[path] for path, digest in hashed.items()}
        gone = set(others) - set(there)
        by_name = {path.name: self.splits[path] for path in _with_own_name(gone)}
        unique = set(_with_own_name(paths))
        found = {
            path: by_place.get(place)
            or by_digest.get(digests[path])
            or (by_name.get(path.name) if path in unique else None)
            for path, place in places.items()
        }
        return {path: split for path, split in found.items() if split is not None}

    def ordered(self, classes: Sequence[str]) -> list[str]:
        """The classes of a new project in the order of this one, with new ones last.

        A model of this project then keeps its outputs.
        """
        known = [name for name in self.classes if name in classes]
        return known + [name for name in classes if name not in known]


def read_previous(folder: Path) -> PreviousProject:
    """Read the labels of a project.

    Raises:
        UserError: if it is not a project, or its config or labels cannot be read.
    """
    if not (folder / PROJECT_CONFIG).is_file() or not (folder / LABELS).is_dir():
        raise UserError(f'`like={folder}`: expected a project, a folder created by ptnt new')
    config = read_config(folder / PROJECT_CONFIG)
    images, classes = config.get('images'), config.get('classes')
    if not isinstance(images, str) or not isinstance(classes, (list, tuple)):
        raise UserError(f'{config.filename} has no `images` and `classes`, as ptnt new writes them')
    splits: dict[Path, str] = {}
    for split in ('train', 'val', 'test'):
        for name in _names(folder / LABELS, split):
            splits[Path(images, name)] = split
    return PreviousProject(folder, tuple(classes), splits)


def _names(labels: Path, split: str) -> Iterable[str]:
    """The names of the images of a split; none if a project does not have it."""
    if (file := labels / f'{split}.json').is_file():
        images = read_coco(file).images.values()
        return [image.get('tile_of') or image['file_name'] for image in images]
    if not (file := labels / f'{split}.txt').is_file():
        return []
    try:
        lines = file.read_text(encoding='utf-8').splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f'{file} cannot be read: {error}; expected the list that ptnt new wrote, in UTF-8: '
            'restore it, or create the project without `like`'
        ) from error
    # Those of classifiers end with the number of a class.
    has_only_names = (labels / 'masks').is_dir()
    return [line if has_only_names else line.rpartition(' ')[0] for line in lines]


def _with_own_name(paths: Iterable[Path]) -> list[Path]:
    """Those whose name no other one has."""
    paths = list(paths)
    counts = Counter(path.name for path in paths)
    return [path for path in paths if counts[path.name] == 1]
