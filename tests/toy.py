"""Runs of a few seconds with every source of randomness: workers, dropout, momentum."""

import gc
import random
from pathlib import Path

import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import BaseDataset
from mmengine.evaluator import BaseMetric
from mmengine.model import BaseModel
from mmengine.registry import DATASETS, METRICS, MODELS, TRANSFORMS
from mmengine.runner import Runner
from mmengine.structures import BaseDataElement
from torch import Tensor, nn
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter


@TRANSFORMS.register_module()
class ToyNoise:
    """Numbers from all three generators that transforms draw from."""

    def __call__(self, results: dict) -> dict:
        noise = [random.random(), np.random.rand(), float(torch.rand(()))]
        features = torch.tensor([results['sample_idx'] / 10, *noise])
        sample = BaseDataElement(metainfo=dict(img_path=f'{results["sample_idx"]}.jpg'))
        return dict(inputs=features, data_samples=sample)


@DATASETS.register_module()
class ToyDataset(BaseDataset):
    """Ten rows."""

    def load_data_list(self) -> list[dict]:
        return [dict(number=i) for i in range(10)]


@MODELS.register_module()
class ToyModel(BaseModel):
    """A regression with dropout."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))

    def forward(self, inputs: list[Tensor], data_samples: list, mode: str = 'tensor'):
        outputs = self.layers(torch.stack(list(inputs)))
        return dict(loss=outputs.square().mean()) if mode == 'loss' else list(outputs)


@METRICS.register_module()
class ToyMetric(BaseMetric):
    """A score that rises with every evaluation, so that each is the best."""

    score = 0

    def __init__(self, name: str = 'score'):
        super().__init__()
        self.name = name

    def process(self, data_batch: dict, data_samples: list) -> None:
        self.results.append(0)

    def compute_metrics(self, results: list) -> dict[str, float]:
        ToyMetric.score += 1
        return {self.name: ToyMetric.score}


def toy_config(work_dir: Path, epochs: int = 4, **settings) -> Config:
    """The settings of a run of three iterations per epoch."""
    dataset = dict(type='ToyDataset', pipeline=[dict(type='ToyNoise')])
    loader = dict(
        batch_size=4,
        num_workers=2,
        persistent_workers=True,
        dataset=dataset,
        sampler=dict(type='DefaultSampler', shuffle=True),
        collate_fn=dict(type='pseudo_collate'),
    )
    base = dict(
        model=dict(type='ToyModel'),
        work_dir=str(work_dir),
        train_dataloader=loader,
        train_cfg=dict(by_epoch=True, max_epochs=epochs, val_interval=1),
        optim_wrapper=dict(optimizer=dict(type='AdamW', lr=0.1)),
        default_hooks=dict(
            checkpoint=dict(type='WholeCheckpointHook', interval=1, max_keep_ckpts=1),
            logger=dict(type='LoggerHook', interval=1),
        ),
        custom_hooks=[dict(type='RepeatableHook'), dict(type='StopAtNaNHook')],
        randomness=dict(seed=3),
        default_scope='mmengine',
    )
    base.update(settings)
    return Config(base)


def toy_iterations(work_dir: Path, iterations: int = 12, **settings) -> Config:
    """The same by iterations: a checkpoint after every fourth; a pass has two and a half."""
    config = toy_config(work_dir)
    config.train_cfg = dict(type='RepeatableIterBasedTrainLoop', max_iters=iterations)
    config.train_dataloader.sampler.type = 'InfiniteSampler'
    config.default_hooks.checkpoint.update(by_epoch=False, interval=4)
    config.update(settings)
    return config


def evaluated(config: Config, **checkpoint) -> Config:
    """The same with evaluations, and with more settings of its checkpoints."""
    config.update(val_cfg=dict(), val_evaluator=dict(type='ToyMetric'))
    order = dict(type='DefaultSampler', shuffle=False)
    config.val_dataloader = dict(config.train_dataloader, sampler=order)
    config.val_dataloader.update(num_workers=0, persistent_workers=False)
    config.default_hooks.checkpoint.update(checkpoint)
    return config


def quick(config: Config) -> Config:
    """The same without workers, whose start takes most of the time."""
    config.train_dataloader.update(num_workers=0, persistent_workers=False)
    return config


def train(config: Config) -> dict[str, Tensor]:
    """Train, and return the final weights."""
    config.experiment_name = f'{Path(config.work_dir).name}_{random.SystemRandom().random()}'
    runner = Runner.from_cfg(config)
    try:
        runner.train()
    except BaseException:
        # Its traceback keeps the loader's iterator.
        _stop_workers()
        raise
    return {name: weight.clone() for name, weight in runner.model.state_dict().items()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    """Whether two runs ended with the same weights, bit by bit."""
    return all(torch.equal(one[name], other[name]) for name in one)


def names(work_dir: Path) -> list[str]:
    """The names of its checkpoints."""
    return sorted(path.name for path in work_dir.glob('*.pth'))


def log_of(work_dir: Path) -> str:
    """The text of all logs."""
    return '\n'.join(file.read_text() for file in work_dir.rglob('*.log'))


def _stop_workers() -> None:
    """End the processes of all loaders now.

    Left to the garbage collector, which takes their queues first, it waits five seconds for each.
    """
    for thing in gc.get_objects():
        if type(thing) is _MultiProcessingDataLoaderIter:
            thing._shutdown_workers()
