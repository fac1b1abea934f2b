"""Detectors of mmdet on images of all sizes, and the format of their results."""

from pathlib import Path

import numpy as np
import pytest
import torch
from configs.models import build, narrow
from mmengine.structures import InstanceData

import ptnt_mm
from ptnt_mm.api import load_predictor
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.inference.predictor import Predictor

from .samples import CLASSES, NAME, photograph, save


def load(
    checkpoint: Path, score_thr: float | None = 0.3, device: str = 'cpu', **options
) -> Predictor:
    config = ptnt_mm.get_config(NAME)
    config.merge_from_dict({'model.test_cfg.max_per_img': 3, **options})
    return load_predictor(config, str(checkpoint), device, score_thr)


@pytest.fixture(scope='module')
def detector(checkpoint: Path) -> Predictor:
    return load(checkpoint)


def sample_of(**fields):
    from mmdet.structures import DetDataSample

    return DetDataSample(pred_instances=InstanceData(**fields))


@pytest.mark.parametrize('size', [(1, 1), (1, 9), (3, 400), (400, 3), (77, 131)])
def test_any_size(size: tuple[int, int], detector: Predictor):
    image = photograph(*size)
    sample = detector.predict(image)
    found = detector.describe(sample)['detections']
    assert len(found) == 3
    for detection in found:
        x1, y1, x2, y2 = detection['box']
        assert 0 <= x1 <= x2 <= size[1] and 0 <= y1 <= y2 <= size[0]
        assert detection['label'] in CLASSES and 0.3 <= detection['score'] <= 1
    drawn = detector.draw(image, sample)
    assert drawn.shape == image.shape and drawn.dtype == np.uint8


def test_regions_of_mmcvs_roi_pool_on_a_cpu(micro_arch: dict, tmp_path: Path):
    """mmdet's ``inference_detector`` refuses it, because mmcv's own needs a GPU."""
    config = narrow(ptnt_mm.get_config('demo_mask_rcnn_ptnt_ti'), micro_arch)
    config.model.roi_head.bbox_roi_extractor.roi_layer = dict(type='RoIPool', output_size=7)
    file = save(build(config), config, dict(classes=CLASSES), tmp_path / 'epoch_1.pth')
    found = load_predictor(config, str(file), 'cpu', 0.0).predict(photograph(77, 131))
    assert len(found.pred_instances) > 0


def test_low_scores_are_left_out(checkpoint: Path):
    detector = load(checkpoint, score_thr=0.99)
    image = photograph(30, 40)
    sample = detector.predict(image)
    assert detector.describe(sample) == dict(detections=[])
    np.testing.assert_array_equal(detector.draw(image, sample), image)


def test_masks_are_run_lengths(detector: Predictor):
    from pycocotools import mask as coco

    masks = torch.zeros(2, 20, 30, dtype=torch.bool)
    masks[0, 5:15, 10:20] = True
    fields = dict(scores=torch.tensor([0.9, 0.5]), labels=torch.tensor([3, 0]), masks=masks)
    boxes = torch.tensor([[10.125, 5, 20, 15], [0, 0, 1, 1]])
    sample = sample_of(bboxes=boxes, **fields)
    first, second = detector.describe(sample)['detections']
    assert (first['label'], first['score'], first['box']) == ('cup', 0.9, [10.12, 5, 20, 15])
    np.testing.assert_array_equal(coco.decode(first['mask']), masks[0])
    assert isinstance(second['mask']['counts'], str) and second['mask']['size'] == [20, 30]
    assert detector.draw(photograph(20, 30), sample).shape == (20, 30, 3)
    # SOLO's detectors return only masks.
    alone = sample_of(bboxes=torch.zeros(2, 4), **fields)
    assert detector.describe(alone)['detections'][0]['box'] == [10, 5, 20, 15]


def test_classes_in_another_order_are_refused_and_others_are_named(
    checkpoint: Path, caplog: pytest.LogCaptureFixture
):
    key = 'test_dataloader.dataset.metainfo.classes'
    with pytest.raises(UserError, match=', '.join(CLASSES[::-1])):
        load(checkpoint, **{key: CLASSES[::-1]})
    load(checkpoint, **{key: ('bowl', *CLASSES[1:])})
    assert "'bowl'" in caplog.text


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (
            dict(default_scope='mmpose'),
            "default_scope='mmpose': expected one of mmdet, mmseg, mmpretrain",
        ),
        ({'model.backbone.arch': 'tini'}, 'unknown arch'),
        ({'model.bbox_head.type': 'RetinaHaed'}, "did you mean 'RetinaHead'"),
        (dict(test_dataloader=None), 'lacks test_dataloader: use a complete config'),
        (dict(device='cuda:99'), "device 'cuda:99' cannot be used here"),
    ],
)
def test_invalid_settings_of_a_model_are_refused(options: dict, message: str, checkpoint: Path):
    with pytest.raises(UserError, match=message):
        load(checkpoint, **options)
