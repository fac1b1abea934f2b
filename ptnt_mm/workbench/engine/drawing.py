"""Draw predictions: of every image in a test, and of some in each evaluation during training."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mmengine.hooks import Hook

from ptnt_mm.deploy.decoding import Range
from ptnt_mm.registry import HOOKS
from ptnt_mm.utils.atomic_files import fitted_name, write_atomically
from ptnt_mm.utils.errors import UserError
from ptnt_mm.weights.class_names import count_classes
from ptnt_mm.workbench.config.class_names import find_classes
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.data.image_files import encode_image, read_image
from ptnt_mm.workbench.drawing.class_drawings import paint_map, predicts_several, write_labels
from ptnt_mm.workbench.drawing.object_drawings import draw_objects
from ptnt_mm.workbench.engine.load_in_range import stated_range


@HOOKS.register_module()
class DrawPredictionsHook(Hook):
    """Draw tested images: a segmenter's true map next to the predicted one, a classifier's classes.

    The hooks of mmseg and mmpretrain name pictures by the last part of the images' paths, so images
    with the same name in several folders overwrite each other.

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
        tested = ConfigView(runner.cfg).test
        self._value_range = stated_range(tested)
        self._known = find_classes(meta, tested.metainfo, runner.model)
        self._number = count_classes(runner.model) or len(self._known['classes'] or ())
        self._several = predicts_several(runner.model)

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
                    '`show_dir` needs the img_path of each image: add it to the meta_keys of the '
                    "pipeline's last step"
                )
            file = Path(os.path.abspath(sample.img_path))
            try:
                picture = self._picture(sample, read_image(file, self._value_range))
            except UserError as error:
                raise UserError(f'`show_dir`: {error}') from error
            name = file.relative_to(self._root if file.is_relative_to(self._root) else file.anchor)
            # Not in the formats of the images: JPEG blurs borders, WebP cannot fit two images.
            out = name.with_name(fitted_name(f'{name.stem}.png'))
            if self._drawn.setdefault(out, name) != name:
                # Images that differ only in their suffixes.
                out = name.with_name(fitted_name(f'{name.name}.png'))
            write_atomically(self._folder / out, encode_image(picture, '.png'))

    def _picture(self, sample: Any, image: np.ndarray) -> np.ndarray:
        """A sample drawn on its image, (H, W, 3) uint8, BGR."""
        if 'pred_score' in sample:
            return write_labels(image, sample, self._known['classes'], several=self._several)
        if 'pred_sem_seg' not in sample:
            raise UserError(
                'the model returns neither pred_sem_seg, as segmenters do, nor pred_score, as '
                'classifiers do: omit it'
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
        self._value_range = stated_range(ConfigView(runner.cfg).val)

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
