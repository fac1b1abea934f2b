"""Lists of images and masks: not empty, and each image with its mask."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mmengine.config import Config
from mmengine.fileio import list_dir_or_file

from ptnt_mm.check.many_files import Folders
from ptnt_mm.check.report import of_kind
from ptnt_mm.check.segmentation.classes import faults
from ptnt_mm.check.segmentation.data import (
    Pair,
    SegmentationData,
    is_there,
    loading_of,
    needs_masks,
)
from ptnt_mm.engine.config import kind_of
from ptnt_mm.utils.findings import Finding, Severity, error, sound, warning
from ptnt_mm.utils.text import some

_TRIED = 20
"""Images whose names are looked for in a folder of masks that has none of the names expected."""

_PREFIXES = "write data_prefix=dict(img_path='images/train', seg_map_path='masks/train')"


def check_lists(data: list[SegmentationData], config: Config) -> Iterator[Finding]:
    """Say how many images mmseg lists for each data set, or why it lists none."""
    for one in data:
        if one.is_left_out:
            continue
        if one.built is not None and not one.pairs and not one.built.data_prefix.get('img_path'):
            yield error(one.name, 'data_prefix names no folder of images', _PREFIXES)
        elif not one.has_masks and _reads_masks(one, config):
            yield error(one.name, 'data_prefix names no folder of masks', _PREFIXES)
        elif one.refusal:
            # Of files and of class names it is said where they are looked at.
            there = all(path.exists() for path in one.data_set.paths())
            if there and not of_kind(faults(one), Severity.ERROR):
                yield error(one.name, f'the data set cannot be built: {one.refusal}')
        elif one.pairs:
            yield sound(one.name, f'{len(one.pairs)} images')
        elif is_there(one):
            yield _empty(one)


def check_pairs(data: list[SegmentationData]) -> Iterator[Finding]:
    """Look for every mask by listing the folders, and open none."""
    folders = Folders()
    for one in data:
        masks = [pair.mask for pair in one.pairs if pair.mask is not None]
        if not masks or not _mask_folder(one).is_dir():
            continue
        missing = folders.missing(masks)
        if missing:
            named = some(map(folders.described, missing))
            what = f'{len(missing)} of {len(masks)} masks not there: {named}'
            all_missing = len(missing) == len(masks)
            advice = _endings(one, folders) if all_missing else _instead(missing[0], folders)
            yield error(one.name, what, advice)
        else:
            yield sound(one.name, f'{len(masks)} masks are there')
        if len(missing) < len(masks):
            yield from _without_image(one, folders)


def _reads_masks(data: SegmentationData, config: Config) -> bool:
    """Whether a pipeline opens the masks that mmseg lists, for learning or for measuring."""
    needed = (loading_of(data.pipelines[s]) or {} for s in data.splits if needs_masks(config, s))
    return any(kind_of(loading) == 'LoadAnnotations' for loading in needed)


def _mask_folder(data: SegmentationData) -> Path:
    # A class that lists files in its own way may name no folder.
    named = data.built.data_prefix.get('seg_map_path')
    return Path(named) if named else data.pairs[0].mask.parent


def _empty(data: SegmentationData) -> Finding:
    """Why a list is empty."""
    if (indices := data.data_set.settings.get('indices')) is not None:
        return error(data.name, f'indices={indices} leaves no image', 'give others, or none')
    if data.built.ann_file and Path(data.built.ann_file).is_file():
        return error(
            data.name, f'{data.built.ann_file} names no image', 'write a name on each line'
        )
    folder, suffix = data.built.data_prefix['img_path'], data.built.img_suffix
    there = _counted(Path(name).suffix for name in list_dir_or_file(folder, False, recursive=True))
    what = f'no file in {folder} ends in img_suffix={suffix!r}; there are {there}'
    return error(data.name, what, 'set img_suffix, or data_prefix.img_path')


def _instead(missing: Path, folders: Folders) -> str:
    there = folders.instead_of(missing)
    instead = f'there is {there} instead of the first; ' if there else ''
    return f'{instead}copy them there, or take their images out'


def _endings(data: SegmentationData, folders: Folders) -> str:
    """What to set where no mask has the name expected: what follows the images' names there."""
    found = Counter(
        ending for pair in data.pairs[:_TRIED] for ending in _endings_of(pair, data, folders)
    )
    if found:
        ending, count = found.most_common(1)[0]
        tried = min(len(data.pairs), _TRIED)
        return f'{count} of the first {tried} have one with seg_map_suffix={ending!r}: set that'
    folder = _mask_folder(data)
    names = list_dir_or_file(folder, False, recursive=True)
    there = _counted(Path(name).suffix for name in names)
    return (
        f'in {folder} are {there}: data_prefix.seg_map_path, the names of the images and '
        f'seg_map_suffix={data.built.seg_map_suffix!r} must make one path'
    )


def _endings_of(pair: Pair, data: SegmentationData, folders: Folders) -> Iterator[str]:
    """What follows an image's name in the folder of its mask."""
    stem = pair.mask.name.removesuffix(data.built.seg_map_suffix)
    for name in folders.entries(pair.mask.parent):
        ending = name.removeprefix(stem)
        # 'a1.png' is not the mask of 'a'.
        if name.startswith(stem) and ending and not ending[0].isalnum():
            yield ending


def _without_image(data: SegmentationData, folders: Folders) -> Iterator[Finding]:
    """Masks of images that are not there, or that mmseg does not list."""
    if data.built.ann_file or data.data_set.settings.get('indices') is not None:
        # A list chooses some of the images.
        return
    folder, suffix = _mask_folder(data), data.built.seg_map_suffix
    # Images and masks may lie in one folder.
    expected = {path for pair in data.pairs for path in (pair.image, pair.mask)}
    listed = sorted(list_dir_or_file(folder, False, suffix=suffix, recursive=True))
    spare = [name for name in listed if folder / name not in expected]
    if not spare:
        return
    image = spare[0].removesuffix(suffix) + data.built.img_suffix
    there = folders.instead_of(Path(data.built.data_prefix['img_path']) / image)
    if there:
        advice = f'there is {there}, and mmseg lists what ends in {data.built.img_suffix!r} alone'
    else:
        advice = 'copy their images, too; mmseg leaves such masks out unsaid'
    yield warning(
        data.name, f'{len(spare)} of {len(listed)} masks without image: {some(spare)}', advice
    )


def _counted(endings: Iterator[str]) -> str:
    """Endings, each with how many files have it: '.png (16)'."""
    counts = Counter(endings).most_common()
    return some(f'{ending or "no ending"} ({count})' for ending, count in counts) or 'no files'
