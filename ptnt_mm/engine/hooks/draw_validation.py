"""Draw some predictions of each evaluation during training."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mmengine.hooks import Hook

from ptnt_mm.data.image_files import read_image
from ptnt_mm.drawing.class_drawings import predicts_several, write_labels
from ptnt_mm.drawing.object_drawings import draw_objects
from ptnt_mm.engine.load_in_range import stated_range
from ptnt_mm.registry import HOOKS
from ptnt_mm.utils.decoding import Range
from ptnt_mm.utils.errors import UserError

_SCORE_THR = 0.3
"""The lowest score of a drawn detection, as in mmdet's pictures."""


@HOOKS.register_module()
class DrawValidationHook(Hook):
    """Draw the predictions for the first images of each evaluation, into all backends.

    mmdet's hook draws other images each time.

    Args:
        images: Number of images.
    """

    def __init__(self, images: int = 4):
        self._images = images
        self._drawn = 0
        self._value_range: Range | None = None

    def before_run(self, runner: Any) -> None:
        """Find the range that images are loaded in."""
        self._value_range = stated_range(runner.cfg, 'val')

    def before_val_epoch(self, runner: Any) -> None:
        """Begin with the first image again."""
        self._drawn = 0

    def after_val_iter(
        self,
        runner: Any,
        batch_idx: int,
        data_batch: Any = None,
        outputs: Sequence[Any] | None = None,
    ) -> None:
        """Draw the images of a batch that are still to be drawn."""
        # Data sets such as CIFAR have no image files.
        samples = [sample for sample in outputs or () if getattr(sample, 'img_path', None)]
        for sample in samples[: self._images - self._drawn]:
            self._drawn += 1
            try:
                image = read_image(Path(sample.img_path), self._value_range)
            except UserError:
                # It refuses some files that the hosts can read, which must not stop a run.
                continue
            # MLflow needs a file name.
            name = f'prediction_{self._drawn}.png'
            known = getattr(runner.visualizer, 'dataset_meta', None) or {}
            if hasattr(sample, 'pred_score'):
                # No host has a visualizer whose add_datasample draws classes.
                several = predicts_several(getattr(runner, 'model', None))
                drawn = write_labels(image, sample, known.get('classes'), several=several)
            elif hasattr(sample, 'pred_instances'):
                # mmdet's lines and letters do not grow with the image.
                found = sample.pred_instances.cpu()
                found = found[found.scores > _SCORE_THR]
                truth = [sample.gt_instances.cpu()] if 'gt_instances' in sample else []
                drawn = np.hstack([draw_objects(image, part, known) for part in (*truth, found)])
            else:
                rgb = image[..., ::-1].copy()
                runner.visualizer.add_datasample(name, rgb, sample, step=runner.iter)
                continue
            runner.visualizer.add_image(name, drawn[..., ::-1].copy(), runner.iter)
