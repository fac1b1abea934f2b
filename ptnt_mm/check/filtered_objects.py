"""The images and objects that mmdet skips or ignores."""

from collections.abc import Iterator

from ptnt_mm.check.coco_annotations import DetectionDataset
from ptnt_mm.config.view import ConfigView
from ptnt_mm.utils.findings import Finding, Severity, error, note, ok, warning
from ptnt_mm.utils.text import first_few

_MANY = 0.5  # a larger share skipped, empty or ignored is probably unintended


def check_filtering(data: list[DetectionDataset], view: ConfigView) -> Iterator[Finding]:
    """Compare what mmdet loads with the content of the file: images, objects, crowds."""
    for dataset in data:
        if dataset.built is not None:
            yield _counted(dataset, view)
            yield from _refused_or_ignored(dataset)
            if dataset.trains and dataset.used:
                yield from _too_few(dataset, view)


def _counted(data: DetectionDataset, view: ConfigView) -> Finding:
    where, total, kept = data.name, data.total, len(data.used)
    if not total:
        return error(where, f'{data.file.path} lists no image', 'use a different ann_file')
    if not kept:
        chosen = [f'{key}={data.settings.get(key)}' for key in ('filter_cfg', 'indices')]
        return error(
            where,
            f'with {" and ".join(chosen)}, none of {total} images is left, which mmdet reports as '
            '"need at least one array to concatenate"',
            'images need objects of metainfo.classes, and both of their sides at least min_size',
        )
    objects = zip(data.file.annotations, data.is_loaded, strict=True)
    with_objects = {annotation['image_id'] for annotation, loaded in objects if loaded}
    empty = kept - len(with_objects & data.used)
    what = f'{kept} of {total} images are used'
    if empty:
        what += f', {empty} of them without an object of any class'
    if empty == kept and not data.trains and not data.file.annotations:
        if not any(view.split(split).is_measured for split in data.pipelines):
            return note(where, what)
        return warning(where, what, 'there is nothing to measure: every precision will be -1')
    if empty == kept:
        return error(where, what, 'see the findings on classes and boxes')
    chosen = len(data.file.images)
    if chosen - kept + empty > _MANY * chosen:
        return warning(where, what, 'see filter_cfg, and the findings on classes and boxes')
    return note(where, what) if empty or kept < total else ok(where, what)


def _refused_or_ignored(data: DetectionDataset) -> Iterator[Finding]:
    """Objects that mmdet fails at, or skips or ignores although the file has no such flag."""
    annotations = data.file.annotations
    reasons = data.refused
    refused = [
        f'{data.described(a)} ({reasons[a["id"]]})' for a in annotations if a['id'] in reasons
    ]
    if refused:
        share = f'{len(refused)} of {len(annotations)} objects'
        what = f'mmdet cannot load {share}: {first_few(refused)}'
        yield error(data.name, what, 'write them again, or remove them')
    for key, what_mmdet_does, skipped in (
        ('ignore', 'skips', ~data.is_loaded),
        ('iscrowd', 'ignores', data.is_ignored),
    ):
        odd = [
            f'{entry[key]!r} for {data.described(entry)}'
            for entry, out in zip(annotations, skipped, strict=True)
            if out and entry.get(key, 0) and entry[key] not in (1, True)
        ]
        if odd:
            objects = f'{len(odd)} of {len(annotations)} objects'
            what = f'mmdet {what_mmdet_does} {objects} because of their {key}: {first_few(odd)}'
            yield error(data.name, what, 'write 0 or 1, as numbers')
    loaded, ignored = data.is_loaded.sum(), data.is_ignored.sum()
    if ignored > _MANY * loaded:
        what = f'{ignored} of {loaded} objects are crowds, which mmdet ignores'
        severity = Severity.ERROR if ignored == loaded else Severity.WARNING
        yield Finding(severity, data.name, what, 'write "iscrowd": 0 for single objects')
    flagged = sum(bool(annotation.get('ignore')) for annotation in annotations)
    if flagged > _MANY * len(annotations):
        what = f'{flagged} of {len(annotations)} objects have "ignore", and mmdet skips them'
        yield warning(data.name, what, 'write "ignore": 0 for objects that count')


def _too_few(data: DetectionDataset, view: ConfigView) -> Iterator[Finding]:
    batch, kept = view.train.batch_size, len(data.used)
    if kept < batch and view.train.loader.get('drop_last'):
        what = f'{kept} images do not fill a batch of {batch}, and drop_last=True drops the rest'
        yield error(data.name, what, 'lower train_dataloader.batch_size')
    if data.settings.get('test_mode'):
        what = 'test_mode=True: images without objects stay'
        yield warning(data.name, what, 'use it only in val and test')
