"""Launchers of distributed training, and how processes join on a CPU."""

import logging
import os

import torch
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.dist import all_gather_object

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.launchers import LAUNCHERS, require_started
from ptnt_mm.utils.text import unknown_name
from ptnt_mm.workbench.config.build import NEEDS_PROCESSES, use_batch_norm

_logger = logging.getLogger(__name__)


def choose_launcher(config: Config, launcher: str) -> None:
    """Set the launcher, and how processes on a CPU join.

    Raises:
        UserError: if there is no such launcher, if it did not start this process, or if it does not
            support a CPU.
    """
    if launcher != 'none':
        if launcher not in LAUNCHERS:
            unknown = unknown_name('launcher', launcher, ('none', *LAUNCHERS))
            raise UserError(f'`launcher={launcher}`: {unknown}')
        require_started(launcher)
    config.launcher = launcher
    if launcher == 'none':
        use_batch_norm(config.get('model'), NEEDS_PROCESSES)
        return
    if get_device() != 'cpu':
        return
    if launcher != 'pytorch':
        raise UserError(f'`launcher={launcher}` needs GPUs: on a CPU use torchrun')
    _join_on_cpu(config)


def is_first_process(launcher: str) -> bool:
    """Whether this is the process that prints and writes, before MMEngine has joined them."""
    if launcher == 'none':
        return True
    _, rank, _ = LAUNCHERS[launcher]
    return int(os.environ.get(rank, 0)) == 0


def number_of_processes(launcher: str) -> int:
    """How many processes a launcher started, before MMEngine has joined them."""
    if launcher == 'none':
        return 1
    *_, number = LAUNCHERS[launcher]
    return int(os.environ.get(number, 1))


def require_same_start(checkpoint: dict | None) -> None:
    """Check that all processes continue from the same checkpoint.

    On machines with separate disks, only the first finds the checkpoints in its work dir, and
    MMEngine would let the others start from the beginning.

    Args:
        checkpoint: The loaded content of this process's checkpoint; None if it starts afresh.

    Raises:
        UserError: in all processes, if their iterations differ.
    """
    iterations = all_gather_object(checkpoint['meta'].get('iter') if checkpoint else 0)
    if len(set(iterations)) > 1:
        raise UserError(
            f'`resume`: the processes found checkpoints of different iterations {iterations}: '
            '`work_dir` must be a folder that all machines share'
        )


def _join_on_cpu(config: Config) -> None:
    """Join the processes by gloo; MMEngine would request a CUDA device for any backend."""
    synchronized = use_batch_norm(
        config.get('model'), ('SyncBN', 'SyncBatchNorm', *NEEDS_PROCESSES)
    )
    if synchronized and is_first_process(config.launcher):
        _logger.warning('SyncBN is for GPUs: on this CPU each process has a separate BN')
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group('gloo')
    if config.get('model_wrapper_cfg') is None:
        config.model_wrapper_cfg = dict(
            type='MMDistributedDataParallel',
            device_ids=None,
            broadcast_buffers=False,
            find_unused_parameters=config.get('find_unused_parameters', False),
        )
