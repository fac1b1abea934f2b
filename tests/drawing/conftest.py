"""Pictures as the hooks of training and tests draw them."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.structures import BaseDataElement, InstanceData, PixelData
from PIL import Image
from torch import nn

from ptnt_mm.registry import HOOKS

Draw = Callable[..., np.ndarray]


def sample_of(file: Path, **content: object) -> BaseDataElement:
    sample = BaseDataElement(metainfo=dict(img_path=str(file)))
    sample.set_data(content)
    return sample


@pytest.fixture
def draw_objects(tmp_path: Path) -> Draw:
    """Draw objects on a picture (H, W, 3), by default grey: those with scores are detections."""

    def draw(size: tuple[int, int], meta: dict, **fields: object) -> np.ndarray:
        Image.new('RGB', size[::-1], (128, 128, 128)).save(tmp_path / 'x.bmp')
        nothing, found = InstanceData(scores=torch.zeros(0)), 'scores' in fields
        parts = [nothing, InstanceData(**fields)][:: 1 if found else -1]
        objects = dict(zip(('gt_instances', 'pred_instances'), parts, strict=True))
        pictures = []
        visualizer = SimpleNamespace(
            dataset_meta=meta, add_image=lambda name, image, step: pictures.append(image)
        )
        runner = SimpleNamespace(visualizer=visualizer, iter=1)
        sample = sample_of(tmp_path / 'x.bmp', **objects)
        HOOKS.build(dict(type='DrawValidationHook')).after_val_iter(runner, 0, outputs=[sample])
        halves = np.split(pictures[0], 2, axis=1)
        assert (halves[not found] == 128).all(), 'each is drawn on a picture of its own'
        return halves[found]

    return draw


@pytest.fixture
def draw_classes(tmp_path: Path) -> Draw:
    """Draw the classes of an image (H, W, 3), or those of its pixels."""

    def draw(image: np.ndarray, meta: dict, number: int = 2, **content: object) -> np.ndarray:
        model = nn.Identity()
        model.num_classes = number
        hook = HOOKS.build(
            dict(type='DrawPredictionsHook', folder=str(tmp_path / 'drawn'), root=str(tmp_path))
        )
        config = Config(dict(test_dataloader=dict(dataset=dict(type=SimpleNamespace))))
        data = SimpleNamespace(dataset=SimpleNamespace(metainfo=meta))
        hook.before_test(SimpleNamespace(model=model, cfg=config, test_dataloader=data))
        Image.fromarray(image).save(tmp_path / 'x.bmp')
        content = {
            key: PixelData(data=torch.from_numpy(value)[None]) if key.endswith('seg') else value
            for key, value in content.items()
        }
        hook.after_test_iter(None, 0, outputs=[sample_of(tmp_path / 'x.bmp', **content)])
        return np.asarray(Image.open(tmp_path / 'drawn' / 'x.png'))

    return draw
