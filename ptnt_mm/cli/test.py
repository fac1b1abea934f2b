"""Evaluate a checkpoint of a detector, a segmenter or a classifier.

ptnt test retinanet_ptnt_s_1x work_dirs/retinanet_ptnt_s_1x/epoch_12.pth
"""

import argparse
import copy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from mmengine.config import Config, ConfigDict
from mmengine.dist import is_main_process

from ptnt_mm.check.before_testing import check_before_testing
from ptnt_mm.checkpoints.read import check_file, refuse_forced_unsafe_loading
from ptnt_mm.cli.arguments import Parser, add_config, add_work_dir_and_launcher, resolved
from ptnt_mm.cli.json_output import add_json, json_output
from ptnt_mm.engine.build import build_runner
from ptnt_mm.engine.config import read_config, require_keys
from ptnt_mm.engine.data_files import check_data_files, data_sets
from ptnt_mm.engine.failures import late_building
from ptnt_mm.engine.hooks.health import NO_FIGURES
from ptnt_mm.engine.launcher import choose_launcher, is_first_process
from ptnt_mm.engine.runner import log_file
from ptnt_mm.engine.work_dir import checkpoint_to_use, choose_work_dir
from ptnt_mm.inference.evaluation import draw_predictions, dump_predictions
from ptnt_mm.utils.errors import UserError


@dataclass(frozen=True)
class EvaluateArguments:
    """The command line, resolved: what :func:`evaluate` takes."""

    config: Config
    checkpoint: str
    work_dir: Path | None
    out: Path | None
    show_dir: Path | None
    tta: bool
    launcher: str


def evaluate(
    config: Config,
    checkpoint: str,
    work_dir: Path | str | None = None,
    *,
    out: Path | None = None,
    show_dir: Path | None = None,
    tta: bool = False,
    launcher: str = 'none',
) -> dict[str, float]:
    """Evaluate a checkpoint as ``ptnt test`` does.

    Args:
        config: A whole config; it is not changed.
        checkpoint: What training saved.
        work_dir: Where the log goes; by default as the config says, or ``work_dirs/<its name>``.
        out: The .pkl file for all predictions.
        show_dir: The folder for pictures of predictions.
        tta: Average over scales and mirroring.
        launcher: What started this process: 'none', 'pytorch', 'slurm' or 'mpi'.

    Returns:
        The metrics by name; none if nothing was found in any image.

    Raises:
        UserError: for everything that the user can mend.
    """
    refuse_forced_unsafe_loading()
    require_keys(config, ('model', 'test_dataloader', 'test_cfg', 'test_evaluator'))
    config = copy.deepcopy(config)
    choose_launcher(config, launcher)
    choose_work_dir(config, work_dir)
    check_data_files(config, ('test',))
    _use_checkpoint(config, checkpoint)
    if tta:
        _require_tta(config)
    if is_first_process(config):
        check_before_testing(config, tta)
    if show_dir is not None:
        draw_predictions(config, show_dir.absolute())
    if out is not None:
        dump_predictions(config, out)
    if tta:
        _use_tta(config)
    runner = build_runner(config)
    with late_building():
        return runner.test()


def _use_checkpoint(config: Config, checkpoint: str) -> None:
    if '://' not in checkpoint:
        check_file(Path(checkpoint))
    config.load_from = checkpoint
    config.resume = False
    if config.model.get('backbone'):
        config.model.backbone.init_cfg = None


def _require_tta(config: Config) -> None:
    for key in ('tta_model', 'tta_pipeline'):
        if key not in config:
            raise UserError(f'--tta needs {key} in the config: see configs/_base_/tta/')


def _use_tta(config: Config) -> None:
    config.model = ConfigDict(**config.tta_model, module=config.model)
    for data_set in data_sets(config, 'test'):
        data_set.settings['pipeline'] = config.tta_pipeline


def main(words: list[str] | None = None) -> int:
    """Evaluate as the command line says; the exit status."""
    return _parser().run(_run, words)


def _parser() -> Parser:
    parser = Parser(__doc__)
    add_config(parser)
    add_work_dir_and_launcher(parser)
    parser.add_argument(
        'checkpoint',
        nargs='?',
        help="what training saved; by default the best or the newest in the config's work dir",
    )
    parser.add_argument('--out', type=Path, metavar='FILE.pkl', help='where predictions go')
    parser.add_argument('--show-dir', type=Path, help='where pictures of predictions go')
    parser.add_argument('--tta', action='store_true', help='average over scales and mirroring')
    add_json(parser)
    return parser


def _resolve(args: argparse.Namespace) -> EvaluateArguments:
    config = read_config(args.config, args.cfg_options)
    checkpoint = checkpoint_to_use(config, args.checkpoint)
    return resolved(EvaluateArguments, args, config=config, checkpoint=checkpoint)


def _run(args: argparse.Namespace) -> None:
    with json_output(args.json, args.overwrite) as write:
        metrics = evaluate(**vars(_resolve(args)))
        if is_main_process():
            if not metrics:
                print(NO_FIGURES)
            for name, value in metrics.items():
                is_float = isinstance(value, (float, np.floating))
                print(f'{name}: {round(float(value), 4) if is_float else value}')
            pictures = f'  pictures: {args.show_dir}' if args.show_dir else ''
            predictions = f'  predictions: {args.out}' if args.out else ''
            print(f'Done. Log: {log_file()}{predictions}{pictures}')
            write(metrics)
