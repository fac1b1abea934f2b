"""Masks: there where a model or an evaluator needs them, and drawn where their boxes are."""

from collections.abc import Iterator, Mapping

from mmengine.config import Config
from mmengine.registry import TRANSFORMS, DefaultScope
from pycocotools import mask as coco

from ptnt_mm.check.detection.data import DetectionData
from ptnt_mm.coco_masks import run_lengths
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

_ROUNDING = 3
"""Pixels that a mask's side may be away from its box's, however small both are."""

_SAMPLE = 10_000
"""Masks that the quick half draws of a data set, from all over it; the thorough half, the rest."""


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
    for one in _with_masks(data, config):
        yield from _annotations(one)
    if not heads and not measured:
        yield note('model', 'has no mask head: masks were not checked')


def check_rest_of_masks(data: list[DetectionData], config: Config) -> Iterator[Finding]:
    """Draw the masks that were not among the sample."""
    for one in _with_masks(data, config):
        asked = _asked(one)
        step = len(asked) // _SAMPLE + 1
        if step > 1:
            rest = [annotation for i, annotation in enumerate(asked) if i % step]
            yield from _drawn(rest, one) or [sound(one.name, f'{len(rest)} more masks drawn')]


def _with_masks(data: list[DetectionData], config: Config) -> Iterator[DetectionData]:
    """The data sets whose masks are learned or measured."""
    measured, heads = _splits_with_masks(config), any(_mask_heads(config))
    for one in data:
        loads = one.trains and any(map(_loads_masks, one.data_set.pipeline))
        measures = heads and any(split in measured for split in one.splits)
        if one.file is not None and (loads or measures):
            yield one


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


def _asked(data: DetectionData) -> list[dict]:
    """The objects of classes that are asked for."""
    labels = data.labels
    return [a for a in data.file.annotations if a['category_id'] in labels and not a.get('ignore')]


def _annotations(data: DetectionData) -> Iterator[Finding]:
    """Masks that are missing, or of a form that mmdet leaves out or stumbles over."""
    asked = _asked(data)
    missing = [annotation for annotation in asked if not annotation.get('segmentation')]
    short = [annotation for annotation in asked if _is_short(annotation)]
    turned = [annotation for annotation in asked if _is_other_size(annotation, data)]
    found = []
    for report, wrong, what, advice in (
        (error, missing, 'objects without mask', 'training or evaluation breaks off at them'),
        (
            warning,
            short,
            f'objects with polygons of less than {_CORNERS} points',
            'mmdet leaves such polygons out, and ignores an object that has no other',
        ),
        (error, turned, 'masks not of the size of their images', 'write size as [height, width]'),
    ):
        if wrong:
            what = f'{len(wrong)} of {len(asked)} {what}: {some(map(data.described, wrong))}'
            found.append(report(data.name, what, advice))
    reported = {id(annotation) for annotation in missing + short + turned}
    sample = asked[:: len(asked) // _SAMPLE + 1]
    found += _drawn([one for one in sample if id(one) not in reported], data)
    drawn = f', {len(sample)} of them drawn' if len(sample) < len(asked) else ''
    yield from found or [sound(data.name, f'{len(asked)} masks{drawn}')]


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


def _drawn(annotations: list[dict], data: DetectionData) -> list[Finding]:
    """Draw masks as mmdet does, and compare them with their boxes."""
    loading = _loading(data)
    broken, empty, elsewhere = [], [], []
    for annotation in annotations:
        image = data.file.images[annotation['image_id']]
        try:
            if loading is not None:
                instance = dict(mask=annotation['segmentation'], ignore_flag=0)
                loading._process_masks(dict(instances=[instance]))
                if instance['ignore_flag']:
                    raise ValueError('mmdet ignores it')
            size = int(image['height']), int(image['width'])
            mask = run_lengths(annotation['segmentation'], *size)
        except Exception as err:  # an annotation may hold anything
            broken.append(f'{data.described(annotation)} ({err})')
            continue
        if not coco.area(mask):
            empty.append(data.described(annotation))
        elif _is_elsewhere(coco.toBbox(mask).tolist(), annotation['bbox'], size):
            elsewhere.append(data.described(annotation))
    found = []
    for report, named, what, advice in (
        (error, broken, 'masks that cannot be drawn', 'mmdet breaks off at them, or draws noise'),
        (error, empty, 'masks without a pixel', 'COCO has polygons in pixels: convert them'),
        (
            warning,
            elsewhere,
            'masks not where their boxes are',
            'are they of the same object, in pixels, and x before y?',
        ),
    ):
        if named:
            what = f'{len(named)} of {len(annotations)} {what}: {some(named)}'
            found.append(report(data.name, what, advice))
    return found


def _loading(data: DetectionData) -> object:
    """The host's own loading of masks, as the pipeline has it; None if it has another."""
    for step in data.data_set.pipeline:
        if kind_of(step) == 'LoadAnnotations' and step.get('with_mask'):
            with DefaultScope.overwrite_default_scope('mmdet'):
                return TRANSFORMS.build(dict(step))
    return None


def _is_elsewhere(drawn: list, box: list, size: tuple[int, int]) -> bool:
    """Whether two boxes, x, y, width, height, share less than half of what both cover."""
    sides, cover, apart = [], [], []
    for i, end in ((0, size[1]), (1, size[0])):
        first, last = drawn[i], drawn[i] + drawn[i + 2]
        # mmdet clips boxes.
        start, stop = max(box[i], 0), min(box[i] + box[i + 2], end)
        sides.append(max(min(last, stop) - max(first, start), 0))
        cover.append((last - first, stop - start))
        apart += [abs(first - start), abs(last - stop)]
    shared = sides[0] * sides[1]
    union = cover[0][0] * cover[1][0] + cover[0][1] * cover[1][1] - shared
    return shared < union / 2 and max(apart) > _ROUNDING
