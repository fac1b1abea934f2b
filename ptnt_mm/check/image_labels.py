"""A classifier's data sets, with the images and labels that mmpretrain lists."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from math import inf
from numbers import Integral

from ptnt_mm.check.data_sets import LoadedDataset
from ptnt_mm.check.image_lists import check_list
from ptnt_mm.config.view import ConfigView
from ptnt_mm.utils.findings import Finding, error, ok, warning
from ptnt_mm.utils.text import counted, first_few


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
        found = [*_faults(dataset, counts, number_of_classes(view))]
        yield from found or check_list(dataset)
        if counts and not found:
            least, most = min(counts.values()), max(counts.values())
            yield ok(dataset.name, f'{counted(len(counts), "class")} of {least} to {most} images')


def _faults(data: LoadedDataset, counts: Counter[int], number: float) -> Iterator[Finding]:
    """Faults in the labels of a data set, and disagreements with the head."""
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
