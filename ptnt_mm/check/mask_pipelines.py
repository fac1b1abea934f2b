"""A segmenter's pipelines: masks are loaded and go with their images; crops make a batch."""

from collections.abc import Iterator, Mapping

from mmengine.config import Config

from ptnt_mm.check.images import size_text
from ptnt_mm.check.mask_lists import SegmentationData, loading_of, needs_masks
from ptnt_mm.check.weights import preprocessor_of
from ptnt_mm.engine.config import kind_of
from ptnt_mm.utils.findings import Finding, error, note, sound, warning
from ptnt_mm.utils.text import some

# Parts of the names of transforms that move pixels.
_MOVING = ('Resize', 'Crop', 'Flip', 'Rotate', 'Rotation', 'Pad', 'Mosaic')

_WHERE = 'model.data_preprocessor'


def check_loading(data: list[SegmentationData], config: Config) -> Iterator[Finding]:
    """Look for the loading of masks, and at its place."""
    for one in data:
        for split, pipeline in one.pipelines.items():
            if not one.is_left_out and pipeline and needs_masks(config, split):
                yield from _loading(split, pipeline)


def check_crops(data: list[SegmentationData], config: Config) -> Iterator[Finding]:
    """Compare what the training pipeline cuts out with what a batch is padded to."""
    preprocessor = preprocessor_of(config)
    if kind_of(preprocessor) != 'SegDataPreProcessor':
        yield note(_WHERE, 'is not a SegDataPreProcessor: its size was not compared with the crops')
        return
    size = _pair(preprocessor.get('size'))
    crops = [(one, _last_size(one.data_set.pipeline)) for one in data if one.trains]
    fallback = next((crop for _, crop in crops if crop), (512, 512))
    given = [key for key in ('size', 'size_divisor') if preprocessor.get(key) is not None]
    if len(given) != 1:
        what = 'has neither size nor size_divisor' if not given else 'has size and size_divisor'
        advice = f'mmseg needs one of the two to pad a batch: write size={fallback}'
        yield error(_WHERE, what, advice)
    elif given == ['size'] and size is None:
        what = f'size is {preprocessor.size!r}, not (height, width) in pixels'
        yield error(_WHERE, what, f'write size={fallback}')
    else:
        for one, crop in crops:
            found = _uncut(one, config) if crop is None else _cut(one, crop, size)
            if found:
                yield found


def _loading(split: str, pipeline: tuple[Mapping, ...]) -> Iterator[Finding]:
    loading = loading_of(pipeline)
    if loading is None:
        advice = "add dict(type='LoadAnnotations') behind the loading of images"
        yield error(split, 'the pipeline loads no masks', advice)
        return
    place = pipeline.index(loading)
    before, behind = _names_of_moving(pipeline[:place]), _names_of_moving(pipeline[place:])
    if split == 'train' and before:
        what = f'{some(before)} before LoadAnnotations: images are changed, and masks are not'
        yield error(split, what, 'load annotations right behind the images')
    elif split != 'train' and behind:
        what = (
            f'{some(behind)} behind LoadAnnotations: masks are changed, and predictions have the '
            'size of the images as they were'
        )
        yield error(split, what, 'evaluation would break off: load annotations behind it')


def _names_of_moving(steps: tuple[Mapping, ...]) -> list[str]:
    return [name for name in map(kind_of, steps) if any(part in name for part in _MOVING)]


def _cut(data: SegmentationData, crop: tuple[int, int], size: tuple[int, int] | None) -> Finding:
    """Compare crops with the size of a batch, both (height, width); None if it is not fixed."""
    what = f'crops are {_text(crop)}'
    if size in (None, crop):
        return sound(data.name, what)
    if crop[0] > size[0] or crop[1] > size[1]:
        return error(
            data.name,
            f'{what}, larger than the {_text(size)} of {_WHERE}.size',
            'larger crops are not padded, and smaller images make no batch with them: set both '
            'alike, as (height, width)',
        )
    advice = 'set both alike, unless the padding is meant: it costs time and memory'
    return note(data.name, f'{what}, padded to the {_text(size)} of {_WHERE}.size', advice)


def _uncut(data: SegmentationData, config: Config) -> Finding | None:
    """A pipeline that brings images to no size that is known."""
    names = [kind_of(step) for step in data.data_set.pipeline]
    if any('Crop' in name or 'Resize' in name for name in names):
        return note(data.name, 'the size of the crops is not known')
    if config.train_dataloader.get('batch_size', 1) <= 1:
        return None
    what = f'the pipeline cuts images to no size; {_WHERE} pads smaller ones only'
    advice = "images of different sizes make no batch: add dict(type='RandomCrop', crop_size=...)"
    return warning(data.name, what, advice)


def _last_size(pipeline: tuple[Mapping, ...]) -> tuple[int, int] | None:
    """(height, width) in pixels, at most, of what leaves a pipeline; None if it is not known."""
    size = None
    for step in pipeline:
        name = kind_of(step)
        if name == 'RandomCrop':
            size = _pair(step.get('crop_size'))
        elif name == 'Resize' and not step.get('keep_ratio') and _pair(step.get('scale')):
            # A scale is (width, height), a crop (height, width).
            size = _pair(step.scale)[::-1]
        elif 'Resize' in name or 'Crop' in name:
            size = None
    return size


def _pair(size: object) -> tuple[int, int] | None:
    """A size as two numbers; None if it is not a size."""
    if isinstance(size, int):
        return size, size
    is_pair = isinstance(size, (list, tuple)) and len(size) == 2
    return tuple(size) if is_pair and all(isinstance(side, int) for side in size) else None


def _text(size: tuple[int, int]) -> str:
    """Height and width for a sentence."""
    return f'{size_text(size)} (height x width)'
