"""``ptnt train``: train a detector, segmenter or classifier."""

from argparse import Namespace

from ptnt_mm.workbench.cli.arguments import Command, Option, Switch
from ptnt_mm.workbench.cli.loading import importing
from ptnt_mm.workbench.cli.shared import (
    DATA_ROOT,
    LAUNCHER,
    LOCAL_RANK,
    WORK_DIR,
    config_of,
    config_words,
)
from ptnt_mm.workbench.cli.values import positive, seed

# fmt: off
COMMAND = Command(
    'train',
    'train a detector, segmenter or classifier',
    """Train a detector, a segmenter or a classifier from an MMEngine config.

ptnt train retinanet_ptnt_s_1x --pretrained ptnt_s_82.0.pth.tar --auto-scale-lr
""",
    words=(*config_words(), DATA_ROOT, LOCAL_RANK),
    keywords=(
        WORK_DIR,
        LAUNCHER,
        Option('pretrained', 'weights of the backbone: a file, an address, hf:OWNER/NAME, or a '
               "name from ptnt weights, such as tnt_s; freezes the stem's BatchNorm",
               metavar='WEIGHTS'),
        Option('load_from', 'start from the weights of a whole model, or of another project; heads '
               'may differ', metavar='PATH'),
        Option('resume', 'continue from a checkpoint, by default the newest in the work dir',
               metavar='PATH', alone='auto'),
        Switch('overwrite', 'delete the output of an earlier run in the work dir',
               instead_of='resume'),
        Option('epochs', "number of epochs; by default the config's. The learning rate, pipeline "
               'switches, weight averaging and evaluations are adjusted to it', positive,
               metavar='N'),
        Switch('amp', 'mixed precision, on an accelerator or a CPU that computes in bfloat16'),
        Switch('auto_scale_lr', 'scale the learning rate with the batch'),
        Switch('sync_bn', 'BatchNorm over the images of all GPUs'),
        Option('log', 'also log losses, metrics and some predictions there',
               choices=('tensorboard', 'wandb', 'mlflow')),
        Option('seed', "seed of every random choice; by default the config's, or a new one", seed),
        Switch('deterministic', 'use deterministic operations; slower on a GPU'),
    ),
    order=3,
    runs_hooks=True,
)
# fmt: on


def run(args: Namespace) -> None:
    """Train."""
    from ptnt_mm.utils.console import show
    from ptnt_mm.workbench.cli.start import command_line
    from ptnt_mm.workbench.cli.summaries import after_train

    with importing():
        from mmengine.dist import is_main_process

        from ptnt_mm.workbench.engine.train import train

    given = COMMAND.given(args)
    runner = train(config_of(args), **given, command=command_line())
    if is_main_process():
        show(after_train(runner, args))
