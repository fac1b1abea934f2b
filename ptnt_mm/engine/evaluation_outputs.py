"""Optional outputs of an evaluation: pictures, and a file of all predictions."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.config import Config
from mmengine.evaluator import DumpResults
from mmengine.hooks import Hook

from ptnt_mm.data.image_files import encode_image, read_image
from ptnt_mm.engine.classes import count_classes, find_classes
from ptnt_mm.engine.data_files import data_sets, evaluators
from ptnt_mm.engine.hosts import HOSTS
from ptnt_mm.registry import HOOKS, METRICS
from ptnt_mm.utils.atomic_files import check_new, fitted_name, write_whole
from ptnt_mm.utils.errors import UserError
from ptnt_mm.visualization.class_drawings import paint_map, write_labels


def draw_predictions(config: Config, folder: Path) -> None:
    """Let the evaluation draw ground truth next to predictions, for every image.

    Raises:
        UserError: if the folder cannot be created, or if the host's hook draws, and the config
            lacks it or its visualizer.
    """
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir():
        raise UserError(f'--show-dir {folder}: {there} is a file, not a folder: choose another')
    host = HOSTS.get(config.get('default_scope'))
    if host is not None and host.draws:
        # The folder that the images of all joined data sets are in.
        roots = []
        for dataset in data_sets(config, 'test'):
            prefix = dataset.prefixes.get('img_path') or ''
            roots.append(os.path.abspath(Path(dataset.settings.get('data_root') or '', prefix)))
        hook = dict(type=host.draws, folder=str(folder), root=os.path.commonpath(roots))
        config.custom_hooks = [*(config.get('custom_hooks') or []), hook]
        return
    hook = (config.get('default_hooks') or {}).get('visualization')
    if hook is None:
        raise UserError("--show-dir needs default_hooks.visualization, the host's drawing hook")
    if config.get('visualizer') is None:
        raise UserError("--show-dir needs visualizer, which the host's drawing hook draws with")
    hook.draw = True
    hook.test_out_dir = str(folder)


def dump_predictions(config: Config, file: Path) -> None:
    """Let an evaluator write all predictions into one file, or raise a UserError."""
    if file.suffix not in ('.pkl', '.pickle'):
        raise UserError(f'--out {file}: predictions are written as a pickle, so end it in .pkl')
    check_new(file, overwrite=True)
    host = HOSTS.get(config.get('default_scope'))
    config.test_evaluator = [
        *evaluators(config, 'test'),
        dict(type=host.dump if host else 'DumpResults', out_file_path=str(file)),
    ]


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


@HOOKS.register_module(name=['DrawMapsHook', 'DrawLabelsHook'])
class DrawHook(Hook):
    """Draw tested images: a segmenter's true map next to the predicted one, a classifier's classes.

    The hooks of mmseg and mmpretrain name pictures by the last part of the images' paths, so images
    with the same name in several folders overwrite each other. This hook has two names in configs,
    ``DrawMapsHook`` and ``DrawLabelsHook``.

    Args:
        folder: Output folder for PNG files, with the same subfolders as the images below ``root``.
        root: The images' folder. Images from elsewhere keep their full path.
    """

    def __init__(self, folder: str, root: str):
        self._folder = Path(folder)
        self._root = Path(os.path.abspath(root))
        self._drawn: dict[Path, Path] = {}

    def before_test(self, runner: Any) -> None:
        """Find the names and colours of the classes."""
        meta = getattr(runner.test_dataloader.dataset, 'metainfo', {})
        self._known = find_classes(meta, runner.cfg, runner.model)
        self._number = count_classes(runner.model) or len(self._known['classes'] or ())

    def after_test_iter(
        self,
        runner: Any,
        batch_idx: int,
        data_batch: Any = None,
        outputs: Sequence[Any] | None = None,
    ) -> None:
        """Draw a batch, or raise a UserError about what is missing or does not fit."""
        for sample in outputs or ():
            if 'img_path' not in sample:
                raise UserError(
                    '--show-dir needs the img_path of each image: name it in the meta_keys of the '
                    "pipeline's last step"
                )
            file = Path(os.path.abspath(sample.img_path))
            try:
                picture = self._picture(sample, read_image(file))
            except UserError as error:
                raise UserError(f'--show-dir: {error}') from error
            name = file.relative_to(self._root if file.is_relative_to(self._root) else file.anchor)
            # Not in the formats of the images: JPEG blurs borders, WebP cannot fit two images.
            out = name.with_name(fitted_name(f'{name.stem}.png'))
            if self._drawn.setdefault(out, name) != name:
                # Images that differ only in their suffixes.
                out = name.with_name(fitted_name(f'{name.name}.png'))
            write_whole(self._folder / out, encode_image(picture, '.png'))

    def _picture(self, sample: Any, image: np.ndarray) -> np.ndarray:
        """A sample drawn on its image, (H, W, 3) uint8, BGR."""
        if 'pred_score' in sample:
            return write_labels(image, sample, self._known['classes'])
        if 'pred_sem_seg' not in sample:
            raise UserError(
                'the model returns neither pred_sem_seg, as segmenters do, nor pred_score, as '
                'classifiers do: leave it out'
            )
        painted = []
        for key in ('gt_sem_seg', 'pred_sem_seg'):
            if key in sample:
                labels = sample.get(key).data[0].cpu().numpy().astype(np.int64)
                if labels.shape != image.shape[:2]:
                    raise UserError(
                        f'{sample.img_path} has {image.shape[:2]} pixels (height, width), and its '
                        f'map {labels.shape}: masks need the size of their images, and '
                        'LoadAnnotations belongs after Resize in a test pipeline'
                    )
                painted.append(paint_map(image, labels, self._known, self._number))
        return np.hstack(painted)
