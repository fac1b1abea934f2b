"""``ptnt pretrain``: pretrain a backbone on images without labels."""

from argparse import Namespace
from pathlib import Path

from ptnt_mm.workbench.cli.arguments import Argument, Command, Option, Switch
from ptnt_mm.workbench.cli.loading import importing
from ptnt_mm.workbench.cli.shared import LAUNCHER, LOCAL_RANK, cfg_options
from ptnt_mm.workbench.cli.values import at_least, positive, seed

# fmt: off
COMMAND = Command(
    'pretrain',
    'pretrain a backbone on images without labels',
    """Pretrain a backbone on images without labels: it imitates a trained network.

ptnt pretrain photos start.safetensors --backbone ptnt_ti
ptnt new labelled project --backbone ptnt_ti --weights start.safetensors
""",
    words=(
        Argument('images', 'folder of images, with its subfolders', Path),
        Argument('file', 'the file of weights to write, .safetensors (float16) or .pth', Path),
        cfg_options('optim_wrapper.optimizer.lr=5e-4 model.mosaic=0'),
        LOCAL_RANK,
    ),
    keywords=(
        Option('backbone', 'the network to train: a name or a registered class with its arguments, '
               'as for ptnt new', required=True),
        Option('weights', 'weights of the backbone to start from; by default random '
               'initialisation', metavar='WEIGHTS'),
        Option('teacher', 'the network to imitate: a backbone as for ptnt new, or a config or '
               'project whose backbone is trained', default='efficientnet_lite0', metavar='NAME'),
        Option('teacher_weights', "the teacher's weights; by default the published ones, or the "
               'best checkpoint of its project', metavar='WEIGHTS'),
        Option('views', 'number of views to train on in total', positive, 200_000, metavar='N'),
        Option('size', 'side of a view, at least 64; half of the steps see mosaics of four views',
               at_least(64), 128, metavar='PIXELS'),
        Option('batch', 'views per step and process, at least 2', at_least(2), 16, metavar='N'),
        Option('work_dir', 'folder of logs and checkpoints; by default work_dirs/FILE without its '
               'suffix', Path),
        Option('resume', 'continue from a checkpoint, by default the newest in the work dir',
               metavar='PATH', alone='auto'),
        Switch('overwrite', 'delete the output of an earlier run, and replace the file',
               instead_of='resume'),
        Switch('amp', 'mixed precision, on an accelerator or a CPU that computes in bfloat16'),
        Switch('compile', 'compile the backbone: minutes at the start, then up to twice as fast'),
        Option('log', 'also log losses there', choices=('tensorboard', 'wandb', 'mlflow')),
        Option('seed', 'seed of every random choice; by default 0', seed),
        LAUNCHER,
    ),
    order=2,
    runs_hooks=True,
)
# fmt: on


def check_arguments(args: Namespace) -> None:
    """Refuse a wrong file, folder, backbone or teacher."""
    from ptnt_mm.utils.atomic_files import check_new
    from ptnt_mm.weights.reader.files import check_written
    from ptnt_mm.workbench.data.image_files import find_images
    from ptnt_mm.workbench.project.backbone_table import is_run, row_of

    check_written(args.file)
    check_new(args.file, args.overwrite or args.resume is not None)
    row_of(args.backbone)
    is_run(args.teacher, args.teacher_weights)
    find_images(args.images)


def run(args: Namespace) -> None:
    """Pretrain a backbone, and print how to use its weights."""
    from ptnt_mm.utils.console import show
    from ptnt_mm.utils.terminal import show_wrapped
    from ptnt_mm.workbench.cli.start import command_line
    from ptnt_mm.workbench.cli.summaries import after_pretrain

    with importing():
        from mmengine.dist import is_main_process

        from ptnt_mm.workbench.config.read import parse_options
        from ptnt_mm.workbench.project.pretrain import pretrain

    given, settings = COMMAND.given(args), parse_options(args.cfg_options)
    given |= dict(settings=settings, command=command_line(), on_line=show_wrapped)
    file = pretrain(args.images, args.file, **given)
    if is_main_process():
        show(after_pretrain(file, args.backbone))
