"""The images that mmdet trains on: what its filter leaves, and which have no object."""

from collections.abc import Iterator

from mmengine.config import Config

from ptnt_mm.check.detection.boxes import is_kept
from ptnt_mm.check.detection.data import DetectionData
from ptnt_mm.finding import Finding, error, note, sound, warning

_MANY = 0.5
"""Of the images: so many filtered or empty ones are hardly meant."""


def check_filtering(data: list[DetectionData], config: Config) -> Iterator[Finding]:
    """Count images as mmdet's filter and its reading of boxes leave them."""
    for one in data:
        if one.file is None:
            continue
        kept = _kept_images(one)
        empty = len(kept) - len(kept & _images_with_objects(one))
        yield _counted(one, len(kept), empty)
        if one.trains and kept:
            yield from _too_few(one, len(kept), config)


def _counted(data: DetectionData, kept: int, empty: int) -> Finding:
    """Say how many images there are to train or evaluate on."""
    total = len(data.file.images)
    what = f'{kept} of {total} images are used'
    if not total:
        return error(data.name, f'{data.file.path} lists no image', 'give another ann_file')
    if not kept:
        return error(
            data.name,
            f'filter_cfg {dict(data.data_set.settings.filter_cfg)} leaves none of {total} images, '
            'which mmdet reports as "need at least one array to concatenate"',
            'objects of metainfo.classes must be in them, and both sides be min_size or longer',
        )
    if empty:
        what += f', {empty} of them without an object of any class'
    if empty == kept:
        return error(data.name, what, 'see what is said of classes and boxes')
    if total - kept + empty > _MANY * total:
        return warning(data.name, what, 'see filter_cfg, and what is said of classes and boxes')
    return note(data.name, what) if empty or kept < total else sound(data.name, what)


def _too_few(data: DetectionData, kept: int, config: Config) -> Iterator[Finding]:
    loader = config.train_dataloader
    batch = loader.get('batch_size', 1)
    if kept < batch and loader.get('drop_last'):
        yield error(
            data.name,
            f'{kept} images make no batch of {batch}, and drop_last=True drops the rest',
            'lower train_dataloader.batch_size',
        )
    if data.data_set.settings.get('test_mode'):
        yield warning(
            data.name, 'test_mode=True: images without objects stay', 'leave it to val and test'
        )


def _kept_images(data: DetectionData) -> set[int | str]:
    """The ids of the images that mmdet's filter leaves."""
    images = data.file.images
    settings = data.data_set.settings
    rules = {} if settings.get('test_mode') else settings.get('filter_cfg') or {}
    kept = {
        number
        for number, image in images.items()
        if min(image['height'], image['width']) >= rules.get('min_size', 0)
    }
    if rules.get('filter_empty_gt'):
        labels = data.labels
        # Whatever their boxes are like: mmdet drops boxes only after it has filtered images.
        kept &= {a['image_id'] for a in data.file.annotations if a['category_id'] in labels}
    return kept


def _images_with_objects(data: DetectionData) -> set[int | str]:
    """The ids of the images in which mmdet finds an object of a class."""
    labels, annotations = data.labels, data.file.annotations
    return {
        annotation['image_id']
        for annotation, kept in zip(annotations, is_kept(data.file), strict=True)
        if kept and annotation['category_id'] in labels
    }
