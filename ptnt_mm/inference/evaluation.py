"""What an evaluation leaves behind on request: pictures, and a file of all predictions."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.config import Config
from mmengine.evaluator import DumpResults
from mmengine.hooks import Hook

from ptnt_mm.engine.data_files import data_sets, evaluators
from ptnt_mm.engine.hosts import HOSTS
from ptnt_mm.inference.classes import MapPainter, count_classes, find_classes, write_labels
from ptnt_mm.inference.images import encode_image, read_image
from ptnt_mm.registry import HOOKS, METRICS
from ptnt_mm.utils.atomic_files import check_new, write_whole
from ptnt_mm.utils.errors import UserError

_NEEDED = {
    'pred_sem_seg': 'only segmenters give one, so leave it out',
    'pred_score': 'only classifiers give one, so leave it out',
    'img_path': "name it in the meta_keys of the pipeline's last step",
}


def draw_predictions(config: Config, folder: Path) -> None:
    """Have ground truth drawn beside predictions, for every image.

    Raises:
        UserError: if the folder cannot be one, or if the host's own hook is to draw, and the config
            lacks it or its visualizer.
    """
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir():
        raise UserError(f'--show-dir {folder}: {there} is a file, not a folder: choose another')
    host = HOSTS.get(config.get('default_scope'))
    if host is not None and host.draws:
        # The folder that the images of all joined data sets are in.
        roots = []
        for one in data_sets(config, 'test'):
            prefix = one.prefixes.get('img_path') or ''
            roots.append(os.path.abspath(Path(one.settings.get('data_root') or '', prefix)))
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
    """Have an evaluator write all predictions into one file.

    Raises:
        UserError: if the file's name is not that of a pickle, or there is no such folder.
    """
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
    """Dump maps of classes into a pickle: of each image ``pred_sem_seg``, (1, H, W).

    Other entries about the image, such as ``img_path``, stay beside it. MMEngine's own
    keeps the logits, too: 400 MB for an image of 150 classes, all in memory.
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


class DrawHook(Hook, ABC):
    """Draw each tested image's ground truth, if it has any, and its prediction.

    The hooks of mmseg and mmpretrain name pictures by the last part of the images' paths: of images
    with the same name in several folders they leave one picture.

    Args:
        folder: Where the pictures go, as PNG, in the folders that the images have below ``root``.
        root: The images' folder. Images from elsewhere keep their whole path.
    """

    needs = ''  # what every sample must have

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
        """Draw a batch.

        Raises:
            UserError: if a sample has no prediction or does not say its image, the image cannot be
                read or has another size than a map, or the picture cannot be written.
        """
        for sample in outputs or ():
            for key in (self.needs, 'img_path'):
                if key not in sample:
                    raise UserError(f'--show-dir needs the {key} of each image: {_NEEDED[key]}')
            file = sample.img_path
            try:
                image = read_image(Path(file))
            except UserError as error:
                raise UserError(f'--show-dir: {error}') from error
            picture = encode_image(self.picture(sample, image), '.png')
            write_whole(self._folder / self._name(file), picture)

    @abstractmethod
    def picture(self, sample: Any, image: np.ndarray) -> np.ndarray:
        """Draw a sample on its image, (H, W, 3) uint8, BGR."""

    def _name(self, file: str) -> Path:
        """Where an image's picture goes, relative to the folder of pictures."""
        path = Path(os.path.abspath(file))
        name = path.relative_to(self._root if path.is_relative_to(self._root) else path.anchor)
        # Not in the images' own formats: JPEG blurs borders, and WebP has no room for two of them.
        picture = name.with_suffix('.png')
        if self._drawn.setdefault(picture, name) != name:
            # Images that differ in their suffixes alone.
            picture = name.with_name(f'{name.name}.png')
        return picture


@HOOKS.register_module()
class DrawMapsHook(DrawHook):
    """Draw a segmenter's ground truth and prediction side by side."""

    needs = 'pred_sem_seg'

    def picture(self, sample: Any, image: np.ndarray) -> np.ndarray:
        """Tint the pixels of an image in the colours of their classes: truth, prediction."""
        maps = [sample.get(key).data[0] for key in ('gt_sem_seg', self.needs) if key in sample]
        return np.hstack([self._paint(sample.img_path, image, labels) for labels in maps])

    def _paint(self, file: str, image: np.ndarray, labels: Any) -> np.ndarray:
        """A map of a sample, a tensor (H, W) on any device, over its image."""
        if tuple(labels.shape) != image.shape[:2]:
            raise UserError(
                f'--show-dir: {file} has {image.shape[:2]} pixels (height, width), and its map '
                f'{tuple(labels.shape)}: masks need the size of their images, and LoadAnnotations '
                'belongs behind Resize in a test pipeline'
            )
        painter = MapPainter(self._known, self._number)
        return painter.paint(image, labels.cpu().numpy().astype(np.int64))


@HOOKS.register_module()
class DrawLabelsHook(DrawHook):
    """Write a classifier's ground truth and its best classes on the image."""

    needs = 'pred_score'

    def picture(self, sample: Any, image: np.ndarray) -> np.ndarray:
        """Write the true classes, then the best five with their probabilities."""
        return write_labels(image, sample, self._known['classes'])
