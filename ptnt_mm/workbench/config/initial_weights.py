"""Where training starts from: weights of a backbone, of a whole model, or none."""

from ptnt_mm.utils.errors import UserError
from ptnt_mm.weights.pretrained import pretrained_init
from ptnt_mm.weights.published import require_weights
from ptnt_mm.workbench.config.view import ConfigView

_ADAPTED = (
    'checkpoints contain only the adapters of LoRAModel, so the config must name the weights of '
    "the network inside: set init_cfg=dict(type='Pretrained', checkpoint=PATH) in "
    'model.backbone.module, and norm_eval=True if that is a PyramidTNT with BatchNorm'
)


def use_pretrained(view: ConfigView, path: str) -> None:
    """Start the backbone from weights, and freeze the BatchNorm of a PyramidTNT's stem.

    A ``norm_cfg`` or a ``norm_eval`` in the config takes precedence.

    Args:
        view: Its config is changed.
        path: A file, an address, or a name of ``ptnt weights``.

    Raises:
        UserError: if the config's model has no backbone, or one with adapters.
    """
    if view.has_adapters:
        raise UserError(f'`pretrained={path}`: {_ADAPTED}')
    backbone = view.backbone
    if not backbone:
        raise UserError(f"`pretrained`: the config's model {view.model.type} has no backbone")
    _replace_weights(view, dict(type='Pretrained', checkpoint=path))
    if view.has_batch_norm:
        freeze_batch_norm(backbone)


def start_from_checkpoint(view: ConfigView) -> None:
    """Load no pretrained weights before a checkpoint, unless it contains only adapters."""
    if view.backbone and not view.has_adapters:
        _replace_weights(view, None)


def _replace_weights(view: ConfigView, init_cfg: dict | None) -> None:
    for owner in view.settings_with_pretrained:
        owner['pretrained'] = None
    view.backbone['init_cfg'] = init_cfg


def check_start(view: ConfigView) -> str | None:
    """Check that the starting weights exist, and return their file or address.

    Raises:
        UserError: if a file is missing, if a frozen part starts from random initialisation, or if a
            network with adapters would not always be that of its file.
    """
    if view.has_adapters:
        is_loaded = pretrained_init(view.backbone.get('init_cfg')) is not None
        if not is_loaded or (view.has_batch_norm and not view.backbone.get('norm_eval')):
            raise UserError(_ADAPTED)
    backbone, weights = view.backbone, view.starting_weights
    if weights is not None:
        require_weights(weights)
        return weights
    trains = backbone.get('frozen_stages', -1) < 0 and not backbone.get('norm_eval')
    trains = trains and view.norm_cfg.get('requires_grad', True)
    if not trains and view.is_of_family:
        remedy = 'model.backbone.frozen_stages=-1'
        if view.has_batch_norm:
            norms = 'model.backbone.norm_eval=False, model.backbone.norm_cfg.requires_grad=True'
            remedy = f'{norms} and {remedy}'
        raise UserError(
            'the stem is frozen but starts from random initialisation, so it would never learn: '
            f'pass weights with `pretrained=PATH`, or set {remedy}'
        )
    return None


def freeze_batch_norm(backbone: dict) -> None:
    """Keep the statistics of the pretraining: a batch of 2 images is too small for new ones.

    Except where the config decides otherwise: with SyncBN, which sees all batches, with GroupNorm,
    which has no statistics, and with ``norm_eval`` or ``requires_grad``.
    """
    norm_cfg = backbone.get('norm_cfg') or dict(type='BN')
    if norm_cfg.get('type') == 'BN' and backbone.get('norm_eval', True):
        backbone.norm_cfg = dict(requires_grad=False) | norm_cfg
        backbone.norm_eval = True
