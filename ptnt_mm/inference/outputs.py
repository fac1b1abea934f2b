"""What an evaluation leaves behind on request: pictures, and a file of all predictions.

Every host has its own settings for them; this is where they are known.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config
from mmengine.evaluator import DumpResults

from ptnt_mm.engine.data_files import data_sets, evaluators
from ptnt_mm.utils.atomic_files import check_new
from ptnt_mm.utils.errors import UserError

# By a config's default scope; MMEngine's own serves the others.
_DUMPS = {'mmdet': 'DumpDetResults', 'mmseg': 'ptnt_mm.inference.outputs.DumpMaps'}

# For mmseg; the hooks of the others know a folder.
_DRAW_MAPS = 'ptnt_mm.inference.map_hook.DrawMapsHook'


class DumpMaps(DumpResults):
    """Dump maps of classes into a pickle: of each image ``pred_sem_seg``, (1, H, W).

    What else says something of the image, such as ``img_path``, stays beside it. MMEngine's own
    keeps the logits, too: 400 MB for an image of 150 classes, all in memory.
    """

    def process(self, data_batch: Any, predictions: Sequence[dict]) -> None:
        """Keep the maps, and all of what has none, such as depths."""
        super().process(data_batch, [_small(sample) for sample in predictions])


def draw(config: Config, folder: Path) -> None:
    """Have ground truth drawn beside predictions, for every image.

    Raises:
        UserError: if the folder cannot be one, or if the host's own hook is to draw, and the config
            lacks it or its visualizer.
    """
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir():
        raise UserError(f'--show-dir {folder}: {there} is a file, and no folder: choose another')
    if config.get('default_scope') == 'mmseg':
        hook = dict(type=_DRAW_MAPS, folder=str(folder), root=_images_folder(config))
        config.custom_hooks = [*(config.get('custom_hooks') or []), hook]
        return
    hook = (config.get('default_hooks') or {}).get('visualization')
    if hook is None:
        raise UserError("--show-dir needs default_hooks.visualization, the host's drawing hook")
    if config.get('visualizer') is None:
        raise UserError("--show-dir needs visualizer, which the host's drawing hook draws with")
    hook.draw = True
    hook.test_out_dir = str(folder)


def dump(config: Config, file: Path) -> None:
    """Have an evaluator write all predictions into one file.

    Raises:
        UserError: if the file's name is not that of a pickle, or there is no such folder.
    """
    if file.suffix not in ('.pkl', '.pickle'):
        raise UserError(f'--out {file}: predictions are written as a pickle, so end it in .pkl')
    check_new(file, overwrite=True)
    kind = _DUMPS.get(config.get('default_scope'), 'DumpResults')
    config.test_evaluator = [
        *evaluators(config, 'test'),
        dict(type=kind, out_file_path=str(file)),
    ]


def _small(sample: dict) -> dict:
    """A sample without logits and ground truth, its map in bytes where 256 classes are enough."""
    if 'pred_sem_seg' not in sample:
        return sample
    labels = sample['pred_sem_seg']['data']
    small = torch.uint8 if labels.max() < 256 else torch.int16
    kept = {key: value for key, value in sample.items() if key not in ('seg_logits', 'gt_sem_seg')}
    return dict(kept, pred_sem_seg=labels.to(small))


def _images_folder(config: Config) -> str:
    """The folder that the images of all joined test data sets are in."""
    folders = []
    for data_set in data_sets(config, 'test'):
        prefix = (data_set.settings.get('data_prefix') or {}).get('img_path') or ''
        folders.append(os.path.abspath(Path(data_set.settings.get('data_root') or '', prefix)))
    return os.path.commonpath(folders)
