"""Masks: there where a model or an evaluator needs them, and of a form that mmdet reads."""

from collections.abc import Iterator, Mapping

from mmengine.config import Config

from ptnt_mm.check.detection.data import DetectionData
from ptnt_mm.engine.config import kind_of, within
from ptnt_mm.engine.data_files import evaluators
from ptnt_mm.finding import Finding, error, note, sound, warning
from ptnt_mm.wording import some

_ALSO_MASKS = ('Detectron2Wrapper', 'RTMDetInsHead', 'RTMDetInsSepBNHead')
"""What gives masks, or may give some, and is no mask head by its place in the model."""

_OF_BOXES = ('BoxInstMaskHead',)
"""Mask heads that learn from boxes alone."""

_CORNERS = 3
"""The fewest points of a polygon."""


def check_masks(data: list[DetectionData], config: Config) -> Iterator[Finding]:
    """Compare what the heads need with the pipelines, the annotations and the evaluators."""
    heads = [path for path, _ in _mask_heads(config)]
    taught = [path for path, kind in _mask_heads(config) if kind not in _OF_BOXES]
    measured = _splits_with_masks(config)
    if measured and not heads and not _gives_masks_otherwise(config):
        yield error(
            ' and '.join(measured),
            "the evaluator's metric 'segm' needs masks, and the model has no mask head",
            "set metric='bbox', or take a config with a mask head",
        )
    for one in data:
        yield from _pipeline(one, taught)
        loads = one.trains and any(map(_loads_masks, one.data_set.pipeline))
        measures = heads and any(split in measured for split in one.splits)
        if one.file is not None and (loads or measures):
            yield from _annotations(one)
    if not heads and not measured:
        yield note('model', 'has no mask head: masks were not checked')


def _mask_heads(config: Config) -> Iterator[tuple[str, str]]:
    """Where in the model's settings there are mask heads, and of which type."""
    for path, settings in within(config.model, 'model'):
        name = path.rpartition('.')[2].partition('[')[0]
        if name in ('mask_head', 'panoptic_head') and settings.get('type'):
            yield path, kind_of(settings)


def _gives_masks_otherwise(config: Config) -> bool:
    return any(kind_of(settings) in _ALSO_MASKS for _, settings in within(config.model, 'model'))


def _splits_with_masks(config: Config) -> list[str]:
    """The splits whose evaluator measures masks."""
    return [split for split in ('val', 'test') if any(map(_is_segm, evaluators(config, split)))]


def _is_segm(evaluator: Mapping) -> bool:
    metric = evaluator.get('metric') or ()
    return 'segm' in ([metric] if isinstance(metric, str) else metric)


def _loads_masks(transform: Mapping) -> bool:
    return kind_of(transform).startswith('Load') and bool(transform.get('with_mask'))


def _loads_boxes(transform: Mapping) -> bool:
    name = kind_of(transform)
    return name.startswith('Load') and 'Annotation' in name and transform.get('with_bbox', True)


def _pipeline(data: DetectionData, heads: list[str]) -> Iterator[Finding]:
    """What the training pipeline does not load."""
    pipeline = data.data_set.pipeline
    if not data.trains or not pipeline or not data.reads_coco:
        return
    if not any(map(_loads_boxes, pipeline)):
        yield error(
            data.name,
            'the pipeline loads no boxes',
            "add dict(type='LoadAnnotations', with_bbox=True) behind the loading of images",
        )
    if heads and not any(map(_loads_masks, pipeline)):
        yield error(
            data.name,
            f'{some(heads)} needs masks, which the pipeline does not load',
            "write dict(type='LoadAnnotations', with_bbox=True, with_mask=True)",
        )


def _annotations(data: DetectionData) -> Iterator[Finding]:
    """Masks that are missing, or of a form that mmdet leaves out or stumbles over."""
    labels = data.labels
    asked = [a for a in data.file.annotations if a['category_id'] in labels and not a.get('ignore')]
    missing = [annotation for annotation in asked if _is_missing(annotation)]
    if missing:
        what = f'{len(missing)} of {len(asked)} objects without mask: {_examples(missing, data)}'
        yield error(data.name, what, 'training or evaluation breaks off at them')
    short = [annotation for annotation in asked if _is_short(annotation)]
    if short:
        what = f'{len(short)} of {len(asked)} objects with polygons of less than {_CORNERS} points'
        advice = 'mmdet leaves such polygons out, and ignores an object that has no other'
        yield warning(data.name, f'{what}: {_examples(short, data)}', advice)
    turned = [annotation for annotation in asked if _is_other_size(annotation, data)]
    if turned:
        what = f'{len(turned)} of {len(asked)} masks not of the size of their images'
        yield error(
            data.name, f'{what}: {_examples(turned, data)}', 'write size as [height, width]'
        )
    if not missing + short + turned:
        yield sound(data.name, f'{len(asked)} masks')


def _is_missing(annotation: dict) -> bool:
    return not annotation.get('segmentation')


def _is_short(annotation: dict) -> bool:
    polygons = annotation.get('segmentation')
    return isinstance(polygons, list) and any(
        not isinstance(polygon, list) or len(polygon) % 2 or len(polygon) < 2 * _CORNERS
        for polygon in polygons
    )


def _is_other_size(annotation: dict, data: DetectionData) -> bool:
    mask = annotation.get('segmentation')
    image = data.file.images[annotation['image_id']]
    return isinstance(mask, dict) and mask.get('size') != [image['height'], image['width']]


def _examples(annotations: list[dict], data: DetectionData) -> str:
    images = data.file.images
    return some(f'id {a["id"]} in {images[a["image_id"]]["file_name"]}' for a in annotations)
