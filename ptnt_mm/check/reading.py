"""Read the data sets of a config in the way of their host."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from ptnt_mm.check.coco_annotations import check_annotations, load_annotations
from ptnt_mm.check.image_labels import check_labels
from ptnt_mm.check.image_lists import list_images
from ptnt_mm.check.mask_lists import check_lists
from ptnt_mm.config.view import ConfigView
from ptnt_mm.utils.findings import Finding

_LOADING = {
    'mmdet': (load_annotations, lambda data, _: check_annotations(data)),
    'mmseg': (list_images, check_lists),
    'mmpretrain': (list_images, check_labels),
}
"""For each host, the function that reads its data sets, and the first check of them."""


def read_data(view: ConfigView, splits: tuple[str, ...]) -> tuple[Sequence[Any], Iterator[Finding]]:
    """Read the data sets of some splits with the host, which is already imported.

    Returns:
        The data sets, without duplicates; and findings about faults and omissions, some of which
        are only looked for when they are iterated over.
    """
    # Other libraries have data sets like mmdet's, or none.
    read, check = _LOADING.get(view.scope, _LOADING['mmdet'])
    data, findings = read(view, splits)
    return data, chain(findings, check(data, view))
