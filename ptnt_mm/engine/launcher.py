"""Launchers of distributed training, and how processes join on a CPU."""

import logging
import os

import torch
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.dist import all_gather_object

from ptnt_mm.engine.settings import within
from ptnt_mm.utils.errors import UserError

_logger = logging.getLogger(__name__)

# The environment variable that each launcher sets for the processes it starts.
_RANKS = {'pytorch': 'RANK', 'slurm': 'SLURM_PROCID', 'mpi': 'OMPI_COMM_WORLD_RANK'}
_STARTERS = {'pytorch': 'torchrun', 'slurm': 'srun', 'mpi': 'mpirun'}


def choose_launcher(config: Config, launcher: str) -> None:
    """Set the launcher, and how processes on a CPU join.

    Raises:
        UserError: if the launcher did not start this process, or does not support a CPU.
    """
    if launcher != 'none' and _RANKS[launcher] not in os.environ:
        raise UserError(f'--launcher {launcher}: start the processes with {_STARTERS[launcher]}')
    config.launcher = launcher
    if launcher == 'none' or get_device() != 'cpu':
        return
    if launcher != 'pytorch':
        raise UserError(f'--launcher {launcher} needs GPUs: on a CPU use torchrun')
    _join_on_cpu(config)


def is_first_process(config: Config) -> bool:
    """Whether this is the process that prints and writes, before MMEngine has joined them."""
    return config.launcher == 'none' or int(os.environ[_RANKS[config.launcher]]) == 0


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
            f'--resume: the processes found checkpoints of different iterations {iterations}: '
            '--work-dir must be a folder that all machines share'
        )


def _join_on_cpu(config: Config) -> None:
    """Join the processes by gloo; MMEngine would request a CUDA device for any backend."""
    parts = (part for _, part in within(config.get('model'), 'model'))
    synchronized = [part for part in parts if part.get('type') == 'SyncBN']
    for norm in synchronized:
        norm['type'] = 'BN'
    if synchronized and is_first_process(config):
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
