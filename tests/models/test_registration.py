"""One class for every host: registered once, found from all of them."""

from pathlib import Path

import pytest
from forked import Forked
from mmengine.registry import MODELS

from ptnt_mm import models

pytestmark = pytest.mark.slow

FROM_THE_HOSTS = """
import ptnt_mm.models
from mmdet.registry import MODELS as DET
from mmseg.registry import MODELS as SEG

for registry in DET, SEG:
    for name in ptnt_mm.models.__all__:
        assert registry.get(name) is getattr(ptnt_mm.models, name), (registry, name)
    model = registry.build(dict(type='PyramidTNT', arch='tiny', out_indices=(1, 2, 3)))
    assert model.out_channels == (160, 320, 320)
"""


@pytest.mark.parametrize('name', models.__all__)
def test_registered_in_the_root(name):
    assert MODELS.get(name) is getattr(models, name)


def test_built_from_a_config():
    neck = MODELS.build(dict(type='TransposedConvNeck', in_channels=[8, 16]))
    assert neck.out_channels == (8, 16)


def test_found_from_mmdet_and_mmseg(tmp_path: Path):
    """In a separate process, because the lookup imports all of mmdet and mmseg."""
    script, output = tmp_path / 'script.py', tmp_path / 'output.txt'
    script.write_text(FROM_THE_HOSTS)
    assert Forked([script], tmp_path, output).wait() == 0, output.read_text()
