"""What an evaluation leaves behind on request: pictures, and a file of all predictions.

Every host has its own settings for them; this is where they are known.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config
from mmengine.evaluator import DumpResults

from ptnt_mm.engine.data_files import evaluators
from ptnt_mm.errors import UserError

# By a config's default scope; MMEngine's own serves the others.
_DUMPS = {'mmdet': 'DumpDetResults', 'mmseg': 'ptnt_mm.engine.outputs.DumpMaps'}


class DumpMaps(DumpResults):
    """Dump maps of classes into a pickle: of each image its path and ``pred_sem_seg``, (1, H, W).

    MMEngine's own keeps the logits, too: 400 MB for an image of 150 classes, all in memory.
    """

    def process(self, data_batch: Any, predictions: Sequence[dict]) -> None:
        """Keep the maps, in bytes where 256 classes are enough."""
        kept = []
        for sample in predictions:
            labels = sample['pred_sem_seg']['data']
            small = torch.uint8 if labels.max() < 256 else torch.int16
            kept.append(dict(img_path=sample['img_path'], pred_sem_seg=labels.to(small)))
        super().process(data_batch, kept)


def draw(config: Config, folder: Path) -> None:
    """Have the host's own hook draw ground truth beside predictions, for every image.

    Raises:
        UserError: if the config has no such hook.
    """
    hook = (config.get('default_hooks') or {}).get('visualization')
    if hook is None:
        raise UserError("--show-dir needs default_hooks.visualization, the host's drawing hook")
    hook.draw = True
    if config.get('default_scope') == 'mmseg':
        # Its hook draws each 50th image otherwise, and has no folder of its own.
        hook.interval = 1
        config.visualizer.save_dir = str(folder)
    else:
        hook.test_out_dir = str(folder)


def dump(config: Config, file: Path) -> None:
    """Have an evaluator write all predictions into one file.

    Raises:
        UserError: if the file's name is not that of a pickle.
    """
    if file.suffix not in ('.pkl', '.pickle'):
        raise UserError(f'--out {file}: predictions are written as a pickle, so end it in .pkl')
    kind = _DUMPS.get(config.get('default_scope'), 'DumpResults')
    config.test_evaluator = [
        *evaluators(config, 'test'),
        dict(type=kind, out_file_path=str(file)),
    ]
