"""A segmenter's data sets, with the images and masks that mmseg lists: none without the other."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.fileio import list_dir_or_file
from mmengine.registry import DATASETS, DefaultScope

from ptnt_mm.check.class_names import faults_of_names
from ptnt_mm.check.data_sets import Data, ImageFile, as_names, find_data_sets, is_measured
from ptnt_mm.engine.config import explain_build_error, kind_of
from ptnt_mm.utils.findings import Finding, Severity, error, note, report_wrong, sound, warning
from ptnt_mm.utils.many_files import Folders
from ptnt_mm.utils.text import some

_TRIED = 20  # images whose masks are looked for under other names, if none is found

_PREFIXES = "write data_prefix=dict(img_path='images/train', seg_map_path='masks/train')"


@dataclass(frozen=True)
class Pair:
    """The files of an image and its mask, whether or not they are there.

    The mask is None if the data set names no folder of masks.
    """

    image: Path
    mask: Path | None


@dataclass(frozen=True)
class SegmentationData(Data):
    """A data set, the classes it is asked for, and what it lists.

    Attributes:
        built: mmseg's own data set, without a pipeline; None if it was left out or refused.
        refusal: Why it could not be built or read its list; empty if it could.
        pairs: Its images and masks.
    """

    built: Any = None
    refusal: str = ''
    pairs: tuple[Pair, ...] = ()

    IDENTITY = ('img_suffix', 'seg_map_suffix', 'reduce_zero_label', 'ignore_index', 'indices')
    MAKES_PATHS = (
        'data_prefix.img_path, the names in ann_file, which have no ending, and img_suffix'
    )
    REMOVE = 'take them out, and their masks'

    @property
    def is_left_out(self) -> bool:
        """Whether mmseg was not asked for its list."""
        return self.built is None and not self.refusal

    @property
    def has_masks(self) -> bool:
        """Whether it gives masks of classes, as far as is known: some give depths instead."""
        if self.pairs:
            return any(pair.mask is not None for pair in self.pairs)
        return self.built is None or 'seg_map_path' in self.built.data_prefix

    @property
    def is_there(self) -> bool:
        """Whether the files and folders are there that its list is made of."""
        paths = (self.built.ann_file, self.built.data_prefix.get('img_path'))
        return all(Path(path).exists() for path in paths if path)

    @property
    def mask_folder(self) -> Path:
        """Where its masks are."""
        # A class that lists files in its own way may name no folder.
        named = self.built.data_prefix.get('seg_map_path')
        return Path(named) if named else self.pairs[0].mask.parent

    @cached_property
    def images(self) -> list[ImageFile]:
        """All images that mmseg lists."""
        source = ' '.join(map(str, self.data_set.paths()))
        return [ImageFile(self.name, pair.image, source, self.image_loader) for pair in self.pairs]


def loading_of(pipeline: Sequence[Mapping]) -> Mapping | None:
    """The step of a pipeline that loads masks; None if there is none."""
    names = ((step, kind_of(step)) for step in pipeline)
    return next((s for s, name in names if name.startswith('Load') and 'Annotation' in name), None)


def needs_masks(config: Config, split: str) -> bool:
    """Whether a model learns from the masks of a split, or is measured on them."""
    return split == 'train' or is_measured(config, split)


def load(config: Config, splits: tuple[str, ...]) -> tuple[list[SegmentationData], list[Finding]]:
    """Let mmseg list the images of a config's data sets, each once.

    Args:
        config: The config; mmseg is imported.
        splits: Which data loaders count: some of 'train', 'val' and 'test'.

    Returns:
        The data sets, and what was left out.
    """
    data, findings = find_data_sets(SegmentationData, config, splits)
    for i, one in enumerate(data):
        remote = one.settings.get('backend_args') or '://' in str(one.settings.get('data_root'))
        if not any(base.__name__ == 'BaseSegDataset' for base in one.cls.__mro__):
            kind = kind_of(one.settings)
            what = f'{kind} is no BaseSegDataset: its images and masks were not checked'
            findings.append(note(one.name, what))
        elif remote:
            findings.append(note(one.name, 'is not local: its images and masks were not checked'))
        else:
            data[i] = _listed(one)
    return data, findings


def check_lists(data: list[SegmentationData], config: Config) -> Iterator[Finding]:
    """Say how many images mmseg lists for each data set, or why it lists none."""
    for one in data:
        if one.is_left_out:
            continue
        if one.built is not None and not one.pairs and not one.built.data_prefix.get('img_path'):
            yield error(one.name, 'data_prefix names no folder of images', _PREFIXES)
        elif not one.has_masks and any(
            kind_of(loading_of(pipeline) or {}) == 'LoadAnnotations'
            for split, pipeline in one.pipelines.items()
            if needs_masks(config, split)
        ):
            yield error(one.name, 'data_prefix names no folder of masks', _PREFIXES)
        elif one.refusal:
            # Other checks report missing files and wrong class names.
            there = all(path.exists() for path in one.data_set.paths())
            if there and not any(f.severity is Severity.ERROR for f in faults_of_names(one)):
                yield error(one.name, f'the data set cannot be built: {one.refusal}')
        elif one.pairs:
            yield sound(one.name, f'{len(one.pairs)} images')
        elif one.is_there:
            yield error(one.name, *_why_empty(one))


def check_pairs(data: list[SegmentationData]) -> Iterator[Finding]:
    """Look for every mask by listing the folders, and open none."""
    folders = Folders()
    for one in data:
        masks = [pair.mask for pair in one.pairs if pair.mask is not None]
        if not masks or not one.mask_folder.is_dir():
            continue
        missing = folders.missing(masks)
        if not missing:
            yield sound(one.name, f'{len(masks)} masks are there')
        elif len(missing) == len(masks):
            advice = _suffix(one, folders)
        else:
            there = folders.instead_of(missing[0])
            advice = f'there is {there} instead of the first; ' if there else ''
            advice += 'copy them there, or take their images out'
        if missing:
            named = map(folders.described, missing)
            yield from report_wrong(error, one.name, named, len(masks), 'masks not there', advice)
        if len(missing) < len(masks):
            yield from _without_image(one, folders)


def _listed(data: SegmentationData) -> SegmentationData:
    """A data set with what mmseg lists, or why it does not."""
    settings = dict(data.settings, pipeline=[], lazy_init=True, serialize_data=False)
    try:
        with DefaultScope.overwrite_default_scope(data.scope):
            data = replace(data, built=DATASETS.build(settings))
        if data.is_there:
            data.built.full_init()
    except Exception as err:  # constructors may raise anything
        return replace(data, refusal=explain_build_error(err))
    # The data set's class may give the names itself.
    classes = as_names(data.built.metainfo.get('classes')) or data.classes
    masks = ((entry['img_path'], entry.get('seg_map_path')) for entry in data.built.data_list)
    pairs = tuple(Pair(Path(image), None if mask is None else Path(mask)) for image, mask in masks)
    return replace(data, classes=classes, pairs=pairs)


def _why_empty(data: SegmentationData) -> tuple[str, str]:
    """Why a list is empty, and what to do."""
    if (indices := data.settings.get('indices')) is not None:
        return f'indices={indices} leaves no image', 'give others, or none'
    if data.built.ann_file and Path(data.built.ann_file).is_file():
        return f'{data.built.ann_file} names no image', 'write a name on each line'
    folder, suffix = data.built.data_prefix['img_path'], data.built.img_suffix
    what = f'no file in {folder} ends in img_suffix={suffix!r}; there are {_endings(folder)}'
    return what, 'set img_suffix, or data_prefix.img_path'


def _suffix(data: SegmentationData, folders: Folders) -> str:
    """What to set where no mask has the name expected: what follows the images' names there."""
    suffix, found = data.built.seg_map_suffix, Counter()
    for pair in data.pairs[:_TRIED]:
        stem = pair.mask.name.removesuffix(suffix)
        for name in folders.entries(pair.mask.parent):
            ending = name.removeprefix(stem)
            # 'a1.png' is not the mask of 'a'.
            if name.startswith(stem) and ending and not ending[0].isalnum():
                found[ending] += 1
    if found:
        ending, count = found.most_common(1)[0]
        tried = min(len(data.pairs), _TRIED)
        return f'{count} of the first {tried} have one with seg_map_suffix={ending!r}: set that'
    return (
        f'in {data.mask_folder} are {_endings(data.mask_folder)}: data_prefix.seg_map_path, the '
        f'names of the images and seg_map_suffix={suffix!r} must make one path'
    )


def _without_image(data: SegmentationData, folders: Folders) -> Iterator[Finding]:
    """Masks of images that are not there, or that mmseg does not list."""
    if data.built.ann_file or data.settings.get('indices') is not None:
        # With a list, masks of other images are in order.
        return
    folder, suffix = data.mask_folder, data.built.seg_map_suffix
    # Images and masks may lie in one folder.
    expected = {path for pair in data.pairs for path in (pair.image, pair.mask)}
    listed = sorted(list_dir_or_file(folder, False, suffix=suffix, recursive=True))
    spare = [name for name in listed if folder / name not in expected]
    if spare:
        image = spare[0].removesuffix(suffix) + data.built.img_suffix
        there = folders.instead_of(Path(data.built.data_prefix['img_path']) / image)
        ending = data.built.img_suffix
        advice = 'copy their images, too; mmseg silently leaves such masks out'
        if there:
            advice = f'there is {there}, and mmseg lists what ends in {ending!r} alone'
        what = 'masks without image'
        yield from report_wrong(warning, data.name, spare, len(listed), what, advice)


def _endings(folder: str | Path) -> str:
    """The endings of the files in a folder, each with how many have it: '.png (16)'."""
    names: Iterable[str] = list_dir_or_file(folder, False, recursive=True)
    counts = Counter(Path(name).suffix for name in names).most_common()
    return some(f'{ending or "no ending"} ({count})' for ending, count in counts) or 'no files'
