"""Compare the measured strides of a model's maps with those that its heads expect."""

from collections.abc import Iterator, Sequence

import torch
from torch import nn

from ptnt_mm.check.trial.setup import undisturbed
from ptnt_mm.config.view import ConfigView
from ptnt_mm.explain.causes import one_line
from ptnt_mm.utils.findings import Finding, error, note, ok

_SIDE = 256  # side of the square test image, in pixels

_ADVICE = (
    'set the strides of the head to those of its maps, or resize the maps to those of the head: a '
    'TransposedConvNeck halves their strides'
)


def check_strides(view: ConfigView, model: nn.Module) -> Iterator[Finding]:
    """Run the backbone and the neck on a small image; compare the maps with what heads expect.

    Generators of anchors and points and extractors of regions have separate strides, and a head
    with wrong ones trains without an error, for the wrong places in the image.
    """
    strides = dict(_strides_of_parts(model))
    if not strides:
        return
    try:
        with undisturbed(view.scope), torch.no_grad():
            maps = model.eval().extract_feat(torch.zeros(1, 3, _SIDE, _SIDE))
    except Exception as err:  # a model may need more than an image
        yield note('model', f'strides were not compared: {one_line(err)}')
        return
    measured = [_SIDE / max(level.shape[-2:]) for level in maps]
    for where, expected in strides.items():
        # The sides of maps are rounded up, perhaps several times. So a stride is wrong if it
        # differs by a factor of 1.5, and the smallest maps are ignored.
        levels = [pair for pair in zip(expected, measured, strict=False) if pair[1] <= _SIDE / 4]
        if all(2 / 3 < stride / real < 3 / 2 for stride, real in levels):
            yield ok(where, f'takes maps of strides {_listed(expected)}')
        else:
            what = f'expects strides {_listed(expected)}, its maps have {_listed(measured)}'
            yield error(where, what, _ADVICE)


def _strides_of_parts(model: nn.Module) -> Iterator[tuple[str, list[float]]]:
    """The strides of the extractors of regions and the generators of anchors and points."""
    for name, module in model.named_modules():
        # HTC's semantic extractor takes the map of its semantic head.
        if hasattr(module, 'featmap_strides') and 'semantic' not in name:
            yield f'model.{name}', list(map(float, module.featmap_strides))
        # Semantic FPN enlarges each map by its stride over the first one.
        if hasattr(module, 'feature_strides'):
            yield f'model.{name}.feature_strides', list(map(float, module.feature_strides))
        for key in ('prior_generator', 'square_anchor_generator'):
            if hasattr(generator := getattr(module, key, None), 'strides'):
                pairs = (
                    pair if isinstance(pair, Sequence) else [pair] for pair in generator.strides
                )
                yield f'model.{name}.{key}', [float(max(pair)) for pair in pairs]


def _listed(strides: Sequence[float]) -> str:
    return ', '.join(f'{stride:.3g}' for stride in strides)
