"""A classifier's data sets, with the images and labels that mmpretrain lists."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from mmengine.config import Config

from ptnt_mm.check.image_lists import ListedData, check_list
from ptnt_mm.engine.config import kind_of
from ptnt_mm.engine.constructors import arguments
from ptnt_mm.utils.findings import Finding, error, sound, warning
from ptnt_mm.utils.text import some


@dataclass(frozen=True)
class LabelledData(ListedData):
    """A classifier's data set, the classes it is asked for, and what it lists."""

    BASE = 'BaseDataset'
    LISTS = 'images and labels'
    IDENTITY = ('split', 'classes', 'with_label', 'indices')
    MAKES_PATHS = 'data_prefix and the names in ann_file'
    REMOVE = 'take them out'

    def why_not_listed(self) -> str:
        """Why mmpretrain is not asked for its list; empty if it is."""
        if 'download' in arguments(self.cls).parameters:
            return f'{kind_of(self.settings)} fetches its files itself'
        return super().why_not_listed()

    @cached_property
    def counts(self) -> Counter[int]:
        """Its images by label; an image may have several labels or, to predict alone, none."""
        counts: Counter[int] = Counter()
        for entry in self.entries:
            labels = entry.get('gt_label', ())
            counts.update(labels if isinstance(labels, (list, tuple)) else (labels,))
        return counts


def number_of_classes(config: Config) -> int | None:
    """How many classes a classifier's head tells apart; None if it does not say so."""
    head = config.model.get('head')
    return head.get('num_classes') if isinstance(head, dict) else None


def check_labels(data: list[LabelledData], config: Config) -> Iterator[Finding]:
    """Say how many images there are of each class, and look for labels that no class has."""
    for one in data:
        if one.is_left_out:
            continue
        found = [*_order(one), *_range(one, number_of_classes(config)), *_unseen(one)]
        yield from found or check_list(one)
        if one.counts and not found:
            least, most = min(one.counts.values()), max(one.counts.values())
            yield sound(one.name, f'{len(one.counts)} classes of {least} to {most} images')


def _order(data: LabelledData) -> Iterator[Finding]:
    """Folders of classes in another order than their names: labels are the folders' places."""
    folders = tuple(getattr(data.built, 'folder_to_idx', ()))
    if set(folders) == set(data.classes) and folders != data.classes:
        what = f'the folders come as {some(folders)}, metainfo.classes as {some(data.classes)}'
        advice = 'labels follow the folders: write metainfo.classes in their order'
        yield error(data.name, what, advice)


def _range(data: LabelledData, number: int | None) -> Iterator[Finding]:
    wrong = [label for label in data.counts if number and not 0 <= label < number]
    if wrong:
        images = sum(data.counts[label] for label in wrong)
        what = f'{images} images have labels from {min(wrong)} to {max(wrong)}'
        advice = 'labels count from 0: correct them, or model.head.num_classes'
        yield error(data.name, f'{what}, the head has {number} classes', advice)


def _unseen(data: LabelledData) -> Iterator[Finding]:
    unseen = [name for label, name in enumerate(data.classes) if not data.counts[label]]
    if data.counts and unseen:
        lacks = 'they cannot be learned' if data.trains else 'their accuracy cannot be measured'
        yield warning(data.name, f'no image of {some(unseen)}', f'{lacks} from this data set')
