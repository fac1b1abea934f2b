"""Evaluation on whole images that are cut into tiles in memory."""

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import cv2
import numpy as np
import pytest
import torch
from blobs import SQUARES, Blobs, picture
from exported import export_detector
from mmengine.config import Config
from mmengine.model import BaseModel
from mmengine.registry import MODELS, DefaultScope
from mmengine.runner import Runner
from mmengine.structures import InstanceData
from pycocotools import mask as coco

from ptnt_mm.api import load_predictor
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.data.tiles import Tiling
from ptnt_mm.workbench.engine.evaluation_outputs import add_drawing, add_dump
from ptnt_mm.workbench.engine.runner import build_runner
from ptnt_mm.workbench.export.evaluation import evaluate_file

METRIC = 'ptnt_mm.workbench.engine.mmdet_metrics.DenseCocoMetric'


class FindsBlobs(BaseModel):
    """A perfect detector, of images that are enlarged twice."""

    def __init__(self, has_masks: bool = False, data_preprocessor: Any = None):
        super().__init__()
        self.detect = Blobs(has_masks)

    def forward(self, *args: Any) -> None:
        """Not used."""

    def test_step(self, data: dict) -> list:
        samples = data['data_samples']
        for image, sample in zip(data['inputs'], samples, strict=True):
            found = self.detect(image.numpy().transpose(1, 2, 0))
            masks = None
            if found.masks is not None:
                sizes = (mask.astype(np.uint8) for mask in found.masks)
                size = sample.ori_shape[::-1]
                masks = [cv2.resize(mask, size) > 0 for mask in sizes]
                masks = dict(masks=torch.from_numpy(np.array(masks).reshape(-1, *size[::-1])))
            sample.pred_instances = InstanceData(
                bboxes=torch.from_numpy(found.boxes) / sample.scale_factor[0],
                scores=torch.from_numpy(found.scores),
                labels=torch.from_numpy(found.labels),
                **(masks or {}),
            )
        return samples

    val_step = test_step


@pytest.fixture(autouse=True)
def detector() -> Iterator[None]:
    MODELS.register_module(module=FindsBlobs, force=True)
    yield
    MODELS.module_dict.pop('FindsBlobs')


def write_images(folder: Path, *boxes: list[tuple[int, int, int, int]], **size: int) -> Path:
    """Images of white rectangles, and their COCO file; the category of all is 1."""
    folder.mkdir()
    images, objects = [], []
    for i, of_image in enumerate(boxes):
        pixels = picture(of_image, **size)
        height, width = pixels.shape[:2]
        cv2.imwrite(str(folder / f'{i}.png'), pixels)
        images.append(dict(id=i, file_name=f'{i}.png', width=width, height=height))
        for x1, y1, x2, y2 in of_image:
            corners = [x1, y1, x2, y1, x2, y2, x1, y2]
            box = [x1, y1, x2 - x1, y2 - y1]
            item = dict(id=len(objects) + 1, image_id=i, category_id=1, iscrowd=0)
            objects.append(
                {**item, 'bbox': box, 'area': box[2] * box[3], 'segmentation': [corners]}
            )
    file = folder / 'labels.json'
    categories = [dict(id=1, name='square')]
    file.write_text(json.dumps(dict(images=images, annotations=objects, categories=categories)))
    return file


def config_of(file: Path, work_dir: Path, tile: int | None = 64, **options: Any) -> Config:
    """A config whose validation and test are those of a COCO file."""
    steps = [
        dict(type='LoadImageFromFile'),
        dict(type='Resize', scale_factor=2.0),
        dict(type='LoadAnnotations', with_bbox=True),
        dict(type='PackDetInputs'),
    ]
    data_set = dict(
        type='CocoDataset',
        ann_file=str(file),
        data_prefix=dict(img=str(file.parent)),
        metainfo=dict(classes=('square',)),
        test_mode=True,
        pipeline=steps,
    )
    loader = dict(
        batch_size=options.pop('batch_size', 1),
        num_workers=options.pop('workers', 0),
        dataset=data_set,
        sampler=dict(type='DefaultSampler', shuffle=False),
    )
    cfg = {} if tile is None else dict(tile=tile)
    metric = dict(type=METRIC, ann_file=str(file), metric=options.pop('metric', 'bbox'))
    settings = dict(
        default_scope='mmdet',
        work_dir=str(work_dir),
        model=dict(type='FindsBlobs', has_masks=options.pop('has_masks', False)),
        val_dataloader=loader,
        val_cfg=dict(type='TiledValLoop', **cfg) if cfg else {},
        val_evaluator=metric,
        test_dataloader=loader,
        test_cfg=dict(type='TiledTestLoop', **cfg) if cfg else {},
        test_evaluator=metric,
        default_hooks=dict(checkpoint=None),
    )
    return Config({**settings, **options})


def built(config: Config) -> Runner:
    # Runners of one name would share a visualizer, and its folder.
    config = Config({**config.to_dict(), 'experiment_name': uuid4().hex})
    return build_runner(ConfigView(config))


@pytest.mark.parametrize(('batch_size', 'workers'), [(1, 0), (2, 1)])
def test_objects_across_tiles_are_found_once(tmp_path: Path, batch_size: int, workers: int):
    file = write_images(tmp_path / 'data', SQUARES, [], [(8, 8, 40, 40)])
    config = config_of(file, tmp_path, batch_size=batch_size, workers=workers)
    runner = built(config)
    assert runner.test()['coco/bbox_mAP'] == 1.0
    assert runner.val()['coco/bbox_mAP'] == 1.0
    # Two passes, over three images of 160 x 200 pixels: the network sees tiles, enlarged twice.
    shapes = runner.model.detect.shapes
    whole = len(Tiling(64).windows(200, 160))
    assert len(shapes) == 2 * 3 * (whole + 1)
    assert max(max(shape) for shape in shapes) == 128


def test_an_image_no_larger_than_a_tile_is_not_cut(tmp_path: Path):
    file = write_images(tmp_path / 'data', SQUARES)
    tiled, whole = (built(config_of(file, tmp_path, tile)) for tile in (200, None))
    assert tiled.test() == whole.test()
    assert tiled.model.detect.shapes == whole.model.detect.shapes == [(320, 400)]


def test_joined_data_sets_are_cut_too(tmp_path: Path):
    file = write_images(tmp_path / 'data', SQUARES)
    config = config_of(file, tmp_path)
    part = config.test_dataloader.dataset.to_dict()
    config.test_dataloader.dataset = dict(type='ConcatDataset', datasets=[part, part])
    runner = built(config)
    runner.test()
    assert len(runner.model.detect.shapes) == 2 * (len(Tiling(64).windows(200, 160)) + 1)

    config.test_dataloader.dataset.datasets[1].pipeline[1].scale_factor = 1.0
    with pytest.raises(UserError, match='different pipelines'):
        built(config).test()


def test_masks_are_measured_and_dumped_as_run_lengths(tmp_path: Path):
    file = write_images(tmp_path / 'data', SQUARES, [(8, 8, 40, 40)])
    config = config_of(file, tmp_path, metric=['bbox', 'segm'], has_masks=True)
    add_dump(ConfigView(config), tmp_path / 'found.pkl')
    scores = built(config).test()
    assert scores['coco/bbox_mAP'] > 0.99 and scores['coco/segm_mAP_50'] == 1.0
    samples = pickle.loads((tmp_path / 'found.pkl').read_bytes())
    assert [coco.decode(m).shape for m in samples[1]['pred_instances']['masks']] == [(160, 200)]
    assert all('gt_instances' not in sample for sample in samples)


def test_masks_of_images_that_are_not_cut_are_dumped(tmp_path: Path):
    file = write_images(tmp_path / 'data', [(8, 8, 40, 40)])
    config = config_of(file, tmp_path, 200, metric='segm', has_masks=True)
    add_dump(ConfigView(config), tmp_path / 'found.pkl')
    built(config).test()
    (sample,) = pickle.loads((tmp_path / 'found.pkl').read_bytes())
    (mask,) = sample['pred_instances']['masks']
    assert coco.area(mask) == 32 * 32


def test_metrics_get_the_truth_of_the_whole_image(tmp_path: Path):
    file = write_images(tmp_path / 'data', SQUARES)
    metric = dict(type='VOCMetric', metric='mAP', eval_mode='area')
    runner = built(config_of(file, tmp_path, test_evaluator=metric))
    assert runner.test()['pascal_voc/mAP'] == 1.0


def test_drawn_objects_have_lines_for_a_tile(tmp_path: Path):
    file = write_images(tmp_path / 'data', [(600, 300, 640, 340)], height=1000, width=1600)
    config = config_of(
        file,
        tmp_path,
        320,
        has_masks=True,
        default_hooks=dict(checkpoint=None, visualization=dict(type='DetVisualizationHook')),
        visualizer=dict(type='DetLocalVisualizer', name=str(tmp_path)),
    )
    add_drawing(ConfigView(config), tmp_path / 'shown')
    built(config).test()
    (drawn,) = (tmp_path / 'shown').rglob('*.png')
    # The truth on the left, and the objects on the right.
    pixels = cv2.imread(str(drawn))
    assert pixels.shape == (1000, 3200, 3)
    for left in (0, 1600):
        before, line = pixels[320, left + 598], pixels[320, left + 600]
        assert not before.any() and line.any() and (line != 255).any(), 'the line has one pixel'


@pytest.mark.parametrize(
    ('cfg', 'expected'),
    [
        (dict(tile=16), '`tile=16`'),
        (dict(tile='640'), "`tile='640'`"),
        (dict(tile=64, overlap=1), '`overlap=1`'),
    ],
)
def test_impossible_tiles_are_refused(tmp_path: Path, cfg: dict, expected: str):
    file = write_images(tmp_path / 'data', SQUARES)
    for name in ('val', 'test'):
        config = config_of(file, tmp_path)
        config[f'{name}_cfg'] = dict(type=f'Tiled{name.title()}Loop', **cfg)
        with pytest.raises(UserError, match=expected):
            getattr(built(config), name)()
    with pytest.raises(UserError, match=expected):
        load_predictor(config, None, 'cpu')


def test_a_pipeline_without_a_file_to_load_is_refused(tmp_path: Path):
    config = config_of(write_images(tmp_path / 'data', SQUARES), tmp_path)
    del config.test_dataloader.dataset.pipeline[0]
    with pytest.raises(UserError, match='which is Resize: expected LoadImageFromFile'):
        built(config).test()


def test_another_task_is_refused_before_the_first_image(tmp_path: Path):
    config = config_of(write_images(tmp_path / 'data', SQUARES), tmp_path)
    config.default_scope = 'mmseg'
    with pytest.raises(UserError, match='is for segmentation: use TestLoop'):
        built(config).test_loop  # noqa: B018


def test_a_model_without_objects_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(FindsBlobs, 'test_step', lambda self, data: data['data_samples'])
    file = write_images(tmp_path / 'data', SQUARES)
    with pytest.raises(UserError, match='TiledTestLoop is for detectors'):
        built(config_of(file, tmp_path)).test()


def test_prediction_has_the_tiles_of_the_config(tmp_path: Path):
    file = write_images(tmp_path / 'data', SQUARES)
    assert load_predictor(config_of(file, tmp_path), None, 'cpu').tiling == Tiling(64, 0.2)
    assert load_predictor(config_of(file, tmp_path, None), None, 'cpu').tiling is None
    config = config_of(file, tmp_path)
    config.test_cfg = dict(
        type='ptnt_mm.workbench.engine.tiled_loops.TiledTestLoop', tile=99, overlap=0.5
    )
    assert load_predictor(config, None, 'cpu').tiling == Tiling(99, 0.5)


def test_an_exported_file_is_evaluated_in_tiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    exported = export_detector(monkeypatch, tmp_path / 'model.onnx', seen := Blobs())
    file = write_images(tmp_path / 'data', SQUARES)
    config = config_of(file, tmp_path)
    with DefaultScope.overwrite_default_scope('mmdet'):
        scores = evaluate_file(config, exported, tmp_path / 'evaluation')
    assert scores['coco/bbox_mAP'] == 1.0
    # It resizes images itself, so that it gets tiles as they are.
    assert max(max(shape) for shape in seen.shapes) == 64


def test_all_detections_of_an_image_count(tmp_path: Path):
    many = [(x, y, x + 6, y + 6) for x in range(2, 190, 11) for y in range(2, 150, 11)]
    assert len(many) > 2 * 100
    file = write_images(tmp_path / 'data', many)
    dense = built(config_of(file, tmp_path, None)).test()
    config = config_of(file, tmp_path, None)
    config.test_evaluator.type = 'CocoMetric'
    usual = built(config).test()
    assert dense.pop('coco/bbox_mAP') == 1.0
    assert usual.pop('coco/bbox_mAP') < 0.5
    assert dense == usual


def test_few_detections_score_as_with_mmdets_metric(tmp_path: Path):
    file = write_images(tmp_path / 'data', SQUARES, [(8, 8, 40, 40)])
    config = config_of(file, tmp_path, None)
    dense = built(config).test()
    config.test_evaluator.type = 'CocoMetric'
    assert built(config).test() == dense
