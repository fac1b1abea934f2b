"""Launchers of several processes, and what they tell each process."""

import os

from ptnt_mm.utils.errors import UserError

# The program of each launcher, and the variables with the rank of a process that it started and
# with the number of processes.
LAUNCHERS = {
    'pytorch': ('torchrun', 'RANK', 'WORLD_SIZE'),
    'slurm': ('srun', 'SLURM_PROCID', 'SLURM_NTASKS'),
    'mpi': ('mpirun', 'OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE'),
}


def require_started(launcher: str) -> None:
    """Raise a UserError unless a launcher started this process."""
    program, rank, _ = LAUNCHERS[launcher]
    if rank not in os.environ:
        raise UserError(f'`launcher={launcher}`: start the processes with {program}')
