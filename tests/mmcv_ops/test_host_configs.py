"""Detectors and segmenters of the hosts on our operators: a few of tools/dev/host_configs.py."""

import importlib.util

import pytest
from repository import ROOT

FILE = ROOT / 'tools' / 'dev' / 'host_configs.py'


@pytest.fixture(scope='module')
def tool():
    spec = importlib.util.spec_from_file_location('host_configs', FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    'host, name, side',
    [
        ('mmdet', 'carafe/faster-rcnn_r50_fpn-carafe_1x_coco', 64),
        ('mmdet', 'dcn/faster-rcnn_r50_fpn_dpool_1x_coco', 64),
        ('mmdet', 'dyhead/atss_r50_fpn_dyhead_1x_coco', 128),
        ('mmseg', 'psanet/psanet_r50-d8_4xb2-40k_cityscapes-512x1024', 128),
    ],
)
def test_is_built_learns_and_predicts(tool, host, name, side):
    (file,) = tool.choose(host, [name])
    assert list(tool.walk(host, file, side)) == ['build', 'loss', 'gradients', 'prediction']


def test_a_folder_is_represented_by_a_resnet_50(tool):
    assert [file.stem for file in tool.choose('mmdet', ['atss', 'yolox'])] == [
        'atss_r50_fpn_1x_coco',
        'yolox_l_8xb8-300e_coco',
    ]
