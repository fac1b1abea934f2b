"""Runs of a tiny detector, built by MMEngine, and copies of their checkpoints."""

import copy

import torch
from mmengine.config import Config
from mmengine.evaluator import Evaluator
from mmengine.model import BaseModel, BaseTTAModel
from mmengine.runner import Runner
from torch import nn
from torch.utils.data import Dataset
from toy import ToyMetric

from ptnt_mm.models import PyramidTNT
from ptnt_mm.weights.reader.read import read_checkpoint

ARCH = dict(
    depths=(1, 1, 1, 1),
    inner_depths=(1, 1, 1, 1),
    outer_dims=(8, 8, 8, 8),
    inner_dims=(2, 2, 2, 2),
    outer_heads=(1, 1, 1, 1),
    inner_heads=(1, 1, 1, 1),
    pretrain_img_size=64,
)
TNT_ARCH = dict(depth=1, outer_dim=8, inner_dim=2, outer_heads=1, inner_heads=1, words=16)


class Detector(BaseModel):
    """A minimal backbone and head."""

    def __init__(self, pretrain_img_size=None, num_classes=2, arch=ARCH, extra=False):
        super().__init__()
        self.backbone = PyramidTNT(arch, pretrain_img_size=pretrain_img_size)
        self.bbox_head = nn.Linear(self.backbone.out_channels[-1], num_classes)
        if extra:
            self.neck = nn.Linear(2, 2)

    def forward(self, inputs, data_samples=None, mode='tensor'):
        out = self.bbox_head(self.backbone(torch.stack(inputs))[-1].mean((2, 3)))
        return {'loss': out.square().mean()} if mode == 'loss' else [out]


class Averaged(BaseTTAModel):
    def merge_preds(self, data_samples_list):
        return [samples[0] for samples in data_samples_list]


class Pictures(Dataset):
    metainfo = dict(classes=('cat', 'dog'))

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return dict(inputs=torch.full((3, 64, 64), float(i)))


def make_runner(work_dir, model=None, hooks=(), guard=True, epochs=1, **settings):
    """A runner built by MMEngine from a config, with the tests' data and model."""
    sampler = dict(type='DefaultSampler')
    loader = dict(batch_size=2, dataset=Pictures(), sampler=sampler, num_workers=0)
    guards = [dict(type='CheckpointGuardHook')] if guard else []
    return Runner(
        model=model or Detector(),
        work_dir=str(work_dir),
        train_dataloader=copy.copy(loader),
        val_dataloader=copy.copy(loader),
        test_dataloader=copy.copy(loader),
        train_cfg=dict(by_epoch=True, max_epochs=epochs, val_interval=1),
        val_cfg=dict(),
        test_cfg=dict(),
        val_evaluator=Evaluator(ToyMetric()),
        test_evaluator=Evaluator(ToyMetric()),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.01, momentum=0.9)),
        param_scheduler=dict(type='MultiStepLR', milestones=[5]),
        default_hooks=dict(
            checkpoint=dict(type='CheckpointHook', interval=1, save_best='score', rule='greater'),
            logger=dict(type='LoggerHook', interval=1),
        ),
        custom_hooks=[*guards, *hooks],
        experiment_name=f'{work_dir.parent.name}_{work_dir.name}_{id(loader)}',
        cfg=Config(dict(marker='current')),
        default_scope='mmengine',
        log_level='WARNING',
        **settings,
    )


EMA = dict(type='EMAHook', momentum=0.5)


def changed(path, source, change):
    """Write a checkpoint's copy after ``change(checkpoint)``."""
    checkpoint = read_checkpoint(source)
    change(checkpoint)
    torch.save(checkpoint, path)
    return path
