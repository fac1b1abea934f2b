"""The strides of the maps that heads get, measured, and those that the heads believe in."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import MethodType

import torch
from mmengine.config import Config
from mmengine.registry import DefaultScope
from torch import Tensor, nn

from ptnt_mm.utils.findings import Finding, error, note, sound

_SIDE = 256
"""Of the square image that is tried, in pixels, where a model takes any."""

_ADVICE = (
    'give the head the strides of its maps, or bring the maps to those of the head: behind a '
    'PyramidTNT with out_indices=(1, 2, 3) a TransposedConvNeck halves them'
)

Strides = list[tuple[str, list[float], list[float]]]
"""Of a part of the model: its path, the strides it believes in, and those of its maps."""


class _SeenEnoughError(Exception):
    """Ends a run as soon as what comes next is of no interest."""


def check_strides(config: Config, model: nn.Module) -> Iterator[Finding]:
    """Run the model on a small image; compare what comes to its heads with what they expect.

    Generators of anchors and points and the extractors of regions have strides of their own, and
    a head with wrong ones trains without complaint, on places that are elsewhere in the image.

    Args:
        config: The config.
        model: Its model. Its weights do not matter.
    """
    if not any(_strides_of(module) for _, module in _believers(model)):
        return
    seen, failure = _seen(config, model)
    for where, believed, measured in seen:
        # Sides are rounded up, once or more: a level is wrong if it is so by half as much again,
        # and the smallest maps say nothing.
        levels = [pair for pair in zip(believed, measured, strict=False) if pair[1] <= _SIDE / 4]
        if all(2 / 3 < stride / real < 3 / 2 for stride, real in levels):
            yield sound(where, f'takes maps of strides {_listed(believed)}')
        else:
            what = f'expects strides {_listed(believed)}, its maps have {_listed(measured)}'
            yield error(where, what, _ADVICE)
    if not seen:
        yield note('model', f'strides were not compared: {failure or "no head uses its own"}')


def _believers(model: nn.Module) -> Iterator[tuple[str, object]]:
    """Everything in a model that has strides of its own, with its path."""
    for name, module in model.named_modules():
        if hasattr(module, 'featmap_strides'):
            yield f'model.{name}', module
        for key, value in vars(module).items():
            if hasattr(value, 'grid_priors'):
                yield f'model.{name}.{key}', value


def _strides_of(believer: object) -> list[float]:
    strides = getattr(believer, 'featmap_strides', None) or getattr(believer, 'strides', [])
    return [float(max(one) if isinstance(one, Sequence) else one) for one in strides]


def _side_of(model: nn.Module) -> int:
    """The side of the images that a model is made for, as SSD's anchors say it."""
    return next(
        (one.input_size for _, one in _believers(model) if hasattr(one, 'input_size')), _SIDE
    )


def _seen(config: Config, model: nn.Module) -> tuple[Strides, str]:
    """What heads and extractors get of an image, until a region is cut; and what ended it else."""
    seen: Strides = []
    side = _side_of(model)
    scope = config.get('default_scope') or 'mmengine'
    was_training = model.training
    try:
        with (
            DefaultScope.overwrite_default_scope(scope),
            warnings.catch_warnings(),
            _spies(model, side, seen),
            torch.no_grad(),
        ):
            warnings.simplefilter('ignore')
            _predict(model.eval(), side)
    except _SeenEnoughError:
        pass
    except Exception as err:  # a model may want more than an image
        return seen, (str(err).strip().splitlines() or [type(err).__name__])[0]
    finally:
        model.train(was_training)
    return seen, ''


def _predict(model: nn.Module, side: int) -> None:
    from mmdet.structures import DetDataSample

    shape = (side, side)
    about = dict(img_shape=shape, pad_shape=shape, batch_input_shape=shape, ori_shape=shape)
    sample = DetDataSample(metainfo=dict(about, scale_factor=(1.0, 1.0)))
    image = torch.zeros(1, 3, *shape, device=next(model.parameters()).device)
    model.predict(image, [sample])


def _listed(strides: Sequence[float]) -> str:
    return ', '.join(f'{stride:.3g}' for stride in strides)


@contextmanager
def _spies(model: nn.Module, side: int, seen: Strides) -> Iterator[None]:
    """Note what heads and extractors are given."""
    handles, wrapped = [], []

    def remember(where: str, believer: object, sizes: Sequence[Sequence[int]]) -> None:
        measured = [side / max(size[-2:]) for size in sizes]
        if where not in [path for path, _, _ in seen]:
            seen.append((where, _strides_of(believer), measured))

    for where, believer in _believers(model):
        if isinstance(believer, nn.Module):

            def look(module: nn.Module, args: tuple[Sequence[Tensor]], where: str = where) -> None:
                remember(where, module, [level.shape for level in args[0]])
                raise _SeenEnoughError

            handles.append(believer.register_forward_pre_hook(look))
        else:
            original = believer.grid_priors

            def grid_priors(self, featmap_sizes, *args, where=where, original=original, **kwargs):
                remember(where, self, featmap_sizes)
                return original(featmap_sizes, *args, **kwargs)

            believer.grid_priors = MethodType(grid_priors, believer)
            wrapped.append(believer)
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
        for believer in wrapped:
            del believer.grid_priors
