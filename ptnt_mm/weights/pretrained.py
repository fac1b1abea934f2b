"""Start a backbone from pretrained weights."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from mmengine.logging import print_log
from mmengine.model import PretrainedInit
from torch import nn

from ptnt_mm.registry import WEIGHT_INITIALIZERS
from ptnt_mm.weights.fit import LoadReport, Trunk, fit
from ptnt_mm.weights.published import locate
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.weights.reader.read import read_checkpoint


@torch.no_grad()
def load_pretrained(
    module: nn.Module,
    checkpoint: str | os.PathLike | Mapping,
    prefix: str | None = None,
    logger: Any = 'current',
) -> LoadReport:
    """Load a backbone's weights from a file, in place, or raise and change nothing.

    Reads the authors' checkpoints, timm's, mmpretrain's, MMEngine's of a whole detector, and bare
    state dicts. A head of a different number of classes is left unused. Position tables of another
    pretraining size are converted to the module's.

    Args:
        module: Module to load the weights into.
        checkpoint: A file, an http(s) address, the name of published weights such as 'tnt_s', or
            the content of such a file.
        prefix: Prefix of the keys to load, such as 'backbone.'; found automatically by default.
        logger: Logger of the table, as for MMEngine's ``print_log``.

    Raises:
        CheckpointError: The file cannot be read, lacks weights of the trunk, has one in a shape
            that cannot be converted, or contains NaN or infinity.
    """
    is_content = isinstance(checkpoint, Mapping)
    source = 'the given weights' if is_content else locate(str(checkpoint))
    content = checkpoint if is_content else read_checkpoint(source)
    stored, ready, report = fit(content, module, Trunk(prefix), source)
    own = module.state_dict()
    for key, weight in ready.items():
        own[key].copy_(weight)
    named = source if is_content else checkpoint
    print_log(f'Weights from {named} ({stored.entry}):\n{report.table()}', logger=logger)
    return report


def pretrained_parts(model: nn.Module) -> Iterator[tuple[str, nn.Module, str]]:
    """The parts of a model with a Pretrained dict in their ``init_cfg``: path, part, file.

    Raises:
        CheckpointError: As :func:`pretrained_init`.
    """
    for path, part in model.named_modules():
        # LoRAModel has already loaded those of the network inside.
        init = pretrained_init(getattr(part, 'init_cfg', None))
        if init and not getattr(part, 'is_init', False):
            yield path, part, init['checkpoint']


def pretrained_init(init_cfg: dict | list[dict] | None) -> dict | None:
    """The Pretrained dict of an ``init_cfg``, in any form that MMEngine or mmdet accepts.

    The name of published weights becomes their address.

    Raises:
        CheckpointError: if it names no checkpoint, or one that cannot be downloaded.
    """
    for init in init_cfg if isinstance(init_cfg, list) else [init_cfg or {}]:
        # Configs of mmdet's PVT omit the type.
        kind = init.get('type', 'Pretrained' if 'checkpoint' in init else None)
        if kind is PretrainedInit or str(kind).rpartition('.')[2] == 'Pretrained':
            if not isinstance(init.get('checkpoint'), str | os.PathLike):
                raise CheckpointError(
                    f'init_cfg is {init}: expected checkpoint= with a file or an address as well'
                )
            return dict(init, checkpoint=locate(str(init['checkpoint'])))
    return None


@WEIGHT_INITIALIZERS.register_module()
class PretrainedTrunk:
    """Give a backbone the weights that its ``init_cfg`` names, see :func:`load_pretrained`.

    Args:
        init_cfg: Of the backbone. If it names no weights, ``init`` is None.

    Raises:
        CheckpointError: if it names no checkpoint, or one that cannot be downloaded.
    """

    def __init__(self, init_cfg: dict | list[dict] | None):
        self.init = pretrained_init(init_cfg)

    def __call__(self, module: nn.Module) -> None:
        """Load the weights, or raise a CheckpointError."""
        load_pretrained(module, self.init['checkpoint'], self.init.get('prefix'))
