"""The strides of the maps that heads get, measured, and those that the heads are set to."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from mmengine.config import Config
from mmengine.registry import DefaultScope
from torch import nn

from ptnt_mm.engine.hosts import scope_of
from ptnt_mm.utils.findings import Finding, error, note, sound

_SIDE = 256  # of the square image that is tried, in pixels, where a model takes any

_ADVICE = (
    'give the head the strides of its maps, or bring the maps to those of the head: behind a '
    'PyramidTNT with out_indices=(1, 2, 3) a TransposedConvNeck halves them'
)


class _SeenEnoughError(Exception):
    """Ends a run early, as soon as enough has been seen."""


def check_strides(config: Config, model: nn.Module) -> Iterator[Finding]:
    """Run the model on a small image; compare what comes to its heads with what they expect.

    Generators of anchors and points and the extractors of regions have strides of their own, and
    a head with wrong ones trains without complaint, for the wrong places in the image.

    Args:
        config: The config.
        model: Its model. Its weights do not matter.
    """
    parts = dict(_parts_with_strides(model))
    if not any(map(_strides_of, parts.values())):
        return
    seen, failure = _strides_of_maps(config, model, parts)
    for where, measured in seen.items():
        expected = _strides_of(parts[where])
        # The sides of maps are rounded up, perhaps several times. So a stride is wrong from a
        # factor of 1.5 on, and the smallest maps are left out.
        levels = [pair for pair in zip(expected, measured, strict=False) if pair[1] <= _SIDE / 4]
        if all(2 / 3 < stride / real < 3 / 2 for stride, real in levels):
            yield sound(where, f'takes maps of strides {_listed(expected)}')
        else:
            what = f'expects strides {_listed(expected)}, its maps have {_listed(measured)}'
            yield error(where, what, _ADVICE)
    if not seen:
        yield note('model', f'strides were not compared: {failure or "no head uses its own"}')


def _parts_with_strides(model: nn.Module) -> Iterator[tuple[str, Any]]:
    """The extractors of regions and the generators of anchors and points, with their paths."""
    for name, module in model.named_modules():
        if hasattr(module, 'featmap_strides'):
            yield f'model.{name}', module
        for key, value in vars(module).items():
            if hasattr(value, 'grid_priors'):
                yield f'model.{name}.{key}', value


def _strides_of(part: Any) -> list[float]:
    strides = getattr(part, 'featmap_strides', None) or getattr(part, 'strides', [])
    return [float(max(one) if isinstance(one, Sequence) else one) for one in strides]


def _strides_of_maps(
    config: Config, model: nn.Module, parts: dict[str, Any]
) -> tuple[dict[str, list[float]], str]:
    """The strides of the maps that parts get of an image, until a region is cut.

    Returns:
        The strides by the part's path, and why the run ended early; empty if it did not.
    """
    seen: dict[str, list[float]] = {}
    # SSD's anchors are for images of one size.
    side = next((part.input_size for part in parts.values() if hasattr(part, 'input_size')), _SIDE)
    was_training = model.training
    with ExitStack() as stack:
        stack.callback(model.train, was_training)
        scope = scope_of(config)
        stack.enter_context(DefaultScope.overwrite_default_scope(scope))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter('ignore')
        for where, part in parts.items():
            _watch(stack, where, part, side, seen)
        try:
            _predict(model.eval(), side)
        except _SeenEnoughError:
            pass
        except Exception as err:  # a model may want more than an image
            return seen, (str(err).strip().splitlines() or [type(err).__name__])[0]
    return seen, ''


def _watch(stack: ExitStack, where: str, part: Any, side: int, seen: dict) -> None:
    """Note the strides of the maps that a part of the model gets, until the stack is closed."""
    is_extractor = isinstance(part, nn.Module)
    name = 'forward' if is_extractor else 'grid_priors'
    original = getattr(part, name)

    def watched(levels: Sequence, *args: Any, **kwargs: Any) -> Any:
        sizes = [level.shape[-2:] if is_extractor else level for level in levels]
        seen.setdefault(where, [side / max(size[-2:]) for size in sizes])
        if is_extractor:
            raise _SeenEnoughError
        return original(levels, *args, **kwargs)

    setattr(part, name, watched)
    stack.callback(delattr, part, name)


@torch.no_grad()
def _predict(model: nn.Module, side: int) -> None:
    from mmdet.structures import DetDataSample

    shape = (side, side)
    about = dict(img_shape=shape, pad_shape=shape, batch_input_shape=shape, ori_shape=shape)
    sample = DetDataSample(metainfo=dict(about, scale_factor=(1.0, 1.0)))
    image = torch.zeros(1, 3, *shape, device=next(model.parameters()).device)
    model.predict(image, [sample])


def _listed(strides: Sequence[float]) -> str:
    return ', '.join(f'{stride:.3g}' for stride in strides)
