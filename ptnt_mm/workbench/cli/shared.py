"""Arguments of several commands, and how to find the config and checkpoint that they name."""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ptnt_mm.workbench.cli.arguments import Argument, Option, Repeatable, Switch
from ptnt_mm.workbench.cli.values import setting

if TYPE_CHECKING:
    from mmengine.config import Config

# fmt: off


def cfg_options(example: str) -> Repeatable:
    """The option ``--cfg-options``, with settings as an example."""
    return Repeatable('cfg_options', f'change settings: {example}', setting, metavar='KEY=VALUE')


def config_words(
    example: str = 'train_dataloader.batch_size=4 model.backbone.with_cp=True',
) -> tuple[Argument, Repeatable]:
    """The config of a command, and the option that changes its settings."""
    about = 'a file, the name of a config of this package, or a folder created by ptnt new'
    return Argument('config', about), cfg_options(example)


DATA_ROOT = Option('data_root', "read all data from this folder, in place of the config's "
                    'data_root', metavar='DIR')
CHECKPOINT = Argument('checkpoint', 'a training checkpoint; by default the best or the newest in '
                       "the config's work dir", nargs='?')
LOCAL_RANK = Option('local_rank', '', int, 0, flags=('--local_rank', '--local-rank'))
"""torch.distributed.launch passes it as an argument, torchrun by the environment."""

WORK_DIR = Option('work_dir', "folder of logs and checkpoints; by default the config's, or "
                   'work_dirs/CONFIG', Path)
LAUNCHER = Option('launcher', 'what starts the processes of a distributed run', default='none',
                   choices=('none', 'pytorch', 'slurm', 'mpi'))
DEVICE = Option('device', 'cpu, cuda or cuda:1; by default the best available')
REPLACE = Switch('overwrite', 'replace an existing file')
JSON = (
    Option('json', 'also write JSON to this file; - prints it, and moves the text to standard '
           'error', Path, metavar='FILE'),
    Switch('overwrite', 'replace the file of --json if it exists'),
)
FILE = Argument('file', '.pth, .pth.tar, .pt, .safetensors, address, hf:OWNER/NAME, or name from '
                 'ptnt weights')

# fmt: on


def config_of(args: Namespace) -> 'Config':
    """Read the config of the command line, with ``--cfg-options`` applied."""
    from ptnt_mm.workbench.config.read import parse_options, read_config

    options = parse_options(args.cfg_options)
    return read_config(args.config, options, getattr(args, 'data_root', None))


def config_and_checkpoint_of(args: Namespace) -> tuple['Config', str]:
    """Read the config of the command line, and find the checkpoint."""
    from ptnt_mm.workbench.engine.work_dir import checkpoint_to_use

    config = config_of(args)
    return config, checkpoint_to_use(config, args.checkpoint)
