"""Decide where a run starts from: a pretrained backbone, a whole model, or a checkpoint."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from mmengine.config import Config, ConfigDict

from ptnt_mm.engine.constructors import arguments_of, classes_named, is_of_family
from ptnt_mm.engine.hosts import scope_of
from ptnt_mm.engine.run_checkpoints import read_latest_checkpoint, read_resumable
from ptnt_mm.engine.safe_loading import without_config
from ptnt_mm.engine.settings import flat_settings
from ptnt_mm.engine.stored_config import stored_config
from ptnt_mm.models.weights.pretrained import pretrained_init
from ptnt_mm.models.weights.published import no_such_weights
from ptnt_mm.utils.errors import UserError


@dataclass(frozen=True)
class Start:
    """The start of a run.

    Attributes:
        weights: The file or address of weights, or of the checkpoint to continue from; None for
            random initialisation.
        checkpoint: The loaded content of the checkpoint to continue from; None without one.
        stored: The settings of the run that wrote it; empty if unknown.
    """

    weights: str | None
    checkpoint: dict | None = None
    stored: ConfigDict = field(default_factory=ConfigDict)


def choose_start(
    config: Config,
    work_dir: Path,
    pretrained: str | None = None,
    resume: str | None = None,
    seed: int | None = None,
) -> Start:
    """Write the start of a run into its config.

    Args:
        config: Changed in place.
        work_dir: Where ``resume='auto'`` searches.
        pretrained: A backbone's weights. A resumed run no longer needs them, but its command may
            be repeated with them.
        resume: A checkpoint to continue from, or 'auto' for the newest in the work dir. If there is
            none yet, the run starts from the beginning.
        seed: Seed of every random choice; None for the config's, or that of the resumed run.

    Raises:
        UserError: if a file is missing or cannot be read, or if arguments contradict each other.
    """
    if seed is not None:
        config.randomness = dict(config.get('randomness') or {}, seed=seed)
    checkpoint, stored = None, ConfigDict()
    if resume is not None:
        if resume == 'auto':
            file, content = read_latest_checkpoint(work_dir)
        else:
            file, content = resume, read_resumable(resume)
        config.resume = content is not None
        if content is not None:
            checkpoint, stored = _use_resume(config, str(file), content)
        goes_on_with = (config.get('randomness') or {}).get('seed')
        if seed not in (None, goes_on_with):
            raise UserError(
                f'--seed {seed}: the run that --resume continues has seed {goes_on_with}: '
                'omit --seed'
            )
    if pretrained is not None and not config.get('resume'):
        if config.get('load_from'):
            raise UserError(
                f'--pretrained {pretrained}: the whole model starts from {config.load_from}, which '
                'contains the backbone too: use either --pretrained or --load-from (load_from in '
                'the config), not both'
            )
        use_pretrained(config, pretrained)
    return Start(check_start(config), checkpoint, stored)


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
        raise UserError(f"--pretrained: the config's model {config.model.type} has no backbone")
    backbone.init_cfg = dict(type='Pretrained', checkpoint=path)
    if _has_batch_norm(config):
        _freeze_batch_norm(backbone)


def _use_resume(config: Config, file: str, content: dict) -> tuple[dict, ConfigDict]:
    """Continue from a checkpoint, which contains all weights: no pretrained file is needed.

    The seed is kept too, even if the config has a different one: MMEngine would use it for
    everything except the order of the images. Returns the content without the stored config, and
    the stored settings.
    """
    config.load_from = file
    stored = stored_config(content['meta'].get('cfg', ''))
    seed = content['meta'].get('seed')
    if isinstance(seed, int):
        config.randomness = dict(config.get('randomness') or {}, seed=seed)
    backbone = config.model.get('backbone')
    if backbone is not None:
        backbone.init_cfg = None
        began_frozen = flat_settings(stored).get('model.backbone.norm_eval') == 'True'
        if began_frozen:
            # The run was started with --pretrained.
            _freeze_batch_norm(backbone)
    return without_config(content), stored


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
            f'pass weights with --pretrained PATH, or set {remedy}'
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


def _freeze_batch_norm(backbone: dict) -> None:
    """Keep the statistics of the pretraining: a batch of 2 images is too small for new ones.

    Except where the config decides otherwise: with SyncBN, which sees all batches, with GroupNorm,
    which has no statistics, and with ``norm_eval`` or ``requires_grad``.
    """
    norm_cfg = backbone.get('norm_cfg') or dict(type='BN')
    if norm_cfg.get('type') == 'BN' and backbone.get('norm_eval', True):
        backbone.norm_cfg = dict(requires_grad=False) | norm_cfg
        backbone.norm_eval = True
