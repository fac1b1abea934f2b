"""What a config says about where training starts from: a backbone, a whole model, or nothing."""

import os
from collections.abc import Mapping

from mmengine.config import Config

from ptnt_mm.config.hosts import scope_of
from ptnt_mm.explain.registered import arguments_of, classes_named
from ptnt_mm.models.backbone import Backbone
from ptnt_mm.utils.errors import UserError
from ptnt_mm.weights.pretrained import pretrained_init
from ptnt_mm.weights.published import no_such_weights


def use_pretrained(config: Config, path: str) -> None:
    """Start the backbone from weights, and freeze the BatchNorm of a PyramidTNT's stem.

    A ``norm_cfg`` or a ``norm_eval`` in the config takes precedence.

    Args:
        config: Changed in place.
        path: A file, an address, or a name of ``ptnt weights``.

    Raises:
        UserError: if the config's model has no backbone.
    """
    backbone = config.model.get('backbone')
    if backbone is None:
        raise UserError(f"`pretrained`: the config's model {config.model.type} has no backbone")
    backbone.init_cfg = dict(type='Pretrained', checkpoint=path)
    if _has_batch_norm(config):
        freeze_batch_norm(backbone)


def check_start(config: Config) -> str | None:
    """Check that the starting weights exist, and return their file or address.

    Raises:
        UserError: if a file is missing, or if a frozen part starts from random initialisation.
    """
    backbone = config.model.get('backbone') or {}
    weights = starting_weights(config)
    if weights is not None:
        if '://' not in weights and not os.path.isfile(os.path.expanduser(weights)):
            raise UserError(no_such_weights(weights))
        return weights
    trains = backbone.get('frozen_stages', -1) < 0 and not backbone.get('norm_eval')
    trains = trains and (backbone.get('norm_cfg') or {}).get('requires_grad', True)
    if not trains and is_of_family(backbone, scope_of(config)):
        remedy = 'model.backbone.frozen_stages=-1'
        if _has_batch_norm(config):
            norms = 'model.backbone.norm_eval=False, model.backbone.norm_cfg.requires_grad=True'
            remedy = f'{norms} and {remedy}'
        raise UserError(
            'the stem is frozen but starts from random initialisation, so it would never learn: '
            f'pass weights with `pretrained=PATH`, or set {remedy}'
        )
    return None


def starting_weights(config: Config) -> str | None:
    """The file that training starts from, or None for random initialisation.

    Raises:
        CheckpointError: if ``init_cfg`` is of type Pretrained but has no file.
    """
    if config.get('load_from'):
        return config.load_from
    init = pretrained_init((config.model.get('backbone') or {}).get('init_cfg'))
    return init and str(init['checkpoint'])


def _has_batch_norm(config: Config) -> bool:
    """Whether the backbone is the one of the family with BatchNorm: its class takes norm_eval."""
    backbone, scope = config.model.backbone, scope_of(config)
    return is_of_family(backbone, scope) and all(
        'norm_eval' in arguments_of(cls).parameters
        for cls in classes_named(backbone.get('type'), scope)
    )


def freeze_batch_norm(backbone: dict) -> None:
    """Keep the statistics of the pretraining: a batch of 2 images is too small for new ones.

    Except where the config decides otherwise: with SyncBN, which sees all batches, with GroupNorm,
    which has no statistics, and with ``norm_eval`` or ``requires_grad``.
    """
    norm_cfg = backbone.get('norm_cfg') or dict(type='BN')
    if norm_cfg.get('type') == 'BN' and backbone.get('norm_eval', True):
        backbone.norm_cfg = dict(requires_grad=False) | norm_cfg
        backbone.norm_eval = True


def is_of_family(settings: Mapping, scope: str) -> bool:
    """Whether settings describe a backbone of this package; mmpretrain has a different TNT."""
    classes = classes_named(settings.get('type'), scope)
    return any(isinstance(cls, type) and issubclass(cls, Backbone) for cls in classes)
