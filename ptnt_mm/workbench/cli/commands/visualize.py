"""``ptnt visualize``: draw predictions, feature maps and attention."""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import from_here
from ptnt_mm.workbench.cli.arguments import Argument, Command, Option, Switch
from ptnt_mm.workbench.cli.loading import importing
from ptnt_mm.workbench.cli.shared import DEVICE, config_of, config_words
from ptnt_mm.workbench.cli.values import not_negative, point, positive, score
from ptnt_mm.workbench.config.zoo import find_config, names_config

if TYPE_CHECKING:
    from mmengine.config import Config

# fmt: off
COMMAND = Command(
    'visualize',
    'draw predictions, feature maps and attention',
    """Draw a network's predictions, feature maps, words, attention and position tables.

ptnt visualize configs/retinanet_ptnt_s_1x.py work_dirs/.../epoch_12.pth photo.jpg --box 1
""",
    words=(
        *config_words(),
        Argument('files', 'a training checkpoint, by default the best one in the work dir, and '
                 'images', metavar='[CHECKPOINT] IMAGE', nargs='+'),
        Option('versus', 'compare: a different checkpoint, a different config, or a config and '
               'its checkpoint', metavar='OTHER', nargs='+'),
    ),
    keywords=(
        Option('at', 'show similarity and attention for this pixel (x, y) of the image; the middle '
               'by default', point, metavar='X,Y'),
        Option('box', 'show them for a detected box, by its number from 1', positive, metavar='N',
               instead_of='at'),
        Option('score_thr', 'the lowest score of a box: 0.3 by default', score, metavar='S'),
        Option('channels', 'channels to show, counted from 0; by default those that vary most',
               not_negative, (), 'C', nargs='+'),
        Option('blocks', 'blocks to show, counted from 1 in the whole backbone; by default the '
               'last of each stage, or the first, middle and last', positive, (), 'B', nargs='+'),
        Option('out', 'folder of the page: by default PROJECT/visualize or '
               'work_dirs/visualize/CONFIG', Path, metavar='DIR'),
        Switch('overwrite', 'replace an earlier page'),
        DEVICE,
    ),
    order=8,
)
# fmt: on


def check_arguments(args: Namespace) -> None:
    """Refuse a file that is not there, and a page that exists."""
    from ptnt_mm.weights.reader.files import is_address
    from ptnt_mm.workbench.pages.visualize.folder import choose_page

    checkpoint, images = _checkpoint_and_images(args.files)
    *configs, other = args.versus or [args.config]
    if len(configs) > 1:
        raise UserError('--versus takes a checkpoint, a config, or a config and a checkpoint')
    for config in configs:
        find_config(config)
    for file in filter(None, (checkpoint, *images, other)):
        if not (is_address(file) or Path(file).exists() or names_config(file)):
            raise UserError(f'there is no file {file}')
    choose_page(find_config(args.config), args.out, args.overwrite)


def run(args: Namespace) -> None:
    """Draw a page."""
    with importing():
        from ptnt_mm.hooks.run_checkpoints import best_checkpoint
        from ptnt_mm.workbench.engine.work_dir import find_work_dir
        from ptnt_mm.workbench.pages.visualize.visualize import visualize

    checkpoint, images = _checkpoint_and_images(args.files)
    config = config_of(args)
    if checkpoint is None:
        checkpoint = best_checkpoint(find_work_dir(config))
        about = from_here(checkpoint) if checkpoint else 'none; the page states the weights'
        print(f'Checkpoint: {about}')
    networks = [(config, checkpoint), *_others(args.versus or [], config)]
    print(f'Page: {visualize(networks, [*map(Path, images)], **COMMAND.given(args))}')


def _others(words: list[str], config: 'Config') -> list[tuple['Config', str | None]]:
    """Read the config, the checkpoint, or both to compare with."""
    from ptnt_mm.workbench.config.read import read_config

    match words:
        case []:
            return []
        case [other] if names_config(other):
            return [(read_config(other), None)]
        case [other]:
            return [(config, other)]
        case [other, checkpoint]:
            return [(read_config(other), checkpoint)]


def _checkpoint_and_images(files: list[str]) -> tuple[str | None, list[str]]:
    """The files of ``ptnt visualize``: a checkpoint, if the first is none of the images.

    Raises:
        UserError: if there is no image.
    """
    from ptnt_mm.deploy.decoding import FORMATS

    if Path(files[0]).suffix.lower() in FORMATS:
        return None, files
    checkpoint, *images = files
    if not images and Path(checkpoint).exists():
        what = 'a folder: name its images' if Path(checkpoint).is_dir() else 'not an image: add one'
        raise UserError(f'{checkpoint} is {what}')
    return checkpoint, images
