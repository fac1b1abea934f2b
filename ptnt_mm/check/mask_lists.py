"""A segmenter's data sets, with the pairs of images and masks that mmseg lists."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mmengine.fileio import list_dir_or_file

from ptnt_mm.check.data_sets import LoadedDataset
from ptnt_mm.check.image_lists import check_list, endings
from ptnt_mm.config.settings import type_name
from ptnt_mm.config.view import ConfigView
from ptnt_mm.utils.findings import Finding, Severity, error, ok, report_wrong
from ptnt_mm.utils.many_files import Folders
from ptnt_mm.utils.text import counted, first_few

_PREFIXES = "write data_prefix=dict(img_path='images/train', seg_map_path='masks/train')"


def masks_of(data: LoadedDataset) -> list[Path]:
    """The masks of a data set's images, whether or not they exist."""
    return [image.mask for image in data.images if image.mask is not None]


def has_masks(data: LoadedDataset) -> bool:
    """Whether a data set has class masks, as far as is known: some have depths instead."""
    if data.images:
        return bool(masks_of(data))
    return data.built is None or 'seg_map_path' in data.built.data_prefix


def loading_of(pipeline: Sequence[Mapping]) -> Mapping:
    """The step of a pipeline that loads masks; empty if there is none."""
    names = ((step, type_name(step)) for step in pipeline)
    return next((s for s, name in names if name.startswith('Load') and 'Annotation' in name), {})


def needs_masks(view: ConfigView, split: str) -> bool:
    """Whether the masks of a split are used for training or evaluation."""
    return split == 'train' or view.split(split).is_measured


def check_lists(data: list[LoadedDataset], view: ConfigView) -> Iterator[Finding]:
    """Report the number of images that mmseg lists for each data set, or why there are none."""
    for dataset in data:
        if dataset.is_left_out:
            continue
        if (
            dataset.built is not None
            and not dataset.images
            and not dataset.built.data_prefix.get('img_path')
        ):
            yield error(dataset.name, 'data_prefix has no folder of images', _PREFIXES)
        elif not has_masks(dataset) and any(
            type_name(loading_of(pipeline)) == 'LoadAnnotations'
            for split, pipeline in dataset.pipelines.items()
            if needs_masks(view, split)
        ):
            yield error(dataset.name, 'data_prefix has no folder of masks', _PREFIXES)
        else:
            yield from check_list(dataset)


def check_pairs(data: list[LoadedDataset]) -> Iterator[Finding]:
    """Check that every mask exists, without opening any."""
    folders = Folders()
    for dataset in data:
        masks = masks_of(dataset)
        if not masks or not _mask_folder(dataset).is_dir():
            continue
        if missing := folders.missing(masks):
            advice = folders.advice(missing, 'take their images out')
            if len(missing) == len(masks):
                advice = _suffix(dataset, folders)
            named = map(folders.described, missing)
            yield from report_wrong(
                Severity.ERROR, dataset.name, named, len(masks), 'masks not found', advice
            )
        else:
            yield ok(dataset.name, f'{counted(len(masks), "mask")} found')
        if len(missing) < len(masks):
            yield from _without_image(dataset)


def _mask_folder(data: LoadedDataset) -> Path:
    # A class that overrides the listing may have no folder.
    named = data.built.data_prefix.get('seg_map_path')
    return Path(named) if named else masks_of(data)[0].parent


def _suffix(data: LoadedDataset, folders: Folders) -> str:
    """Advice if no mask has the expected name: the suffix that the masks have."""
    first, folder, suffix = masks_of(data)[0], _mask_folder(data), data.built.seg_map_suffix
    stem = first.name.removesuffix(suffix)
    # 'a1.png' is not the mask of 'a'.
    follows = re.compile(re.escape(stem) + r'(?=[\W_])')
    names = sorted(filter(follows.match, folders.entries(first.parent)))
    if names:
        return f'there is {first_few(names)}: set seg_map_suffix={names[0].removeprefix(stem)!r}'
    return (
        f'in {folder} are {endings(folder)}: data_prefix.seg_map_path, the '
        f'names of the images and seg_map_suffix={suffix!r} must make one path'
    )


def _without_image(data: LoadedDataset) -> Iterator[Finding]:
    """Report masks of images that are missing, or that mmseg does not list."""
    if data.built.ann_file or data.settings.get('indices') is not None:
        # With a list, masks of other images are fine.
        return
    folder, suffix = _mask_folder(data), data.built.seg_map_suffix
    # Images and masks may be in one folder.
    expected = {path for image in data.images for path in (image.path, image.mask)}
    listed = sorted(list_dir_or_file(folder, False, suffix=suffix, recursive=True))
    spare = [name for name in listed if folder / name not in expected]
    advice = (
        f'copy their images, too: mmseg lists only images that end in {data.built.img_suffix!r}, '
        'and silently skips such masks'
    )
    what = 'masks without an image'
    yield from report_wrong(Severity.WARNING, data.name, spare, len(listed), what, advice)
