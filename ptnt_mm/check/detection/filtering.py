"""The images and objects that mmdet trains on: what it leaves out, and what it ignores."""

from collections.abc import Iterator

import numpy as np
from mmengine.config import Config

from ptnt_mm.check.detection.data import DetectionData
from ptnt_mm.engine.data_files import evaluators
from ptnt_mm.utils.findings import Finding, error, note, sound, warning
from ptnt_mm.utils.text import some

_MANY = 0.5
"""Of the images or objects: so many that are left out, empty or ignored are hardly meant."""


def check_filtering(data: list[DetectionData], config: Config) -> Iterator[Finding]:
    """Compare what mmdet loads with what the file says: images, objects, crowds."""
    for one in data:
        if one.loaded is None:
            continue
        yield _counted(one, config)
        yield from _objects(one)
        if one.trains and one.loaded.used:
            yield from _too_few(one, config)


def _counted(data: DetectionData, config: Config) -> Finding:
    """Say how many images there are to train or evaluate on."""
    total, kept = data.total, len(data.loaded.used)
    objects = zip(data.file.annotations, data.is_loaded, strict=True)
    with_objects = {annotation['image_id'] for annotation, loaded in objects if loaded}
    empty = kept - len(with_objects & data.loaded.used)
    what = f'{kept} of {total} images are used'
    settings = data.data_set.settings
    if not total:
        return error(data.name, f'{data.file.path} lists no image', 'give another ann_file')
    if not kept and settings.get('indices') is not None:
        what = f'indices={settings.indices} and filter_cfg leave none of {total} images'
        return error(data.name, what, 'give others, or leave them out')
    if not kept:
        return error(
            data.name,
            f'filter_cfg {dict(settings.filter_cfg)} leaves none of {total} images, '
            'which mmdet reports as "need at least one array to concatenate"',
            'objects of metainfo.classes must be in them, and both sides be min_size or longer',
        )
    if empty:
        what += f', {empty} of them without an object of any class'
    if empty == kept and not data.trains and not data.file.annotations:
        if not _is_measured(data, config):
            return note(data.name, what)
        return warning(data.name, what, 'there is nothing to measure: every precision will be -1')
    if empty == kept:
        return error(data.name, what, 'see what is said of classes and boxes')
    chosen = len(data.file.images)
    if chosen - kept + empty > _MANY * chosen:
        return warning(data.name, what, 'see filter_cfg, and what is said of classes and boxes')
    return note(data.name, what) if empty or kept < total else sound(data.name, what)


def _objects(data: DetectionData) -> Iterator[Finding]:
    """Objects that mmdet breaks off at, leaves out or ignores although the file does not say so."""
    annotations = data.file.annotations
    refused = [entry for entry in annotations if entry['id'] in data.loaded.refused]
    if refused:
        named = some(f'{data.described(a)} ({data.loaded.refused[a["id"]]})' for a in refused)
        what = f'mmdet breaks off at {len(refused)} of {len(annotations)} objects: {named}'
        yield error(data.name, what, 'write them again, or take them out')
    for key, what_mmdet_does, ignored in (
        ('ignore', 'leaves out', ~data.is_loaded),
        ('iscrowd', 'ignores', data.is_ignored),
    ):
        flags = [entry.get(key, 0) for entry in annotations]
        meant = np.array([flag in (1, True) for flag in flags], bool)
        odd = np.array([bool(flag) for flag in flags], bool) & ignored & ~meant
        if odd.any():
            named = some(
                f'{flags[i]!r} for {data.described(annotations[i])}' for i in np.flatnonzero(odd)
            )
            what = f'mmdet {what_mmdet_does} {odd.sum()} of {len(flags)} objects for their {key}'
            yield error(data.name, f'{what}: {named}', 'write 0 or 1, as numbers')
    loaded, ignored = data.is_loaded.sum(), data.is_ignored.sum()
    if ignored > _MANY * loaded:
        what = f'{ignored} of {loaded} objects are crowds, which mmdet ignores'
        advice = 'write "iscrowd": 0 for single objects'
        yield (error if ignored == loaded else warning)(data.name, what, advice)
    flagged = sum(bool(annotation.get('ignore')) for annotation in annotations)
    if flagged > _MANY * len(annotations):
        what = f'{flagged} of {len(annotations)} objects have "ignore", and mmdet leaves them out'
        yield warning(data.name, what, 'write "ignore": 0 for objects that count')


def _is_measured(data: DetectionData, config: Config) -> bool:
    found = (one for split in data.splits for one in evaluators(config, split))
    return any(not evaluator.get('format_only') for evaluator in found)


def _too_few(data: DetectionData, config: Config) -> Iterator[Finding]:
    loader = config.train_dataloader
    batch, kept = loader.get('batch_size', 1), len(data.loaded.used)
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
