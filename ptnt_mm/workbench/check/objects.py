"""The objects of detectors: which ones mmdet loads, their boxes, and their masks."""

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
from mmengine.registry import TRANSFORMS, DefaultScope

from ptnt_mm.utils.findings import (
    Finding,
    FindingKind,
    Severity,
    error,
    note,
    ok,
    report_kinds,
    report_wrong,
    warning,
)
from ptnt_mm.utils.text import counted, first_few
from ptnt_mm.workbench.check.coco_annotations import DetectionDataset
from ptnt_mm.workbench.config.settings import dicts_within, short_name, type_name
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.data.boxes import (
    CORNER_AND_SIZE,
    Cause,
    Listed,
    find_cause,
    judge,
    judge_repeats,
    near_the_corner,
    of_stored_pixels,
)
from ptnt_mm.workbench.data.image_files import is_on_its_side
from ptnt_mm.workbench.data.masks import BROKEN, FORM_RULES, MASK_RULES, Mask, rule_for

_MANY = 0.5  # a larger share skipped, empty or ignored is probably unintended


def check_filtering(data: list[DetectionDataset], view: ConfigView) -> Iterator[Finding]:
    """Compare what mmdet loads with the content of the file: images, objects, crowds."""
    for dataset in data:
        if dataset.built is not None:
            yield _counted(dataset, view)
            yield from _refused_or_ignored(dataset)
            if dataset.trains and dataset.used and not dataset.is_unlabelled:
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
    if empty == kept and data.is_unlabelled:
        return ok(where, f'{kept} of {total} images are used, without labels')
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
    loaded, ignored = data.is_loaded.sum(), _crowds_of_one_class(data)
    if ignored > _MANY * loaded:
        what = f'{ignored} of {loaded} objects are crowds, which mmdet ignores'
        severity = Severity.ERROR if ignored == loaded else Severity.WARNING
        yield Finding(severity, data.name, what, 'write "iscrowd": 0 for single objects')
    flagged = sum(bool(annotation.get('ignore')) for annotation in annotations)
    if flagged > _MANY * len(annotations):
        what = f'{flagged} of {len(annotations)} objects have "ignore", and mmdet skips them'
        yield warning(data.name, what, 'write "ignore": 0 for objects that count')


def _crowds_of_one_class(data: DetectionDataset) -> int:
    """The number of crowds but those that are listed with several classes.

    The latter are regions that no one labelled, such as KITTI's DontCare.
    """
    pairs = zip(data.file.annotations, data.is_ignored, strict=True)
    places = Counter((a['image_id'], *a['bbox']) for a, is_ignored in pairs if is_ignored)
    return sum(count == 1 for count in places.values())


def _too_few(data: DetectionDataset, view: ConfigView) -> Iterator[Finding]:
    batch, kept = view.train.batch_size, len(data.used)
    if kept < batch and view.train.loader.get('drop_last'):
        what = f'{kept} images do not fill a batch of {batch}, and drop_last=True drops the rest'
        yield error(data.name, what, 'lower train_dataloader.batch_size')
    if data.settings.get('test_mode'):
        what = 'test_mode=True: images without objects stay'
        yield warning(data.name, what, 'use it only in val and test')


def check_boxes(data: list[DetectionDataset]) -> Iterator[Finding]:
    """Check every box of every data set."""
    for dataset in data:
        if dataset.file is None or not dataset.file.annotations:
            continue
        # A single mistake may explain why all boxes are wrong.
        cause = _of_stored_pixels(dataset) or find_cause(dataset.boxes, CORNER_AND_SIZE)
        if cause is not None:
            severity = Severity.ERROR if cause.is_sure else Severity.WARNING
            yield from _report_boxes(severity, dataset, cause.chosen, cause.what, cause.advice)
            if cause.is_sure:
                continue
        found = list(_findings_of_boxes(dataset))
        # In a different unit, all boxes of all images are there.
        if corner := near_the_corner(dataset.boxes):
            what, why = corner
            advice = f'{why}; COCO has {CORNER_AND_SIZE.text} in pixels: convert them'
            found.append(warning(dataset.name, what, advice))
        yield from found or [ok(dataset.name, counted(len(dataset.boxes.values), 'box'))]


def _of_stored_pixels(data: DetectionDataset) -> Cause | None:
    if not data.boxes.is_beyond.any() or not data.images:
        return None
    images = dict(zip(data.file.images, data.images, strict=True))
    paths = {key: image.path for key, image in images.items() if image.path is not None}
    turned = {key for key, path in paths.items() if is_on_its_side(path)}
    return of_stored_pixels(
        data.boxes, np.array([entry['image_id'] in turned for entry in data.file.annotations])
    )


def _findings_of_boxes(data: DetectionDataset) -> Iterator[Finding]:
    """Findings about single boxes, then objects that are lost or repeated without one."""
    left = np.ones(len(data.boxes.values), bool)
    for rule, chosen in judge(data.boxes):
        advice = rule.advice_for(chosen)
        yield from _report_boxes(rule.severity, data, chosen, rule.what, advice)
        left &= rule.remaining(chosen)
    advice = 'mmdet drops them for another reason'
    yield from _report_boxes(Severity.ERROR, data, left & _is_lost(data), 'objects', advice)
    (places,) = np.nonzero(left)
    for rule, chosen in judge_repeats([_listed_box(data, i) for i in places]):
        repeated = np.zeros_like(left)
        repeated[places[chosen]] = True
        yield from _report_boxes(rule.severity, data, repeated, rule.what, rule.advice)


def _listed_box(data: DetectionDataset, place: int) -> Listed:
    entry, box = data.file.annotations[place], data.boxes.inside[place]
    return Listed(
        (entry['image_id'], *box.tolist()),
        entry['category_id'],
        bool(entry.get('iscrowd') or entry.get('ignore')),
        entry.get('segmentation') or None,
    )


def _is_lost(data: DetectionDataset) -> np.ndarray:
    """Whether mmdet skips each object although its class is used, (N,)."""
    if data.built is None:
        return np.zeros(len(data.boxes.values), bool)
    asked = [
        entry['category_id'] in data.labels
        and not entry.get('ignore')
        and entry['id'] not in data.refused
        for entry in data.file.annotations
    ]
    return np.array(asked, bool) & ~data.is_loaded


def _report_boxes(
    severity: Severity, data: DetectionDataset, chosen: np.ndarray, what: str, advice: str
) -> Iterator[Finding]:
    """Report the chosen boxes, (N,), with their ids and images."""
    named = []
    for i in np.flatnonzero(chosen):
        entry = data.file.annotations[i]
        image = data.file.images[entry['image_id']]
        size = f'{image["width"]}x{image["height"]}'
        named.append(f'id {entry["id"]} {entry["bbox"]} in {image["file_name"]} ({size})')
    yield from report_wrong(severity, data.name, named, len(chosen), what, advice)


# Types that can predict masks without being a mask_head.
_ALSO_MASKS = ('Detectron2Wrapper', 'RTMDetInsHead', 'RTMDetInsSepBNHead')

_OF_BOXES = ('BoxInstMaskHead',)  # mask heads that learn only from boxes

# Masks that the quick half draws of a data set, evenly spread; the thorough half draws all.
_SAMPLE = 5_000


def check_object_masks(
    data: list[DetectionDataset], view: ConfigView, thorough: bool
) -> Iterator[Finding]:
    """Compare the needs of the heads with the pipelines, the annotations and the evaluators."""
    heads = _mask_heads(view)
    taught = [path for path, kind in heads.items() if kind not in _OF_BOXES]
    measured = _splits_with_masks(view)
    others = (
        type_name(settings) in _ALSO_MASKS for _, settings in dicts_within(view.model, 'model')
    )
    if measured and not heads and not any(others):
        what = "the evaluator's metric 'segm' needs masks, and the model has no mask head"
        advice = "set metric='bbox', or use a config with a mask head"
        yield error(' and '.join(measured), what, advice)
    for dataset in data:
        pipeline = dataset.data_set.pipeline
        learns = dataset.trains and any(map(_loads_masks, pipeline))
        loads_objects = dataset.trains and dataset.reads_coco and pipeline
        if loads_objects and not any(map(_loads_boxes, pipeline)):
            advice = "add dict(type='LoadAnnotations', with_bbox=True) after the loading of images"
            yield error(dataset.name, 'the pipeline loads no boxes', advice)
        if loads_objects and taught and not learns:
            what = f'{first_few(taught)} needs masks, which the pipeline does not load'
            advice = "write dict(type='LoadAnnotations', with_bbox=True, with_mask=True)"
            yield error(dataset.name, what, advice)
        is_measured = bool(heads) and any(split in measured for split in dataset.pipelines)
        if dataset.file is not None and (learns or is_measured):
            yield from _findings_of_masks(dataset, thorough)
    if not heads and not measured:
        yield note('model', 'has no mask head: masks were not checked')


def _mask_heads(view: ConfigView) -> dict[str, str]:
    """The paths of mask heads in the model's settings, and their types."""
    return {
        path: type_name(settings)
        for path, settings in dicts_within(view.model, 'model')
        if path.rpartition('.')[2].partition('[')[0] in ('mask_head', 'panoptic_head')
        and settings.get('type')
    }


def _splits_with_masks(view: ConfigView) -> list[str]:
    # A metric is one name or a list of names; no other metric has segm in its name.
    return [
        split
        for split in ('val', 'test')
        if any(
            'segm' in (evaluator.get('metric') or ()) for evaluator in view.split(split).evaluators
        )
    ]


def _loads_masks(transform: Mapping) -> bool:
    return short_name(transform).startswith('Load') and bool(transform.get('with_mask'))


def _loads_boxes(transform: Mapping) -> bool:
    name = short_name(transform)
    return name.startswith('Load') and 'Annotation' in name and transform.get('with_bbox', True)


def _findings_of_masks(data: DetectionDataset, thorough: bool) -> Iterator[Finding]:
    """Findings about the masks of a data set; only the first of each mask is reported."""
    entries, labels = data.file.annotations, data.labels
    asked = [a for a in entries if a['category_id'] in labels and not a.get('ignore')]
    step = 1 if thorough else len(asked) // _SAMPLE + 1
    loading = _mask_loader(data)
    wrong: dict[FindingKind, list[str]] = {rule: [] for rule in MASK_RULES}
    for i, annotation in enumerate(asked):
        image = data.file.images[annotation['image_id']]
        size = image['width'], image['height']
        mask = Mask(annotation.get('segmentation'), size, annotation['bbox'])
        rule, why = rule_for(mask, FORM_RULES), ''
        if rule is None and i % step == 0:
            is_ignored = data.ignored.get(annotation['id'], False)
            why = _why_not_loaded(mask, loading, is_ignored) or mask.why_not_drawn
            rule = BROKEN if why else rule_for(mask)
        if rule is not None:
            wrong[rule].append(data.described(annotation) + (f' ({why})' if why else ''))
    if not any(wrong.values()):
        drawn = f', {len(asked[::step])} of them drawn' if step > 1 else ''
        yield ok(data.name, f'{counted(len(asked), "mask")}{drawn}')
    yield from report_kinds(data.name, wrong, len(asked))


def _why_not_loaded(mask: Mask, loading: object, is_ignored: bool) -> str:
    """Why mmdet cannot load a mask, or ignores it although it should not; empty if it loads it."""
    if loading is None:
        return ''
    instance = dict(mask=mask.value, ignore_flag=int(is_ignored))
    try:
        loading._process_masks(dict(instances=[instance]))
    except Exception as err:  # an annotation may contain anything
        return str(err) or type(err).__name__
    return 'mmdet ignores it' if instance['ignore_flag'] and not is_ignored else ''


def _mask_loader(data: DetectionDataset) -> object:
    """The host's transform that loads masks in the pipeline; None if it has a different one."""
    for step in data.data_set.pipeline:
        if type_name(step) == 'LoadAnnotations' and step.get('with_mask'):
            with DefaultScope.overwrite_default_scope('mmdet'):
                return TRANSFORMS.build(dict(step))
    return None
