"""MMEngine's switch ``compile`` in a config, which compiles the whole step, and CompileHook."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.registry import HOOKS, MODELS
from torch import Tensor
from torch._dynamo.utils import counters
from toy import quick, toy_config, toy_iterations, train

import ptnt_mm  # noqa: F401  registers the backbone and the neck
from ptnt_mm.hooks import CompileHook
from ptnt_mm.hooks.run_checkpoints import read_latest_checkpoint

pytestmark = pytest.mark.slow


@MODELS.register_module()
class ToyDetector(BaseModel):
    """Our backbone and neck, with a loss."""

    def __init__(self, arch: dict):
        super().__init__()
        self.backbone = MODELS.build(dict(type='PyramidTNT', arch=arch, out_indices=(0,)))
        channels = self.backbone.out_channels
        self.neck = MODELS.build(dict(type='TransposedConvNeck', in_channels=channels))

    def forward(self, inputs: list[Tensor], data_samples: list, mode: str = 'tensor'):
        # The toy's rows are four numbers: three of them make an image.
        colors = torch.stack(list(inputs))[:, 1:, None, None]
        images = colors * torch.linspace(-1, 1, 64 * 96).view(64, 96)
        levels = self.neck(self.backbone(images))
        return dict(loss=sum((level - 1).square().mean() for level in levels))


@HOOKS.register_module()
class RememberLosses(Hook):
    """Results of training steps."""

    losses: list[float] = []

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: dict | None = None
    ) -> None:
        RememberLosses.losses.append(outputs['loss'].item())


@pytest.fixture(autouse=True)
def _fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


def losses(work_dir: Path, arch: dict, **settings) -> list[float]:
    """Those of two iterations."""
    config = toy_iterations(work_dir, 2, model=dict(type='ToyDetector', arch=arch), **settings)
    # The step of the optimizer is compiled, too: AdamW's takes as long as the model.
    config.optim_wrapper.optimizer = dict(type='SGD', lr=0.1)
    config.train_dataloader.update(num_workers=0, persistent_workers=False)
    config.custom_hooks += [dict(type='RememberLosses')]
    RememberLosses.losses.clear()
    train(config)
    return list(RememberLosses.losses)


@pytest.mark.timeout(300)
def test_a_compiled_step_trains_the_same(tmp_path: Path, micro_arch: dict):
    arch = dict(micro_arch, depths=(1, 1, 1, 1), inner_depths=(1, 1, 1, 1))
    plain = losses(tmp_path / 'plain', arch)
    assert not counters['stats'] and len(plain) == 2 and plain[0] != plain[1]
    compiled = losses(tmp_path / 'compiled', arch, compile=dict(backend='eager'))
    assert counters['stats']['unique_graphs'] > 0, 'nothing was compiled'
    assert compiled == pytest.approx(plain, rel=1e-5)


def test_a_compiled_run_can_be_resumed(tmp_path: Path):
    config = quick(toy_config(tmp_path, 1, compile=dict(backend='eager')))
    train(config)
    assert counters['stats']['unique_graphs'] > 0, 'nothing was compiled'
    _, stored = read_latest_checkpoint(tmp_path)
    assert stored['optimizer']['state']


def test_the_hook_takes_a_mode_of_torch():
    with pytest.raises(RuntimeError, match='reduced.*reduce-overhead'):
        CompileHook(mode='reduced')


def test_a_name_in_place_of_a_list_is_refused():
    with pytest.raises(TypeError, match=r"parts is 'backbone': .*such as \['backbone'\]"):
        CompileHook('backbone')
