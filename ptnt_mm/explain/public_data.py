"""Where to get the data sets that the configs of this package use."""

from pathlib import Path

_PUBLIC_DATA = {
    'train2017': 'docs/training.md#coco',
    'val2017': 'docs/training.md#coco',
    'ADEChallengeData2016': 'docs/segmentation.md#ade20k-and-cityscapes',
    'leftImg8bit': 'docs/segmentation.md#ade20k-and-cityscapes',
    'gtFine': 'docs/segmentation.md#ade20k-and-cityscapes',
    'imagenet': 'docs/classification.md#evaluate-a-published-checkpoint',
}
"""Pages that explain how to get public data sets, by parts of the names of their files."""


def how_to_get(path: str | Path) -> str:
    """Name the page that explains how to get a missing file or folder."""
    pages = (page for name, page in _PUBLIC_DATA.items() if name in str(path))
    if page := next(pages, None):
        return f'{page} explains how to get this data set, docs/data.md how to use your own data'
    return 'docs/data.md explains how to use your own data. To create the demo set, run: ptnt demo'
