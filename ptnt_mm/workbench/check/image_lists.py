"""The images, masks and labels that mmseg and mmpretrain list for their data sets."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import inf
from numbers import Integral
from pathlib import Path

from mmengine.fileio import list_dir_or_file

from ptnt_mm.utils.findings import Finding, Severity, error, note, ok, report_wrong, warning
from ptnt_mm.utils.text import counted, first_few
from ptnt_mm.workbench.check.class_names import findings_of_names
from ptnt_mm.workbench.check.data_sets import (
    ImageFile,
    LoadedDataset,
    as_names,
    evenly_spread,
    find_data_sets,
)
from ptnt_mm.workbench.config.build_errors import explain_build_error
from ptnt_mm.workbench.config.settings import loads_annotations, short_name, type_name
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.data.many_files import Folders

_LISTS = {
    'mmseg': ('BaseSegDataset', 'images and masks'),
    'mmpretrain': ('BaseDataset', 'images and labels'),
    'mmrotate': ('BaseDataset', 'images and boxes'),
}
"""The class of each host that lists images, and what its list has."""


def list_images(
    view: ConfigView, splits: tuple[str, ...]
) -> tuple[list[LoadedDataset], list[Finding]]:
    """Let the host, already imported, list the images of the data sets in some splits.

    Returns:
        The data sets, without duplicates; and notes about those skipped.
    """
    data, findings = find_data_sets(LoadedDataset, view, splits)
    base, listed = _LISTS[view.scope]
    for dataset in data:
        if reason := _why_not_listed(dataset, base):
            findings.append(note(dataset.name, f'{reason}: its {listed} were not checked'))
        else:
            _list_images(dataset)
    return data, findings


def _why_not_listed(data: LoadedDataset, base: str) -> str:
    """Why the host's list is not used; empty if it is."""
    if data.fetches_files:
        return f'{short_name(data.settings)} downloads its files itself'
    if not data.is_a(base):
        return f'{short_name(data.settings)} is not a {base}'
    root = str(data.settings.get('data_root'))
    return 'is not local' if data.settings.get('backend_args') or '://' in root else ''


def _list_images(data: LoadedDataset) -> None:
    """Let the host list the images of a data set, or record why it does not."""
    try:
        data.build()
        if not _missing_sources(data):
            data.built.full_init()
    except Exception as err:  # constructors may raise anything
        data.why_not_built = explain_build_error(err)
        return
    # The data set's class may define the names.
    data.classes = as_names(data.built.metainfo.get('classes')) or data.classes
    data.sample_entries = evenly_spread(data.built.data_list)
    for entry in data.built.data_list:
        mask = entry.get('seg_map_path')
        mask = None if mask is None else Path(mask)
        data.images.append(ImageFile(Path(entry['img_path']), mask=mask))


def _missing_sources(data: LoadedDataset) -> list[Path]:
    """Missing files and folders that a list is made from."""
    paths = (data.built.ann_file, data.built.data_prefix.get('img_path'))
    return [Path(path) for path in paths if path and not Path(path).exists()]


def check_list(data: LoadedDataset) -> Iterator[Finding]:
    """Report the number of images that the host lists for a data set, or why there are none."""
    if data.why_not_built:
        # Other checks report missing files and wrong class names.
        there = all(path.exists() for path in data.data_set.paths())
        if there and not any(found.severity is Severity.ERROR for found in findings_of_names(data)):
            yield error(data.name, f'the data set cannot be built: {data.why_not_built}')
    elif data.images:
        yield ok(data.name, counted(len(data.images), 'image'))
    elif missing := _missing_sources(data):
        # Another check reports those in the config; some classes define theirs.
        for path in sorted({*missing} - {*data.data_set.paths()}):
            yield error(data.name, f'{path} does not exist')
    else:
        yield error(data.name, *_why_empty(data))


def _why_empty(data: LoadedDataset) -> tuple[str, str]:
    """Why a list is empty, and what to do."""
    if (indices := data.settings.get('indices')) is not None:
        return f'indices={indices} leaves no image', 'use other indices, or none'
    suffix = getattr(data.built, 'img_suffix', None)
    if data.built.ann_file or suffix is None:
        return f'{data.built.ann_file} lists no image', 'write a name on each line'
    # mmseg then lists the files in a folder.
    folder = data.built.data_prefix.get('img_path')
    what = f'no file in {folder} ends in img_suffix={suffix!r}; the files end in {endings(folder)}'
    return what, 'set img_suffix, or data_prefix.img_path'


def endings(folder: str | Path) -> str:
    """The endings of the files in a folder, each with its number of files: '.png (16)'."""
    names = list_dir_or_file(folder, False, recursive=True)
    counts = Counter(Path(name).suffix for name in names).most_common()
    return first_few(f'{ending or "no ending"} ({count})' for ending, count in counts) or 'no files'


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
    return next((step for step in pipeline if loads_annotations(short_name(step))), {})


def needs_masks(view: ConfigView, split: str) -> bool:
    """Whether the masks of a split are used for training or evaluation."""
    return split == 'train' or view.split(split).is_measured


def check_lists_of_masks(data: list[LoadedDataset], view: ConfigView) -> Iterator[Finding]:
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
                advice = _suffix_of_masks(dataset, folders)
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


def _suffix_of_masks(data: LoadedDataset, folders: Folders) -> str:
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
        f'names of the images and seg_map_suffix={suffix!r} must together make a path'
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


def number_of_classes(view: ConfigView) -> float:
    """The number of classes of a classifier's head; infinity if unknown."""
    head = view.model.get('head')
    return head.get('num_classes', inf) if isinstance(head, dict) else inf


def count_labels(entries: Iterable[Mapping]) -> Counter[int]:
    """Number of images by label. An image may have several labels, or none for prediction."""
    labels = (entry.get('gt_label', []) for entry in entries)
    return Counter(
        chain.from_iterable([one] if isinstance(one, Integral) else one for one in labels)
    )


def check_labels(data: list[LoadedDataset], view: ConfigView) -> Iterator[Finding]:
    """Count the images of each class, and report labels without a class."""
    for dataset in data:
        if dataset.is_left_out:
            continue
        counts = count_labels(() if dataset.built is None else dataset.built.data_list)
        found = [*_findings_of_labels(dataset, counts, number_of_classes(view))]
        yield from found or check_list(dataset)
        if counts and not found:
            least, most = min(counts.values()), max(counts.values())
            yield ok(dataset.name, f'{counted(len(counts), "class")} of {least} to {most} images')


def _findings_of_labels(
    data: LoadedDataset, counts: Counter[int], number: float
) -> Iterator[Finding]:
    """Errors in the labels of a data set, and disagreements with the head."""
    folders = tuple(getattr(data.built, 'folder_to_idx', ()))
    if set(folders) == set(data.classes) and folders != data.classes:
        classes = first_few(data.classes)
        what = (
            f'the order of the folders is {first_few(folders)}, that of metainfo.classes is '
            f'{classes}'
        )
        advice = 'labels are the indices of the folders: write metainfo.classes in their order'
        yield error(data.name, what, advice)
    if wrong := [label for label in counts if not 0 <= label < number]:
        images = sum(counts[label] for label in wrong)
        what = f'{images} images have labels from {min(wrong)} to {max(wrong)}'
        advice = 'labels count from 0: correct them, or model.head.num_classes'
        yield error(data.name, f'{what}, the head has {number} classes', advice)
    unseen = [name for label, name in enumerate(data.classes) if not counts[label]]
    if counts and unseen:
        lacks = 'they cannot be learned' if data.trains else 'their accuracy cannot be measured'
        yield warning(data.name, f'no image of {first_few(unseen)}', f'{lacks} from this data set')
