"""Pipelines: masks are loaded, and go with the images through what changes their size."""

from collections.abc import Iterator, Mapping

from mmengine.config import Config

from ptnt_mm.check.segmentation.data import SegmentationData, loading_of, needs_masks
from ptnt_mm.engine.config import kind_of
from ptnt_mm.utils.findings import Finding, error
from ptnt_mm.utils.text import some

_MOVING = ('Resize', 'Crop', 'Flip', 'Rotate', 'Rotation', 'Pad', 'Mosaic')
"""Parts of the names of transforms that move pixels."""


def check_pipelines(data: list[SegmentationData], config: Config) -> Iterator[Finding]:
    """Look for the loading of masks, and at its place."""
    for one in data:
        if one.is_left_out:
            continue
        for split, pipeline in one.pipelines.items():
            if pipeline and needs_masks(config, split):
                yield from _check(split, pipeline)


def _check(split: str, pipeline: tuple[Mapping, ...]) -> Iterator[Finding]:
    loading = loading_of(pipeline)
    if loading is None:
        what = 'the pipeline loads no masks'
        yield error(split, what, "add dict(type='LoadAnnotations') behind the loading of images")
        return
    place = pipeline.index(loading)
    before, behind = _names_of_moving(pipeline[:place]), _names_of_moving(pipeline[place:])
    if split == 'train' and before:
        yield error(
            split,
            f'{some(before)} before LoadAnnotations: images are changed, and masks are not',
            'load annotations right behind the images',
        )
    elif split != 'train' and behind:
        yield error(
            split,
            f'{some(behind)} behind LoadAnnotations: masks are changed, and predictions have the '
            'size of the images as they were',
            'evaluation would break off: load annotations behind it',
        )


def _names_of_moving(steps: tuple[Mapping, ...]) -> list[str]:
    return [name for name in map(kind_of, steps) if any(part in name for part in _MOVING)]
