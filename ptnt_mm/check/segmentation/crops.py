"""The size of crops, and the one that the preprocessor pads batches to."""

from collections.abc import Iterator, Mapping

from mmengine.config import Config

from ptnt_mm.check.images import size_text
from ptnt_mm.check.segmentation.data import SegmentationData
from ptnt_mm.check.settings import preprocessor_of
from ptnt_mm.engine.config import kind_of
from ptnt_mm.utils.findings import Finding, error, note, sound, warning

_WHERE = 'model.data_preprocessor'


def check_crops(data: list[SegmentationData], config: Config) -> Iterator[Finding]:
    """Compare what the training pipeline cuts out with what a batch is padded to."""
    preprocessor = preprocessor_of(config)
    if kind_of(preprocessor) != 'SegDataPreProcessor':
        yield note(_WHERE, 'is no SegDataPreProcessor: its size was not compared with the crops')
        return
    size = _pair(preprocessor.get('size'))
    crops = [_last_size(one.data_set.pipeline) for one in data if one.trains]
    fallback = next((crop for crop in crops if crop), (512, 512))
    given = [key for key in ('size', 'size_divisor') if preprocessor.get(key) is not None]
    if len(given) != 1:
        what = 'has neither size nor size_divisor' if not given else 'has size and size_divisor'
        advice = f'mmseg needs one of the two to pad a batch: write size={fallback}'
        yield error(_WHERE, what, advice)
    elif given == ['size'] and size is None:
        what = f'size is {preprocessor.size!r}, not (height, width) in pixels'
        yield error(_WHERE, what, f'write size={fallback}')
    else:
        for one in data:
            if one.trains:
                yield from _compared(one, size, config)


def _compared(
    data: SegmentationData, size: tuple[int, int] | None, config: Config
) -> Iterator[Finding]:
    crop = _last_size(data.data_set.pipeline)
    if crop is None:
        yield from _uncut(data, config)
    elif size is not None and (crop[0] > size[0] or crop[1] > size[1]):
        yield error(
            data.name,
            f'crops are {_text(crop)}, larger than the {_text(size)} of {_WHERE}.size',
            'larger crops are not padded, and smaller images make no batch with them: set both '
            'alike, as (height, width)',
        )
    elif size is not None and crop != size:
        yield note(
            data.name,
            f'crops are {_text(crop)}, padded to the {_text(size)} of {_WHERE}.size',
            'set both alike, unless the padding is meant: it costs time and memory',
        )
    else:
        yield sound(data.name, f'crops are {_text(crop)}')


def _uncut(data: SegmentationData, config: Config) -> Iterator[Finding]:
    """A pipeline that brings images to no size that is known."""
    names = [kind_of(step) for step in data.data_set.pipeline]
    if any('Crop' in name or 'Resize' in name for name in names):
        yield note(data.name, 'the size of the crops is not known')
    elif config.train_dataloader.get('batch_size', 1) > 1:
        yield warning(
            data.name,
            f'the pipeline cuts images to no size; {_WHERE} pads smaller ones only',
            "images of different sizes make no batch: add dict(type='RandomCrop', crop_size=...)",
        )


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
    """A size as two numbers; None if it is no size."""
    if isinstance(size, int):
        return size, size
    is_pair = isinstance(size, (list, tuple)) and len(size) == 2
    return tuple(size) if is_pair and all(isinstance(side, int) for side in size) else None


def _text(size: tuple[int, int]) -> str:
    """Height and width for a sentence."""
    return f'{size_text(size)} (height x width)'
