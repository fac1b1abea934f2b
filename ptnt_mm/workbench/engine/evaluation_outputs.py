"""Optional outputs of an evaluation: pictures, and a file with all predictions."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from mmengine.evaluator import DumpResults

from ptnt_mm.registry import METRICS
from ptnt_mm.utils.atomic_files import check_folder, check_new
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.config.settings import type_name
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.engine.load_in_range import stated_range
from ptnt_mm.workbench.engine.tiled_loops import stated_tiling

_OF_MMDET = 'DetLocalVisualizer'
_OURS = 'ptnt_mm.workbench.drawing.object_visualizer.ObjectVisualizer'
_UNCHANGED = {'type', '_scope_', 'name', 'vis_backends', 'save_dir'}
"""Settings of mmdet's visualizer besides those of its lines and letters. MMEngine adds a scope."""


def add_drawing(view: ConfigView, folder: Path) -> None:
    """Let the evaluation draw ground truth next to predictions, for every image.

    Raises:
        UserError: if the folder cannot be created, or if the host's hook draws, and the config
            lacks it or its visualizer, or loads images in a range.
    """
    check_folder('show_dir', folder)
    config = view.config
    if view.host is not None and view.host.own_drawing:
        # The folder that the images of all joined data sets are in.
        roots = []
        for dataset in view.test.data_sets:
            prefix = dataset.prefixes.get('img_path') or ''
            roots.append(os.path.abspath(Path(dataset.settings.get('data_root') or '', prefix)))
        hook = dict(type='DrawPredictionsHook', folder=str(folder), root=os.path.commonpath(roots))
        config.custom_hooks = [*view.custom_hooks, hook]
        return
    if stated_range(view.test) is not None:
        raise UserError(
            '`show_dir` cannot draw images of more than 8 bits, which LoadImageInRange loads: use '
            'ptnt infer, or leave it out'
        )
    hook = view.default_hooks.get('visualization')
    if hook is None:
        raise UserError("`show_dir` needs default_hooks.visualization, the host's drawing hook")
    if config.get('visualizer') is None:
        raise UserError("`show_dir` needs visualizer, which the host's drawing hook draws with")
    if config.visualizer.keys() <= _UNCHANGED and type_name(config.visualizer) == _OF_MMDET:
        config.visualizer.type = _OURS
    hook.draw = True
    hook.test_out_dir = str(folder)


def add_dump(view: ConfigView, file: Path) -> None:
    """Let an evaluator write all predictions into one file, or raise a UserError."""
    if file.suffix not in ('.pkl', '.pickle'):
        raise UserError(
            f'`out={file}`: predictions are written as a pickle, so the name must end in .pkl'
        )
    if (separate := view.test.separate_evaluator) is not None:
        raise UserError(
            f'`out={file}`: {type_name(separate)} measures parts of the predictions, and cannot '
            'write all of them: omit `out`'
        )
    check_new(file, overwrite=True)
    dump = view.host.dump if view.host else 'DumpResults'
    if stated_tiling(view) is not None:
        dump = 'ptnt_mm.workbench.engine.mmdet_metrics.DumpTiledResults'
    view.config.test_evaluator = [*view.test.evaluators, dict(type=dump, out_file_path=str(file))]


@METRICS.register_module()
class DumpMaps(DumpResults):
    """Dump class maps into a pickle, ``pred_sem_seg``, (1, H, W), for each image.

    Other entries about the image, such as ``img_path``, are kept. MMEngine's evaluator also keeps
    the logits: 400 MB for an image with 150 classes, all in memory.
    """

    def process(self, data_batch: Any, predictions: Sequence[dict]) -> None:
        """Drop logits from samples with a map; keep others, such as depths, unchanged."""
        found = []
        for sample in predictions:
            if 'pred_sem_seg' in sample:
                labels = sample['pred_sem_seg']['data']
                small = torch.uint8 if labels.max() < 256 else torch.int16
                sample = dict(sample, pred_sem_seg=labels.to(small))
                sample.pop('seg_logits', None)
                sample.pop('gt_sem_seg', None)
            found.append(sample)
        super().process(data_batch, found)
