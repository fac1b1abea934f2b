"""Consistency of a segmenter's settings: zero label, ignored pixels, pipelines and crops."""

import re
from collections.abc import Iterator, Mapping

from ptnt_mm.utils.findings import Finding, error, note, ok, warning
from ptnt_mm.utils.text import first_few
from ptnt_mm.workbench.check.data_sets import LoadedDataset
from ptnt_mm.workbench.check.image_lists import has_masks, loading_of, needs_masks
from ptnt_mm.workbench.check.images import size_text
from ptnt_mm.workbench.config.settings import dicts_within, type_name
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.data.class_masks import IGNORED

# Parts of the names of transforms that move pixels.
_MOVING = ('Resize', 'Crop', 'Flip', 'Rotate', 'Rotation', 'Pad', 'Mosaic')

_WHERE = 'model.data_preprocessor'

_Labels = Iterator[tuple[str, str, int]]
"""The place of a label in the config, its key, and the label."""


def check_zero_label(data: list[LoadedDataset]) -> Iterator[Finding]:
    """Compare the reduce_zero_label of data sets with their pipelines, and with each other."""
    reduces = [
        (dataset, bool(dataset.built.reduce_zero_label))
        for dataset in data
        if dataset.built is not None
    ]
    for dataset, reduced in reduces:
        for split, pipeline in dataset.pipelines.items():
            loading = loading_of(pipeline)
            stated = loading.get('reduce_zero_label')
            if stated not in (None, reduced) and type_name(loading) == 'LoadAnnotations':
                yield error(
                    split,
                    f'reduce_zero_label is {reduced} for the data set, '
                    f'{stated} for LoadAnnotations',
                    'mmseg refuses to load: remove it from LoadAnnotations, which then follows',
                )
    for other, reduced in reduces[1:]:
        first, expected = reduces[0]
        if reduced != expected:
            # Right if the masks of one begin at 1 and those of the other at 0.
            yield warning(
                other.name,
                f'reduce_zero_label is {reduced}, that of {first.name} {expected}',
                'set both to the same value, unless their masks begin at different values: the '
                'labels of one would be shifted against the other',
            )
    if len({reduced for _, reduced in reduces}) == 1:
        value = '1, 0 is ignored' if reduces[0][1] else '0'
        yield ok('reduce_zero_label', f'the first class has the value {value}')


def ignored_label(view: ConfigView) -> int:
    """The label that a segmenter's loss ignores."""
    return next((label for _, _, label in _of_heads(view)), IGNORED)


def check_ignored(data: list[LoadedDataset], view: ConfigView) -> Iterator[Finding]:
    """Compare heads, padding, evaluators, data sets and pipelines with the first head."""
    if not any(map(has_masks, data)):
        # Depths have no label.
        return
    label = ignored_label(view)
    advice = (
        'pixels without a class would count in one place and not in the other: set both to the '
        'same value'
    )
    found = [
        error(where, f'{name} is {other}, the ignore_index of the loss {label}', advice)
        for where, name, other in _stated_labels(data, view)
        if other != label
    ]
    yield from found or [ok('ignore_index', f'{label} everywhere')]


def _of_heads(view: ConfigView) -> _Labels:
    for path, head in dicts_within(view.model, 'model'):
        label = head.get('ignore_index', IGNORED)
        # None is for losses that use a mask instead.
        if re.fullmatch(r'model\.(decode|auxiliary)_head(\[\d+\])?', path) and label is not None:
            yield path, 'ignore_index', label


def _stated_labels(data: list[LoadedDataset], view: ConfigView) -> _Labels:
    yield from _of_heads(view)
    yield _WHERE, 'seg_pad_val', view.preprocessor.get('seg_pad_val', IGNORED)
    for split in ('val', 'test'):
        for evaluator in view.split(split).evaluators:
            if type_name(evaluator) == 'IoUMetric':
                label = evaluator.get('ignore_index', IGNORED)
                yield split, "the evaluator's ignore_index", label
    # mmseg does not use the defaults of data sets and transforms: only stated labels count.
    for dataset in data:
        steps = ((type_name(step), step) for step in dataset.data_set.pipeline)
        for whose, stated in (('the data set', dataset.settings), *steps):
            for key in ('ignore_index', 'seg_pad_val'):
                if key in stated:
                    yield dataset.name, f"{whose}'s {key}", stated[key]


def check_loading(data: list[LoadedDataset], view: ConfigView) -> Iterator[Finding]:
    """Check that masks are loaded, and at the right place."""
    for dataset in data:
        for split, pipeline in dataset.pipelines.items():
            if not dataset.is_left_out and pipeline and needs_masks(view, split):
                yield from _loading(split, pipeline)


def _loading(split: str, pipeline: tuple[Mapping, ...]) -> Iterator[Finding]:
    loading = loading_of(pipeline)
    if not loading:
        advice = "add dict(type='LoadAnnotations') after the loading of images"
        yield error(split, 'the pipeline loads no masks', advice)
        return
    place = pipeline.index(loading)
    steps = pipeline[:place] if split == 'train' else pipeline[place:]
    moving = [name for name in map(type_name, steps) if any(part in name for part in _MOVING)]
    if moving and split == 'train':
        what = f'{first_few(moving)} before LoadAnnotations: images are changed, and masks are not'
        yield error(split, what, 'load annotations right after the images')
    elif moving:
        what = (
            f'{first_few(moving)} after LoadAnnotations: masks are changed, and predictions have '
            'the size of the original images'
        )
        yield error(split, what, 'evaluation would fail: load annotations after it')


def check_crops(data: list[LoadedDataset], view: ConfigView) -> Iterator[Finding]:
    """Compare the crops of the training pipeline with the padded size of a batch."""
    preprocessor = view.preprocessor
    if type_name(preprocessor) != 'SegDataPreProcessor':
        yield note(_WHERE, 'is not a SegDataPreProcessor: its size was not compared with the crops')
        return
    pipelines = [(dataset.name, dataset.data_set.pipeline) for dataset in data if dataset.trains]
    crops = [_last_size(pipeline) for _, pipeline in pipelines]
    example = next(filter(None, crops), (512, 512))
    given = [key for key in ('size', 'size_divisor') if preprocessor.get(key) is not None]
    if len(given) != 1:
        what = 'has neither size nor size_divisor' if not given else 'has size and size_divisor'
        advice = f'mmseg needs one of the two to pad a batch: write size={example}'
        yield error(_WHERE, what, advice)
        return
    size = _pair(preprocessor.get('size'))
    if given == ['size'] and size is None:
        what = f'size is {preprocessor.size!r}, not (height, width) in pixels'
        yield error(_WHERE, what, f'write size={example}')
        return
    batch = view.train.batch_size
    for (name, pipeline), crop in zip(pipelines, crops, strict=True):
        if crop is not None:
            yield _compared(name, crop, size)
        elif any('Crop' in step or 'Resize' in step for step in map(type_name, pipeline)):
            yield note(name, 'the size of the crops is not known')
        elif batch > 1:
            yield warning(
                name,
                f'the pipeline does not crop images to a fixed size; {_WHERE} only pads smaller '
                'ones',
                'images of different sizes cannot be batched: add '
                "dict(type='RandomCrop', crop_size=...)",
            )


def _compared(where: str, crop: tuple[int, int], size: tuple[int, int] | None) -> Finding:
    """Compare crops with the size of a batch, both (height, width); None if it is not fixed."""
    what = f'crops are {size_text(crop)} (height x width)'
    if size in (None, crop):
        return ok(where, what)
    if crop[0] > size[0] or crop[1] > size[1]:
        return error(
            where,
            f'{what}, larger than the {size_text(size)} (height x width) of {_WHERE}.size',
            'larger crops are not padded, and smaller images cannot be batched with them: set both '
            'to the same (height, width)',
        )
    return note(where, f'{what}, padded to {size_text(size)}, which costs time and memory')


def _last_size(pipeline: tuple[Mapping, ...]) -> tuple[int, int] | None:
    """Largest (height, width) in pixels of a pipeline's output; None if unknown."""
    size = None
    for step in pipeline:
        name = type_name(step)
        if name == 'RandomCrop':
            size = _pair(step.get('crop_size'))
        elif name == 'Resize' and not step.get('keep_ratio') and _pair(step.get('scale')):
            # A scale is (width, height), a crop (height, width).
            size = _pair(step.scale)[::-1]
        elif 'Resize' in name or 'Crop' in name:
            size = None
    return size


def _pair(size: object) -> tuple[int, int] | None:
    """A size as two integers; None if it is not a size."""
    if isinstance(size, int):
        return size, size
    is_pair = isinstance(size, (list, tuple)) and len(size) == 2
    return tuple(size) if is_pair and all(isinstance(side, int) for side in size) else None
