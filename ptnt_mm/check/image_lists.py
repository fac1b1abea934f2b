"""Data sets that list their images when the host builds them, for segmenters and classifiers."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mmengine.fileio import list_dir_or_file

from ptnt_mm.check.class_names import faults_of_names
from ptnt_mm.check.data_sets import (
    ImageFile,
    LoadedDataset,
    as_names,
    evenly_spread,
    find_data_sets,
)
from ptnt_mm.config.settings import type_name
from ptnt_mm.config.view import ConfigView
from ptnt_mm.explain.building import explain_build_error
from ptnt_mm.utils.findings import Finding, Severity, error, note, ok
from ptnt_mm.utils.text import counted, first_few

_LISTS = {
    'mmseg': ('BaseSegDataset', 'images and masks'),
    'mmpretrain': ('BaseDataset', 'images and labels'),
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
        return f'{type_name(data.settings)} downloads its files itself'
    if not data.is_a(base):
        return f'{type_name(data.settings)} is not a {base}'
    root = str(data.settings.get('data_root'))
    return 'is not local' if data.settings.get('backend_args') or '://' in root else ''


def _list_images(data: LoadedDataset) -> None:
    """Let the host list the images of a data set, or record why it does not."""
    try:
        data.build()
        if not _missing(data):
            data.built.full_init()
    except Exception as err:  # constructors may raise anything
        data.refusal = explain_build_error(err)
        return
    # The data set's class may define the names.
    data.classes = as_names(data.built.metainfo.get('classes')) or data.classes
    data.sample_entries = evenly_spread(data.built.data_list)
    for entry in data.built.data_list:
        mask = entry.get('seg_map_path')
        mask = None if mask is None else Path(mask)
        data.images.append(ImageFile(Path(entry['img_path']), mask=mask))


def _missing(data: LoadedDataset) -> list[Path]:
    """Missing files and folders that a list is made from."""
    paths = (data.built.ann_file, data.built.data_prefix.get('img_path'))
    return [Path(path) for path in paths if path and not Path(path).exists()]


def check_list(data: LoadedDataset) -> Iterator[Finding]:
    """Report the number of images that the host lists for a data set, or why there are none."""
    if data.refusal:
        # Other checks report missing files and wrong class names.
        there = all(path.exists() for path in data.data_set.paths())
        if there and not any(fault.severity is Severity.ERROR for fault in faults_of_names(data)):
            yield error(data.name, f'the data set cannot be built: {data.refusal}')
    elif data.images:
        yield ok(data.name, counted(len(data.images), 'image'))
    elif missing := _missing(data):
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
