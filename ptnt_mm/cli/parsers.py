"""The command lines of training, testing, checking and inference; errors without traceback."""

import argparse
import os
import warnings
from collections.abc import Callable
from pathlib import Path

from mmengine.config import DictAction

from ptnt_mm.cli.arguments import Elsewhere, Parser
from ptnt_mm.utils.errors import exit_status

# What the hosts warn of whenever they are used as they are meant to be, by its beginning: MMEngine
# of its own import, mmseg of its own losses and of a hook that draws when asked to.
_OF_HOSTS = (
    'pkg_resources is deprecated',
    '``build_loss`` would be deprecated',
    'Default ``avg_non_ignore`` is False',
    'The draw is False',
)


def train_parser(description: str) -> argparse.ArgumentParser:
    """The arguments of ``tools/train.py``."""
    parser = _parser(description)
    parser.add_argument(
        '--pretrained',
        metavar='PATH',
        help="the backbone's weights; its stem's BatchNorm is then frozen",
    )
    parser.add_argument(
        '--load-from',
        metavar='PATH',
        help='start from the weights of a whole model; heads may differ',
    )
    resume = parser.add_mutually_exclusive_group()
    resume.add_argument(
        '--resume',
        nargs='?',
        const='auto',
        metavar='PATH',
        help='continue from a checkpoint, by default the newest in the work dir',
    )
    resume.add_argument(
        '--overwrite',
        action='store_true',
        help='throw away what an earlier run left in the work dir',
    )
    parser.add_argument('--amp', action='store_true', help='mixed precision, on an accelerator')
    parser.add_argument(
        '--auto-scale-lr', action='store_true', help='scale the learning rate with the batch'
    )
    parser.add_argument(
        '--sync-bn', action='store_true', help='BatchNorm over the images of all GPUs'
    )
    parser.add_argument('--seed', type=int, help='of every random choice')
    parser.add_argument(
        '--deterministic',
        action='store_true',
        help='choose operations that always give the same numbers; slower on a GPU',
    )
    return parser


def check_parser(description: str) -> argparse.ArgumentParser:
    """The arguments of ``tools/check_config.py``."""
    parser = _config_parser(description)
    parser.add_argument('--pretrained', metavar='PATH', help="the backbone's weights")
    parser.add_argument(
        '--gpus', type=_positive, default=1, metavar='N', help='how many will train: 1 by default'
    )
    parser.add_argument(
        '--quick', action='store_true', help='open no image and no weights, and build no model'
    )
    return parser


def test_parser(description: str) -> argparse.ArgumentParser:
    """The arguments of ``tools/test.py``."""
    parser = _parser(description)
    parser.add_argument('checkpoint', help='what training saved')
    parser.add_argument('--out', type=Path, metavar='FILE.pkl', help='where predictions go')
    parser.add_argument('--show-dir', type=Path, help='where pictures of predictions go')
    parser.add_argument('--tta', action='store_true', help='average over scales and mirroring')
    return parser


def infer_parser(description: str) -> argparse.ArgumentParser:
    """The arguments of ``tools/infer.py``."""
    parser = Parser(description)
    parser.add_argument('input', help='an image, a folder, a video, or 0 for the first webcam')
    add_config(parser, 'model.test_cfg.max_per_img=20')
    parser.add_argument('checkpoint', help='what training saved')
    parser.add_argument(
        '--out', type=Path, metavar='DIR', help='where results go: work_dirs/infer/INPUT by default'
    )
    parser.add_argument(
        '--overwrite', action='store_true', help='replace the results of an earlier run'
    )
    parser.add_argument(
        '--score-thr',
        type=float,
        metavar='S',
        help='leave out what has a lower score, from pictures and JSON: 0.3 by default; '
        'segmenters have no scores and refuse it',
    )
    parser.add_argument('--no-draw', action='store_true', help='write the JSON file alone')
    parser.add_argument(
        '--show', action='store_true', help='show a video or a webcam in a window; q ends it'
    )
    parser.add_argument('--device', help='cpu, cuda or cuda:1; by default the best there is')
    return parser


def run(command: Callable[[argparse.Namespace], int], parser: argparse.ArgumentParser) -> int:
    """Parse the arguments and run a command; its exit status, 1 for an error of the user's."""
    args = parser.parse_args()
    for beginning in _OF_HOSTS:
        warnings.filterwarnings('ignore', beginning, UserWarning)
    # torch.distributed.launch passes the rank as an argument, torchrun by the environment.
    os.environ.setdefault('LOCAL_RANK', str(getattr(args, 'local_rank', 0)))
    return exit_status(lambda: command(args))


def add_config(parser: argparse.ArgumentParser, example: str) -> None:
    """Add the config, and the settings of it to change, of which an example is shown."""
    parser.add_argument('config', help='a file, or the name of a config of this package')
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=Settings,
        default={},
        metavar='KEY=VALUE',
        help=f'change settings: {example}',
    )


class Settings(DictAction):
    """MMEngine's ``--cfg-options``, with an error in place of a traceback."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: list[str],
        option_string: str | None = None,
    ) -> None:
        """Parse KEY=VALUE words."""
        try:
            super().__call__(parser, namespace, values, option_string)
        except (AssertionError, IndexError, ValueError) as error:
            parser.error(
                f'{option_string} {" ".join(values)}: expected KEY=VALUE ..., with a number, a '
                f"word, or a quoted list such as '[1,2]' as VALUE ({error})"
            )


def _parser(description: str) -> argparse.ArgumentParser:
    parser = _config_parser(description)
    parser.add_argument(
        '--work-dir', type=Path, help='where logs and checkpoints go: work_dirs/CONFIG by default'
    )
    parser.add_argument(
        '--gpus',
        '--gpu-ids',
        '--gpu-id',
        action=Elsewhere,
        advice='a process uses one GPU. For 8 of them: tools/dist_train.sh CONFIG 8 (to test, '
        'tools/dist_test.sh CONFIG CHECKPOINT 8), or torchrun --nproc_per_node 8 and --launcher '
        'pytorch. CUDA_VISIBLE_DEVICES=1 chooses one',
    )
    parser.add_argument(
        '--device',
        action=Elsewhere,
        advice='the first GPU is used, if there is one. Before the command, CUDA_VISIBLE_DEVICES=1 '
        'chooses another, and CUDA_VISIBLE_DEVICES=-1 the CPU',
    )
    parser.add_argument('--launcher', choices=['none', 'pytorch', 'slurm', 'mpi'], default='none')
    parser.add_argument('--local_rank', '--local-rank', type=int, default=0, help=argparse.SUPPRESS)
    return parser


def _config_parser(description: str) -> argparse.ArgumentParser:
    parser = Parser(description)
    add_config(parser, "model.backbone.arch=tiny 'model.backbone.out_indices=(1,2)'")
    return parser


def _positive(text: str) -> int:
    """A whole number above 0.

    Raises:
        ValueError: for anything else; argparse says so.
    """
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


_positive.__name__ = 'number above 0'
