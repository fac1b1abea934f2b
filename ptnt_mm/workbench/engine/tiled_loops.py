"""Evaluate a detector on large images: cut into tiles in memory, compared as a whole."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from mmengine.dataset import Compose, pseudo_collate
from mmengine.runner import TestLoop, ValLoop
from mmengine.runner.amp import autocast
from mmengine.structures import BaseDataElement, InstanceData

from ptnt_mm.hooks.corrupt_images import with_pipelines
from ptnt_mm.registry import LOOPS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.config.settings import loads_annotations, type_name
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.data.tiles import OVERLAP, Tiling


class _InTiles:
    """The part that :class:`TiledValLoop` and :class:`TiledTestLoop` share.

    The workers of the data loader only load images. The other steps of the pipeline run on one tile
    at a time, so memory does not grow with the number of tiles.
    """

    _split: str

    def __init__(
        self,
        runner: Any,
        dataloader: Any,
        evaluator: Any,
        tile: int,
        overlap: float = OVERLAP,
        fp16: bool = False,
    ):
        # Importing ptnt_mm does not need pycocotools.
        from ptnt_mm.workbench.engine import tiles

        self._tiles = tiles
        self.tiling = Tiling(tile, overlap)
        host = ConfigView(runner.cfg).host
        if host is not None and host.task != 'detection':
            raise UserError(
                f'{type(self).__name__} merges upright boxes, but this config is for {host.task}: '
                f'use {self._split.title()}Loop'
            )
        super().__init__(runner, dataloader, evaluator, fp16)
        self._of_wholes, self._of_parts = _leave_only_loading(self.dataloader.dataset)
        self.dataloader.collate_fn = list

    @torch.no_grad()
    def run_iter(self, idx: int, data_batch: list[dict]) -> None:
        """Detect in a batch of loaded images, and hand the samples to the metrics."""
        self.runner.call_hook(f'before_{self._split}_iter', batch_idx=idx, data_batch=data_batch)
        with autocast(enabled=self.fp16):
            outputs = [self._predict(entries) for entries in data_batch]
        self.evaluator.process(data_samples=outputs, data_batch=data_batch)
        self.runner.call_hook(
            f'after_{self._split}_iter', batch_idx=idx, data_batch=data_batch, outputs=outputs
        )

    def _predict(self, entries: Mapping[str, Any]) -> BaseDataElement:
        """The sample of an image, with the objects of all tiles."""
        packed = self._of_wholes(dict(entries))
        if max(entries['img'].shape[:2]) <= self.tiling.tile:
            return self._run(packed)
        # With test-time augmentation, there is a sample for each view.
        samples = packed['data_samples']
        sample = samples[0] if isinstance(samples, list) else samples

        def detect(pixels: np.ndarray) -> InstanceData:
            part = self._run(self._of_parts(self._tiles.part_of(entries, pixels)))
            return part.pred_instances.cpu()

        sample.pred_instances = self._tiles.detect_in_tiles(detect, entries['img'], self.tiling)
        for value in sample.values():
            if isinstance(value, InstanceData):
                _prepare(value, self.tiling.tile)
        return sample

    def _run(self, packed: dict) -> BaseDataElement:
        step = getattr(self.runner.model, f'{self._split}_step')
        (sample,) = step(pseudo_collate([packed]))
        if 'pred_instances' not in sample:
            raise UserError(f'{type(self).__name__} is for detectors: this model finds no objects')
        return sample


@LOOPS.register_module()
class TiledValLoop(_InTiles, ValLoop):
    """Validate on large images, each cut into tiles in memory.

    The pipeline stays that of images of a tile's size: its first step loads the image, the others
    run on each tile. Images no larger than a tile are not cut. The objects of all tiles are merged
    as ``ptnt infer --tile`` does, with masks as COCO's run lengths.

    Args:
        runner: MMEngine's runner.
        dataloader: The data loader, or its settings.
        evaluator: The evaluator, or its settings.
        tile: The side of a tile in pixels of the image, from 32.
        overlap: The share of a tile that neighbours have in common, from 0 and below 1.
        fp16: Whether to run the model in half precision.

    Raises:
        UserError: if a tile has no such size, if the first step of the pipeline does not load an
            image or joined data sets have different ones, and while running if the model finds no
            objects.
    """

    _split = 'val'


@LOOPS.register_module()
class TiledTestLoop(_InTiles, TestLoop):
    """Test on large images as :class:`TiledValLoop` validates.

    ``ptnt infer`` and ``ptnt export`` take the tiles of this loop from a config's ``test_cfg``.
    """

    _split = 'test'


def stated_tiling(view: ConfigView) -> Tiling | None:
    """The tiles that a config tests in; None for whole images.

    Raises:
        UserError: if they have no possible size.
    """
    loop = view.test.loop
    if type_name(loop) != TiledTestLoop.__name__:
        return None
    return Tiling(loop.get('tile'), loop.get('overlap', OVERLAP))


def _leave_only_loading(data_set: Any) -> tuple[Compose, Compose]:
    """Leave the first step of a pipeline to the data set.

    Returns:
        The other steps, for whole images and for parts of them, which have no annotations.
    """
    parts = list(with_pipelines(data_set))
    steps = parts[0].pipeline.transforms if parts else []
    if not steps or not type(steps[0]).__name__.startswith('Load'):
        first = type(steps[0]).__name__ if steps else 'nothing'
        raise UserError(
            f'tiles are cut from what the first step of the pipeline loads, which is {first}: '
            'expected LoadImageFromFile or LoadImageInRange'
        )
    if len({repr(part.pipeline) for part in parts}) > 1:
        raise UserError('joined data sets have different pipelines: tiles need the same one')
    for part in parts:
        part.pipeline = Compose(part.pipeline.transforms[:1])
    others = steps[1:]
    of_parts = [step for step in others if not loads_annotations(type(step).__name__)]
    return Compose(others), Compose(of_parts)


def _prepare(objects: InstanceData, tile: int) -> None:
    """Give metrics tensors, as a model's preprocessor does, and drawings the size of a tile."""
    objects.set_metainfo(dict(tile=tile))
    if hasattr(objects.get('bboxes'), 'tensor'):
        objects.bboxes = objects.bboxes.tensor
