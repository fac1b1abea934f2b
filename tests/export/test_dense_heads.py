"""Exported files of mmdet's own detectors: every runtime, any size, any number of images."""

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from mmdet.structures import DetDataSample
from torch import nn

from ptnt_mm.deploy import Deployed
from ptnt_mm.deploy.export_info import ExportInfo
from ptnt_mm.deploy.pixels import prepared, resize
from ptnt_mm.deploy.resizing import Resizing
from ptnt_mm.deploy.runtimes import load_runtime
from ptnt_mm.workbench.export.comparison import compare
from ptnt_mm.workbench.export.formats import (
    OLDEST_TORCH,
    quantised,
    take_graph,
    to_onnx,
    write_onnx,
)
from ptnt_mm.workbench.export.supported_models import build_network

from .models import decided_model, host_config, quantised_operators
from .test_end_to_end import photograph

pytestmark = pytest.mark.skipif(
    torch.__version__ < OLDEST_TORCH, reason='torch is too old to export'
)

GFL = 'gfl/gfl_r50_fpn_1x_coco'
TOOD = 'tood/tood_r50_fpn_1x_coco'
CONDINST = 'condinst/condinst_r50_fpn_ms-poly-90k_coco_instance'
RTMDET = 'rtmdet/rtmdet-ins_tiny_8xb32-300e_coco'
LEVELS = {GFL: (2, 3), TOOD: (2, 1), RTMDET: (0, 2), CONDINST: (0, 3)}
"""The first of the host's five levels, and how many: an export takes as long as they are many.

GFL has the coarsest ones, also that of stride 128. CondInst's map of masks needs the three finest.
"""


class Exported(NamedTuple):
    network: nn.Module
    body: bytes
    file: Path


@pytest.mark.parametrize('name', [GFL, TOOD, RTMDET])
def test_a_file_for_any_size_and_batch(name: str, tmp_path: Path):
    """One test for each model: the export takes most of the time."""
    exported = export(name, None, tmp_path)
    only_standard_operators_are_used(exported)
    # A second runtime takes as long again, and most operators are those of GFL.
    for runtime in ('onnxruntime', 'openvino')[: 2 if name == GFL else 1]:
        files_find_what_the_host_finds(exported, runtime, [(256, 320), (195, 261), (64, 512)])
        images_of_a_batch_are_independent(exported, runtime)
    if sys.platform == 'linux' and name == GFL:
        int8_is_for_convolutions_and_not_for_boxes(exported)
    if name == RTMDET:
        whole_masks_have_the_size_of_the_image(exported)


def test_a_file_for_one_size(tmp_path: Path):
    """It takes a third of the time; RTMDet's masks for any size are computed alike."""
    exported = export(CONDINST, (128, 160), tmp_path)
    only_standard_operators_are_used(exported)
    files_find_what_the_host_finds(exported, 'onnxruntime', [(128, 160)])
    whole_masks_have_the_size_of_the_image(exported)


def export(name: str, size: tuple[int, int] | None, folder: Path) -> Exported:
    config = host_config(name, *LEVELS[name])
    # Fewer than there are, so that the rest is cut off; black images have none.
    config.model.test_cfg.update(max_per_img=40, score_thr=0.55)
    network = build_network(decided_model(config))
    body = to_onnx(take_graph(network, size or (64, 96), dynamic=size is None), network)
    file = folder / 'x.onnx'
    about = ExportInfo(
        task=network.task,
        classes=['a', 'b', 'c'],
        size=size and list(size),
        scale=[160, 128],
        keep_ratio=True,
        thresholds=network.thresholds,
        config='',
        checkpoint='',
        checkpoint_sha256='',
        version='',
        mask_grid=network.mask_grid and list(network.mask_grid),
    )
    write_onnx(file, body, about)
    return Exported(network, body, file)


def files_find_what_the_host_finds(
    exported: Exported, runtime: str, sizes: list[tuple[int, int]]
) -> None:
    run = load_runtime(exported.file, runtime)
    for size in sizes:
        inputs, _ = prepared(photograph(*size), Resizing(), None)
        differences = compare(run, exported.network, inputs)
        assert differences.within(1e-3) and differences.matched > 5, differences


def images_of_a_batch_are_independent(exported: Exported, runtime: str) -> None:
    """The second image has no objects, the third is smaller than the others."""
    run, image = load_runtime(exported.file, runtime), photograph(97, 160)
    images = np.stack([image, np.zeros_like(image), image[::-1]])
    sizes = np.array([(97, 160), (97, 160), (64, 131)])
    together = run(dict(images=images, sizes=sizes))
    for i, number in enumerate((3, 0, 3)):
        alone = run(dict(images=images[i : i + 1], sizes=sizes[i : i + 1]))
        assert (alone['labels'] >= 0).sum() >= number
        for name, values in alone.items():
            np.testing.assert_allclose(together[name][i], values[0], atol=1e-3)


def only_standard_operators_are_used(exported: Exported) -> None:
    import onnx

    model = onnx.load_from_string(exported.body)
    assert {node.domain for node in model.graph.node} == {''}


def int8_is_for_convolutions_and_not_for_boxes(exported: Exported) -> None:
    inputs = [prepared(photograph(128, 160), Resizing(), None)[0]]
    kinds = quantised_operators(quantised(exported.body, inputs))
    assert 'Conv' in kinds and 'MatMul' not in kinds, kinds


def whole_masks_have_the_size_of_the_image(exported: Exported) -> None:
    """The network's input is half as large."""
    image = photograph(256, 320)
    found = Deployed(exported.file)(image)
    sample = DetDataSample(
        metainfo=dict(
            img_shape=(128, 160),
            ori_shape=(256, 320),
            batch_input_shape=(128, 160),
            scale_factor=(0.5, 0.5),
        )
    )
    small = torch.from_numpy(resize(image, (128, 160)))[None]
    with torch.no_grad():
        normalised = exported.network.normalised(small, torch.tensor([(128, 160)]))
        expected = exported.network.model.predict(normalised, [sample])[0].pred_instances
    np.testing.assert_allclose(found.boxes, expected.bboxes, atol=1e-2)
    np.testing.assert_array_equal(found.labels, expected.labels)
    differing = (found.masks != expected.masks.numpy()).mean((1, 2))
    assert found.masks.any((1, 2)).sum() > 5 and not found.masks.all((1, 2)).all()
    assert differing.max() < 5e-3, differing
