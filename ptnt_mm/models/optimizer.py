"""Parameter groups of an optimizer: merged, checked, and optionally by depth."""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from mmengine.optim import DefaultOptimWrapperConstructor, OptimWrapper
from mmengine.registry import OPTIMIZERS
from mmengine.runner.amp import autocast
from torch import nn

from ptnt_mm.registry import OPTIM_WRAPPER_CONSTRUCTORS, OPTIM_WRAPPERS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.numbers import is_number

Group = dict[str, Any]
"""Parameters, under 'params', and their settings, such as 'lr' and 'weight_decay'."""

UNMATCHED_KEY = 'matches no parameter name, so it would have no effect'
"""Message about :func:`unmatched_custom_keys`."""


@OPTIM_WRAPPER_CONSTRUCTORS.register_module()
class CheckedOptimWrapperConstructor(DefaultOptimWrapperConstructor):
    """MMEngine's default constructor with checked custom keys and merged groups.

    MMEngine creates a group for every parameter, which keeps fused and foreach optimizers from
    processing many at once. Its ``paramwise_cfg`` keeps its meaning with two exceptions. Parameters
    that a module names in ``no_weight_decay()``, as in timm, are not decayed unless a custom key
    sets their ``decay_mult``. And where a custom key does not set the weight decay,
    ``flat_decay_mult`` applies there too.
    """

    def __call__(self, model: nn.Module) -> OptimWrapper:
        """Build the optimizer of a model, or of a wrapper's model.

        Raises:
            UserError: if a custom key matches no parameter name.
        """
        keys = self.paramwise_cfg.get('custom_keys') or {}
        spared = {
            name: dict(decay_mult=0.0) | keys.get(_longest_match(keys, name), {})
            for name in undecayed(getattr(model, 'module', model))
        }
        if spared:
            self.paramwise_cfg = dict(self.paramwise_cfg, custom_keys=dict(keys, **spared))
        return super().__call__(model)

    def add_params(
        self,
        params: list[Group],
        module: nn.Module,
        prefix: str = '',
        is_dcn_module: bool | None = None,
    ) -> None:
        """Append the groups of a module; MMEngine calls this again for each of its children.

        Raises:
            UserError: if a custom key matches no parameter name.
        """
        super().add_params(params, module, prefix, is_dcn_module)
        if not prefix:
            self._check_custom_keys(module)
            self._spare_flat(params)
            params[:] = _joined(self.adjust(params, module))

    def adjust(self, groups: list[Group], model: nn.Module) -> list[Group]:
        """Change the groups, one per parameter, before they are merged; for subclasses."""
        return groups

    def _validate_cfg(self) -> None:
        if self.base_wd is None:
            self.base_wd = _default_decay(self.optimizer_cfg.get('type'))
        super()._validate_cfg()

    def _spare_flat(self, groups: list[Group]) -> None:
        multiplier = self.paramwise_cfg.get('flat_decay_mult')
        for group in groups:
            custom = 'lr_mult' in group and 'decay_mult' not in group
            if custom and None not in (multiplier, self.base_wd) and group['params'][0].dim() == 1:
                group['weight_decay'] = self.base_wd * multiplier

    def _check_custom_keys(self, model: nn.Module) -> None:
        if unmatched := unmatched_custom_keys(self.paramwise_cfg, model):
            names = [name for name, _ in model.named_parameters()]
            raise UserError(
                f'optim_wrapper.paramwise_cfg.custom_keys: {unmatched[0]!r} {UNMATCHED_KEY}. Names '
                f'look like {names[0]}, {names[-1]}'
            )


@OPTIM_WRAPPER_CONSTRUCTORS.register_module()
class LayerDecayOptimWrapperConstructor(CheckedOptimWrapperConstructor):
    """Lower learning rates for layers nearer the image.

    A parameter of the backbone at depth d of D learns at ``lr * decay_rate ** (D - 1 - d)``;
    ``paramwise_cfg=dict(decay_rate=...)`` sets the rate, besides MMEngine's other keys. The
    backbone defines the depths in ``get_layer_depth(name, prefix) -> (d, D)``, as PyramidTNT and
    the backbones of mmpretrain do.
    """

    def adjust(self, groups: list[Group], model: nn.Module) -> list[Group]:
        """Scale the learning rates of the backbone.

        Raises:
            UserError: if ``decay_rate`` is missing or not in (0, 1], or if the model's backbone
                does not define depths.
        """
        decay_rate = self.paramwise_cfg.get('decay_rate')
        if not is_number(decay_rate) or not 0 < decay_rate <= 1:
            raise UserError(
                f'optim_wrapper.paramwise_cfg.decay_rate is {decay_rate!r}: expected a number '
                'above 0 and at most 1, such as 0.9'
            )
        backbone = getattr(model, 'backbone', None)
        if not hasattr(type(backbone), 'get_layer_depth'):
            raise UserError(
                f'{type(backbone).__name__} does not define the depth of its layers: implement '
                'get_layer_depth(name, prefix), or use another optim_wrapper.constructor'
            )
        prefix = 'backbone.'
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        for group in groups:
            name = names[id(group['params'][0])]
            if name.startswith(prefix):
                depth, depths = backbone.get_layer_depth(name, prefix)
                group['lr'] = group.get('lr', self.base_lr) * decay_rate ** (depths - 1 - depth)
        return groups


def undecayed(model: nn.Module) -> list[str]:
    """The parameters that a model's modules name in ``no_weight_decay()``."""
    declared = {
        f'{prefix}.{name}' if prefix else name
        for prefix, module in model.named_modules()
        if callable(getattr(module, 'no_weight_decay', None))
        for name in module.no_weight_decay()
    }
    return [name for name, _ in model.named_parameters() if name in declared]


def unmatched_custom_keys(paramwise_cfg: Mapping, model: nn.Module) -> list[str]:
    """The custom keys that are part of no parameter's name."""
    # As MMEngine compares them, with a dot before the name.
    names = [f'.{name}' for name, _ in model.named_parameters()]
    keys = paramwise_cfg.get('custom_keys') or {}
    return [key for key in keys if not any(key in name for name in names)]


def _default_decay(optimizer: str | type | None) -> float | None:
    """The weight decay of an optimizer for which none is set; None if it has no such argument."""
    if isinstance(optimizer, str):
        with OPTIMIZERS.switch_scope_and_registry(None) as registry:
            optimizer = registry.get(optimizer)
    argument = optimizer and inspect.signature(optimizer).parameters.get('weight_decay')
    return argument.default if argument and is_number(argument.default) else None


def _longest_match(keys: Iterable[str], name: str) -> str | None:
    """The custom key that MMEngine applies to a parameter."""
    return max((key for key in sorted(keys) if key in f'.{name}'), key=len, default=None)


def _joined(groups: list[Group]) -> list[Group]:
    """Merge groups with the same settings, in the order of their first parameters."""
    joined: dict[tuple, Group] = {}
    for group in groups:
        settings = {key: value for key, value in group.items() if key != 'params'}
        key = tuple(sorted((name, repr(value)) for name, value in settings.items()))
        same = joined.setdefault(key, dict(params=[], **settings))
        same['params'] += group['params']
    return list(joined.values())


@OPTIM_WRAPPERS.register_module()
class Bfloat16OptimWrapper(OptimWrapper):
    """Compute in bfloat16 where torch's autocast does, on any device.

    MMEngine's ``AmpOptimWrapper`` needs an accelerator. bfloat16 has the range of float32, so
    losses are not scaled.
    """

    @contextmanager
    def optim_context(self, model: nn.Module) -> Iterator[None]:
        """The context of a forward pass."""
        with super().optim_context(model), autocast(dtype=torch.bfloat16):
            yield
