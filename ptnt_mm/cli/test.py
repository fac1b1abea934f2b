"""Evaluation from a command line: what ``tools/test.py`` does."""

import argparse
from pathlib import Path

import numpy as np
from mmengine.config import Config, ConfigDict
from mmengine.dist import is_main_process

from ptnt_mm.checkpoints.read import check_file, refuse_forced_unsafe_loading
from ptnt_mm.engine.build import build_runner, choose_work_dir, late_building
from ptnt_mm.engine.config import read_config, require_keys
from ptnt_mm.engine.data_files import check_data_files, data_sets
from ptnt_mm.engine.hooks.health import NO_FIGURES
from ptnt_mm.engine.processes import choose_launcher
from ptnt_mm.inference.outputs import draw, dump
from ptnt_mm.utils.errors import UserError


def test(args: argparse.Namespace) -> int:
    """Evaluate as the command line says; the exit status.

    Raises:
        UserError: for everything that the user can mend.
    """
    refuse_forced_unsafe_loading()
    config = read_config(args.config, args.cfg_options)
    require_keys(config, ('model', 'test_dataloader', 'test_cfg', 'test_evaluator'))
    choose_launcher(config, args.launcher)
    choose_work_dir(config, args.work_dir)
    check_data_files(config, ('test',))
    _use_checkpoint(config, args.checkpoint)
    if args.show_dir is not None:
        draw(config, args.show_dir.absolute())
    if args.out is not None:
        dump(config, args.out)
    if args.tta:
        _use_tta(config)
    runner = build_runner(config)
    with late_building():
        metrics = runner.test()
    if is_main_process():
        if not metrics:
            print(NO_FIGURES)
        print('\n'.join(f'{name}: {_rounded(value)}' for name, value in metrics.items()))
        log = Path(runner.log_dir) / f'{runner.timestamp}.log'
        pictures = f'  pictures: {args.show_dir}' if args.show_dir else ''
        predictions = f'  predictions: {args.out}' if args.out else ''
        print(f'Done. Log: {log}{predictions}{pictures}')
    return 0


def _rounded(value: object) -> object:
    """A figure as it was logged: NumPy's single precision has many digits that mean nothing."""
    return round(float(value), 4) if isinstance(value, (float, np.floating)) else value


def _use_checkpoint(config: Config, checkpoint: str) -> None:
    if '://' not in checkpoint:
        check_file(Path(checkpoint))
    config.load_from = checkpoint
    config.resume = False
    if config.model.get('backbone'):
        config.model.backbone.init_cfg = None


def _use_tta(config: Config) -> None:
    for key in ('tta_model', 'tta_pipeline'):
        if key not in config:
            raise UserError(f'--tta needs {key} in the config: see configs/_base_/tta/')
    config.model = ConfigDict(**config.tta_model, module=config.model)
    for data_set in data_sets(config, 'test'):
        data_set.settings['pipeline'] = config.tta_pipeline
