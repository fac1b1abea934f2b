"""Two iterations of an experiment on the demo set, and an evaluation.

The networks have their real widths; images, batches and classes are those of the demo set.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path

from mmengine.config import Config

import ptnt_mm
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.config.read import parse_options, read_config
from ptnt_mm.workbench.engine.train import train
from reproduction.experiments import Experiment, commands, read_tables

DEMOS = dict(
    mmdet='demo_mask_rcnn_ptnt_ti',
    mmseg='demo_semantic_fpn_ptnt_ti',
    mmpretrain='demo_classifier_ptnt_ti',
)
DATA = ('data/demo', 'data/demo_cls')
CLASSES = dict(mmdet=4, mmseg=5, mmpretrain=4)


def shortened(row: Experiment) -> Config:
    """The config of a row for two iterations of two images of the demo set."""
    config = read_config(row.config, parse_options(row.training_options))
    demo = ptnt_mm.get_config(DEMOS[config.default_scope])
    for split in ('train', 'val', 'test'):
        config[f'{split}_dataloader'] = demo[f'{split}_dataloader']
        config[f'{split}_dataloader'].update(num_workers=0, persistent_workers=False)
    config.train_dataloader.batch_size = 2
    for split in ('val', 'test'):
        config[f'{split}_evaluator'] = demo[f'{split}_evaluator']
        if 'mask' not in row.config and config.default_scope == 'mmdet':
            config[f'{split}_evaluator'].metric = 'bbox'
        config[f'{split}_dataloader'].dataset.indices = 4
    _set(config.model, 'num_classes', CLASSES[config.default_scope])
    _set(config.model.backbone, 'init_cfg', None)
    config.train_cfg = dict(type='RepeatableIterBasedTrainLoop', max_iters=2, val_interval=2)
    config.param_scheduler = None
    config.default_hooks.checkpoint.update(by_epoch=False, interval=2)
    return config


def _set(settings: object, key: str, value: object) -> None:
    """Set a key wherever it occurs in nested settings."""
    if isinstance(settings, dict):
        if key in settings:
            settings[key] = value
        settings = list(settings.values())
    for inner in settings if isinstance(settings, list) else ():
        _set(inner, key, value)


def try_experiments(words: list[str], work_dirs: Path) -> Iterator[tuple[Experiment, str]]:
    """Train and evaluate the rows whose command has one of the words, or all of them.

    Yields:
        Each row, and why it failed, or an empty text.

    Raises:
        UserError: if the demo set is missing, before anything runs.
    """
    if missing := [folder for folder in DATA if not Path(folder).is_dir()]:
        raise UserError(
            f'{missing[0]} does not exist: create the demo set with `ptnt demo`, and the images of '
            f'its classes with `python tools/make_demo_crops.py {" ".join(DATA)}`'
        )
    for number, (row, command) in enumerate(commands(read_tables()), start=1):
        line = shlex.join(command)
        if words and not any(word in line for word in words):
            continue
        why = ''
        try:
            train(shortened(row), work_dirs / str(number), overwrite=True)
        except UserError as error:
            why = str(error)
        yield row, why
