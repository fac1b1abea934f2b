"""Shared by the tests of configs: each runs for all ``NAMES`` of its file."""

import re

import pytest
import torch
from mmengine.config import Config
from mmengine.model import revert_sync_batchnorm
from torch import nn

import ptnt_mm

from .models import build, narrow

# `narrow` makes one model of all sizes and schedules, except for the drop path rate. Some detectors
# have only 3x_ms.
SAME_MODEL = '_(ti|m|b)_|_3x$|(mask_rcnn|retinanet)_ptnt_s_3x_ms'


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes a config for each config or, with its model, for each other model."""
    marks = metafunc.definition.iter_markers('parametrize')
    if 'config' not in metafunc.fixturenames or any(mark.args[0] == 'config' for mark in marks):
        return
    names = metafunc.module.NAMES
    if 'model' in metafunc.fixturenames:
        names = [name for name in names if not re.search(SAME_MODEL, name)]
    metafunc.parametrize('config', names, indirect=True, scope='module')


@pytest.fixture(scope='module')
def config(request: pytest.FixtureRequest) -> Config:
    return ptnt_mm.get_config(request.param)


@pytest.fixture(scope='module')
def model(config: Config, micro_arch: dict) -> nn.Module:
    """The model with a narrow backbone."""
    torch.manual_seed(0)
    model = build(narrow(config, micro_arch))
    model.init_weights()  # some heads of mmdet are uninitialised until then
    return revert_sync_batchnorm(model)  # a CPU has none
