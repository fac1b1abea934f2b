"""Make mmcv.ops use the operators of ptnt_mm, even if mmcv is compiled."""

import importlib.util
import sys
from types import ModuleType

import pytest
import torch

from ptnt_mm.mmcv_ops import installation


@pytest.fixture(scope='package')
def extension() -> ModuleType:
    """Our mmcv._ext."""
    spec = importlib.util.spec_from_file_location('ours', installation.EXTENSION)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def served(extension, monkeypatch):
    importlib.import_module('mmcv.ops')
    for name, module in list(sys.modules.items()):
        if name.startswith('mmcv.ops.') and hasattr(module, 'ext_module'):
            monkeypatch.setattr(module, 'ext_module', extension)
