"""reduce_zero_label: the same wherever it is stated."""

from collections.abc import Iterator

from ptnt_mm.check.segmentation.data import SegmentationData, loading_of
from ptnt_mm.engine.config import kind_of
from ptnt_mm.utils.findings import Finding, error, sound, warning


def check_zero_label(data: list[SegmentationData]) -> Iterator[Finding]:
    """Compare data sets with their pipelines, and with each other."""
    built = [one for one in data if one.built is not None]
    for one in built:
        yield from _against_pipelines(one)
    for other in built[1:]:
        if _of(other) != _of(built[0]):
            # Right where the masks of one begin at 1 and those of the other at 0.
            yield warning(
                other.name,
                f'reduce_zero_label is {_of(other)}, that of {built[0].name} {_of(built[0])}',
                'set both alike, unless their masks begin at different values: the labels of one '
                'would be shifted against the other',
            )
    if len({_of(one) for one in built}) == 1:
        ignored, first = (', 0 is ignored', 1) if _of(built[0]) else ('', 0)
        yield sound('reduce_zero_label', f'the first class has the value {first}{ignored}')


def _against_pipelines(data: SegmentationData) -> Iterator[Finding]:
    for split, pipeline in data.pipelines.items():
        loading = loading_of(pipeline) or {}
        stated = loading.get('reduce_zero_label')
        if stated is not None and kind_of(loading) == 'LoadAnnotations' and stated != _of(data):
            yield error(
                split,
                f'reduce_zero_label is {_of(data)} for the data set, {stated} for LoadAnnotations',
                'mmseg refuses to load: leave it out of LoadAnnotations, which then follows',
            )


def _of(data: SegmentationData) -> bool:
    return bool(data.built.reduce_zero_label)
