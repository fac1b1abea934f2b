"""A folder of images for each class, with or without folders of splits around them."""

import os
from dataclasses import replace
from pathlib import Path

from ptnt_mm.labels.formats.format import Collector, Format
from ptnt_mm.labels.model import Labels
from ptnt_mm.labels.tree import Tree, split_named

_NO_CLASSES = {
    *('images', 'image', 'imgs', 'img', 'jpegimages', 'pictures', 'photos', 'data'),
    *('masks', 'mask', 'labels', 'label', 'annotations', 'segmentationclass', 'segmentationobject'),
}


def _find(tree: Tree) -> str:
    placed = set(_classes(tree).values())
    classes = {name for _, name in placed if name}
    if len(classes) < 2 or classes & _NO_CLASSES:
        return ''
    splits = sorted({split for split, _ in placed if split})
    inside = f' inside {", ".join(splits)}' if splits else ''
    return f'images in folders of {len(classes)} names{inside}'


def _read(tree: Tree) -> Labels:
    collector = Collector(tree)
    for path, (split, name) in _classes(tree).items():
        if name is None:
            collector.labels.report(path, 'images that are in no folder of a class')
            continue
        image = collector.image(path, path, split)
        if image is not None:
            collector.set(replace(image, label=name))
    labels = collector.finish()
    labels.classes = sorted({image.label for image in labels.images})
    return labels


def _classes(tree: Tree) -> dict[Path, tuple[str | None, str | None]]:
    """The split and the class of each image: the first folders below the common ones."""
    placed = {}
    for image in tree.images:
        folders = list(tree.folders(image))
        at = next((i for i, name in enumerate(folders) if split_named(name)), None)
        split = None if at is None else split_named(folders.pop(at))
        placed[image] = split, folders
    # The last folder of a path is always that of a class.
    shared = len(os.path.commonprefix([path[:-1] for _, path in placed.values() if path]))
    return {
        image: (split, folders[shared] if len(folders) > shared else None)
        for image, (split, folders) in placed.items()
    }


FORMAT = Format(
    'folders',
    'Class folders',
    'two or more folders of images, one for each class, optionally inside train and val',
    ('classification',),
    _find,
    _read,
)
