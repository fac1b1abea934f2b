"""The data sets of a config, without duplicates, with their classes; missing files."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from mmengine.registry import DATASETS, TRANSFORMS, DefaultScope

from ptnt_mm.utils.findings import Finding, error, note, ok
from ptnt_mm.utils.text import suggest, unknown_name
from ptnt_mm.workbench.config.recognisers import how_to_get
from ptnt_mm.workbench.config.registered import arguments_of, registered_names
from ptnt_mm.workbench.config.settings import type_name
from ptnt_mm.workbench.config.view import ConfigView, DataSet

_FEW = 4  # images of a data set that are tried


@dataclass(frozen=True)
class ImageFile:
    """An image as its data set lists it.

    Attributes:
        path: The file; None if it is remote.
        size: (width, height) in pixels as annotated; None if unknown.
        mask: The mask of its classes; None without one.
    """

    path: Path | None
    size: tuple[int, int] | None = None
    mask: Path | None = None


@dataclass
class LoadedDataset:
    """A data set and the classes in use.

    Attributes:
        data_set: Its settings, and the pipeline of the first split that uses it.
        pipelines: The pipelines of all splits that use it: 'train', 'val', 'test'.
        scope: The config's default scope, in which the host builds it.
        cls: Its class, of the host library or registered there.
        stated: The class names in the config, of any type; None if there are none.
        classes: The class names.
        built: The host's own data set, without a pipeline; None if it was skipped or refused.
        why_not_built: Why the host could not build it or list its images; empty if it could.
        images: All images that it lists.
        sample_entries: The host's entries for a few of them, evenly spread; empty if skipped.
    """

    data_set: DataSet
    pipelines: dict[str, tuple[dict, ...]]
    scope: str
    cls: type
    stated: object
    classes: tuple[str, ...]
    built: Any = None
    why_not_built: str = ''
    images: list[ImageFile] = field(default_factory=list)
    sample_entries: list[dict] = field(default_factory=list)

    @property
    def settings(self) -> Mapping:
        """Settings of the data set."""
        return self.data_set.settings

    @property
    def name(self) -> str:
        """The splits as text."""
        return ' and '.join(self.pipelines)

    @property
    def trains(self) -> bool:
        """Whether a model learns from it."""
        return 'train' in self.pipelines

    @property
    def is_unlabelled(self) -> bool:
        """Whether mmdet loads no objects, as of the second data set of semi-supervised training."""
        return any(type_name(step) == 'LoadEmptyAnnotations' for step in self.data_set.pipeline)

    @property
    def is_left_out(self) -> bool:
        """Whether the host's list of images was not used."""
        return self.built is None and not self.why_not_built

    def is_a(self, name: str) -> bool:
        """Whether its class is the one of this name, or a subclass."""
        return any(base.__name__ == name for base in self.cls.__mro__)

    @cached_property
    def image_loader(self) -> object:
        """The host's transform that loads its images; None if unknown."""
        for step in self.data_set.pipeline:
            reads = type_name(step) in ('LoadImageFromFile', 'LoadImageInRange')
            if reads and not step.get('backend_args'):
                # Another check reports invalid settings.
                with DefaultScope.overwrite_default_scope(self.scope), suppress(Exception):
                    return TRANSFORMS.build(dict(step))
        return None

    @property
    def fetches_files(self) -> bool:
        """Whether its class downloads missing files."""
        return 'download' in arguments_of(self.cls).parameters

    @cached_property
    def would_fetch(self) -> bool:
        """Whether files are missing that the host would download; nothing is downloaded."""
        if not self.fetches_files or not self.settings.get('download', True):
            return False
        settings = dict(self.settings, pipeline=[], download=False)
        with DefaultScope.overwrite_default_scope(self.scope):
            try:
                DATASETS.build(settings)
            except RuntimeError:
                return True
        return False

    def build(self) -> None:
        """Let the host build it without a pipeline; exceptions of its constructor propagate."""
        settings = dict(self.settings, pipeline=[], lazy_init=True, serialize_data=False)
        with DefaultScope.overwrite_default_scope(self.scope):
            self.built = DATASETS.build(settings)


def find_data_sets(
    kind: type[LoadedDataset], view: ConfigView, splits: tuple[str, ...]
) -> tuple[list[Any], list[Finding]]:
    """Describe the data sets of a config; one that several splits share is listed once.

    Returns:
        The data sets as a ``kind``, and an error for each with an unknown class.
    """
    found: dict[str, LoadedDataset] = {}
    findings = []
    scope = view.scope
    for split in splits:
        for data_set in view.split(split).data_sets:
            settings = data_set.settings
            key = identity(settings, split == 'train')
            if key in found:
                found[key].pipelines.setdefault(split, data_set.pipeline)
                continue
            cls = data_set.cls
            if not isinstance(cls, type):
                known = sorted(registered_names('dataset', scope))
                what = unknown_name('type', settings.get('type'), known)
                findings.append(error(split, what))
                continue
            stated = data_set.stated_classes
            # The names in the config, or those of its class.
            default = getattr(cls, 'METAINFO', {}).get('classes', ())
            names = as_names(default if stated is None else stated)
            found[key] = kind(data_set, {split: data_set.pipeline}, scope, cls, stated, names)
    return list(found.values()), findings


def identity(settings: Mapping, trains: bool) -> str:
    """A key that is equal for the same data, whatever the pipeline; training data is separate."""
    return repr((trains, dict(settings, pipeline=None)))


def evenly_spread(entries: Sequence) -> list:
    """A few entries of many."""
    return list(entries[:: max(len(entries) // _FEW, 1)])[:_FEW]


def check_files(view: ConfigView, splits: tuple[str, ...]) -> Iterator[Finding]:
    """Check that the annotation files and folders of data loaders and evaluators exist."""
    for split in splits:
        expected = view.split(split).files
        missing: dict[Path, list[Path]] = {}
        for path in expected:
            if not path.exists():
                missing.setdefault(_highest_missing(path), []).append(path)
        for path, files in missing.items():
            suggestion = ''
            if files != [path]:
                inside = ', '.join(file.relative_to(path).as_posix() for file in files)
                suggestion = f'; expected in it: {inside}'
            elif path.parent.is_dir():
                names = [other.name for other in path.parent.iterdir()]
                suggestion = suggest(path.name, names, '; nearest is {!r}')
            advice = f'paths are relative to the current folder; {how_to_get(files[0])}'
            yield error(split, f'{path} does not exist{suggestion}', advice)
        if expected and not missing:
            yield ok(split, ', '.join(map(str, expected)))


def _highest_missing(path: Path) -> Path:
    """A path that does not exist, or the highest of its folders that does not."""
    return next(each for each in (*reversed(path.parents), path) if not each.exists())


def misread_names(data: LoadedDataset) -> Iterator[Finding]:
    """Report class names that MMEngine misinterprets or does not read."""
    stated = data.data_set.metainfo
    if 'CLASSES' in stated and 'classes' not in stated:
        yield error(data.name, 'nothing reads metainfo.CLASSES', 'write classes=(...)')
    elif isinstance(data.stated, str):
        what = f'metainfo.classes is the text {data.stated!r}, not a tuple of names'
        yield error(data.name, what, f'a single class needs its comma: classes=({data.stated!r},)')
    elif data.stated is not None and not isinstance(data.stated, (list, tuple)):
        yield error(data.name, f'metainfo.classes is {data.stated!r}', 'expected names: (...,)')
    elif data.stated is None and not data.classes:
        # The data set's class may read them when it is built.
        yield note(data.name, 'metainfo.classes is missing: class names were not compared')
    elif not data.classes:
        yield error(data.name, 'metainfo.classes is empty', "write classes=('name', ...)")


def as_names(stated: object) -> tuple[str, ...]:
    """Class names as a tuple; a string becomes a tuple of one name."""
    if isinstance(stated, str):
        return (stated,)
    return tuple(map(str, stated)) if isinstance(stated, (list, tuple)) else ()
