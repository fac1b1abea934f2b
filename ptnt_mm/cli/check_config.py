"""Say what in a config and its data would break a training, or silently go wrong.

python tools/check_config.py configs/custom_coco.py --gpus 8 --pretrained ptnt_s_82.0.pth.tar
"""

import argparse
from dataclasses import dataclass

from mmengine.config import Config

from ptnt_mm.check.inspection import check
from ptnt_mm.checkpoints.read import refuse_forced_unsafe_loading
from ptnt_mm.cli.arguments import Parser, add_config, whole
from ptnt_mm.engine.config import read_config, require_keys
from ptnt_mm.engine.starting_weights import use_pretrained
from ptnt_mm.utils.findings import Finding, Severity, closing, lines, of_kind


@dataclass(frozen=True)
class CheckArguments:
    """The command line, resolved.

    Attributes:
        config: A whole config, with the flags brought into it.
        gpus: The number of processes that will train, one for each GPU.
        thorough: Open images and weights, and take a step of training.
    """

    config: Config
    gpus: int
    thorough: bool


def main(words: list[str] | None = None) -> int:
    """Check what the command line names, and print what is found; 1 if there are errors."""
    return _parser().run(lambda args: _run(_resolve(args)), words)


def _parser() -> Parser:
    parser = Parser(__doc__)
    add_config(parser)
    parser.add_argument('--pretrained', metavar='PATH', help="the backbone's weights")
    parser.add_argument(
        '--gpus', type=whole, default=1, metavar='N', help='how many will train: 1 by default'
    )
    parser.add_argument(
        '--quick',
        action='store_true',
        help='open no image and no weights, and take no step of training',
    )
    return parser


def _resolve(args: argparse.Namespace) -> CheckArguments:
    """Read the config.

    Raises:
        UserError: if it cannot be read, or is none to train with.
    """
    config = read_config(args.config, args.cfg_options)
    require_keys(config, ('model', 'train_dataloader', 'train_cfg', 'optim_wrapper'))
    if args.pretrained is not None:
        use_pretrained(config, args.pretrained)
    return CheckArguments(config, args.gpus, thorough=not args.quick)


def _run(arguments: CheckArguments) -> int:
    refuse_forced_unsafe_loading()
    thorough = arguments.thorough
    findings = check(arguments.config, gpus=arguments.gpus, thorough=thorough, tell=_print)
    print(closing(findings))
    return int(bool(of_kind(findings, Severity.ERROR)))


def _print(subject: str, findings: list[Finding]) -> None:
    print('\n'.join((subject, *lines(findings))), flush=True)
