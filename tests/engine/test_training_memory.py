"""What a step of training takes is counted on a small image."""

from types import SimpleNamespace

import torch
from mmengine.config import Config
from mmengine.structures import BaseDataElement, PixelData
from torch import nn

from ptnt_mm.engine.training_memory import _resize, measure_memory


def test_memory_is_counted_as_autograd_keeps_it():
    model = nn.Conv2d(3, 8, 1, bias=False)
    optimizer = dict(type='AdamW', lr=1e-3)
    config = Config(dict(optim_wrapper=dict(optimizer=optimizer), train_dataloader={}))

    def losses(side: int):
        # A convolution keeps its input, tanh its output: 3 + 8 numbers of 4 bytes for each pixel.
        return model(torch.ones(1, 3, 16, 16)).tanh().sum(), 256

    step = measure_memory(config, SimpleNamespace(model=model, loss=losses, area=512))
    assert step.image == (3 + 8) * 4 * 512
    # Weights, gradients, two averages of AdamW, and its counter of steps.
    assert step.weights == 4 * 24 * 4 + 4


def test_maps_are_resized_with_their_image():
    pixels = torch.arange(16).reshape(1, 4, 4)
    annotated = BaseDataElement(gt_sem_seg=PixelData(sem_seg=pixels))
    _resize(annotated, (2, 2), 0.5)
    assert annotated.gt_sem_seg.sem_seg.tolist() == [[[0, 2], [8, 10]]]
