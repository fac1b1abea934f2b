"""Two processes train by epochs, by iterations, and without averaging their buffers.

`two_processes_buffers.py FOLDER`: the first one writes, for each kind, how much the statistics of
BatchNorm differ between the processes in an evaluation, and how much those of the checkpoint
differ from them.
"""

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from mmengine.dist import all_gather_object, get_rank
from mmengine.hooks import Hook
from mmengine.registry import HOOKS, MODELS
from torch import nn
from toy import ToyModel, evaluated, quick, toy_config, toy_iterations, train

import ptnt_mm  # noqa: F401  registers the hooks

EMA = dict(type='EMAHook', momentum=0.1, update_buffers=True)
AVERAGE = dict(type='AverageBuffersHook')


@MODELS.register_module()
class NormedToy(ToyModel):
    """The regression with BatchNorm."""

    def __init__(self):
        super().__init__()
        self.layers.insert(1, nn.BatchNorm1d(8))


@HOOKS.register_module()
class Evaluated(Hook):
    """Keeps the statistics that are evaluated, of all processes."""

    priority = 'LOWEST'

    def before_val_epoch(self, runner):
        weights = runner.model.module.state_dict()
        Evaluated.last = all_gather_object(
            {key: value.clone() for key, value in weights.items() if 'running' in key}
        )


def difference(one: dict, other: dict) -> float:
    return max(float((one[key] - other[key]).abs().max()) for key in one)


def main() -> None:
    """Train three times."""
    dist.init_process_group('gloo')
    folder, found = Path(sys.argv[1]), {}
    for kind, hooks in dict(epochs=[AVERAGE, EMA], iterations=[EMA, AVERAGE], apart=[EMA]).items():
        if kind == 'iterations':
            config = toy_iterations(folder / kind, 8, model=dict(type='NormedToy'))
            config.train_cfg.val_interval = 4
        else:
            config = toy_config(folder / kind, 2, model=dict(type='NormedToy'))
        config.train_dataloader.batch_size = 5  # of ten images for two processes
        config.update(launcher='pytorch', custom_hooks=[*hooks, dict(type='Evaluated')])
        config.model_wrapper_cfg = dict(device_ids=None, broadcast_buffers=False)
        train(quick(evaluated(config)))
        mine, others = Evaluated.last
        (file,) = (folder / kind).glob('*.pth')
        saved = torch.load(file, weights_only=False)['state_dict']
        found[kind] = [difference(mine, others), difference(mine, saved)]
    if get_rank() == 0:
        folder.joinpath('found.json').write_text(json.dumps(found))


if __name__ == '__main__':
    main()
