"""Object masks: present if a model or an evaluator needs them, and inside their boxes."""

from collections.abc import Iterator, Mapping

from mmengine.registry import TRANSFORMS, DefaultScope

from ptnt_mm.check.coco_annotations import DetectionDataset
from ptnt_mm.config.settings import dicts_within, type_name
from ptnt_mm.config.view import ConfigView
from ptnt_mm.labels.masks import BROKEN, RULES, RULES_OF_FORM, Mask, fault_of
from ptnt_mm.utils.findings import Fault, Finding, error, note, ok, report_faults
from ptnt_mm.utils.text import counted, first_few

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
            yield from _masks(dataset, thorough)
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
    return type_name(transform).startswith('Load') and bool(transform.get('with_mask'))


def _loads_boxes(transform: Mapping) -> bool:
    name = type_name(transform)
    return name.startswith('Load') and 'Annotation' in name and transform.get('with_bbox', True)


def _masks(data: DetectionDataset, thorough: bool) -> Iterator[Finding]:
    """Faults in the masks of a data set; only the first of each mask is reported."""
    entries, labels = data.file.annotations, data.labels
    asked = [a for a in entries if a['category_id'] in labels and not a.get('ignore')]
    step = 1 if thorough else len(asked) // _SAMPLE + 1
    loading = _loading(data)
    wrong: dict[Fault, list[str]] = {rule: [] for rule in RULES}
    for i, annotation in enumerate(asked):
        image = data.file.images[annotation['image_id']]
        size = image['width'], image['height']
        mask = Mask(annotation.get('segmentation'), size, annotation['bbox'])
        fault, why = fault_of(mask, RULES_OF_FORM), ''
        if fault is None and i % step == 0:
            why = _why_not_loaded(mask, loading) or mask.why_not_drawn
            fault = BROKEN if why else fault_of(mask)
        if fault is not None:
            wrong[fault].append(data.described(annotation) + (f' ({why})' if why else ''))
    if not any(wrong.values()):
        drawn = f', {len(asked[::step])} of them drawn' if step > 1 else ''
        yield ok(data.name, f'{counted(len(asked), "mask")}{drawn}')
    yield from report_faults(data.name, wrong, len(asked))


def _why_not_loaded(mask: Mask, loading: object) -> str:
    """Why mmdet cannot load a mask, or ignores it; empty if it loads it."""
    if loading is None:
        return ''
    instance = dict(mask=mask.value, ignore_flag=0)
    try:
        loading._process_masks(dict(instances=[instance]))
    except Exception as err:  # an annotation may contain anything
        return str(err) or type(err).__name__
    return 'mmdet ignores it' if instance['ignore_flag'] else ''


def _loading(data: DetectionDataset) -> object:
    """The host's transform that loads masks in the pipeline; None if it has a different one."""
    for step in data.data_set.pipeline:
        if type_name(step) == 'LoadAnnotations' and step.get('with_mask'):
            with DefaultScope.overwrite_default_scope('mmdet'):
                return TRANSFORMS.build(dict(step))
    return None
