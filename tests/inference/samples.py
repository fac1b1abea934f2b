"""Images of every kind, and checkpoints as training writes them."""

from pathlib import Path

import attacks
import numpy as np
import torch
from configs.models import build
from forked import Forked
from mmengine.config import Config
from mmengine.model import BaseModel
from mmengine.registry import MODELS
from mmengine.structures import InstanceData
from PIL import Image

import ptnt_mm

CLASSES = ('ball', 'coin', 'crate', 'cup')

NAME = 'demo_retinanet_ptnt_ti'
"""Class names in the config of the checkpoint."""

MAP_CLASSES = ('background', *CLASSES)
SEGMENTER = 'demo_semantic_fpn_ptnt_ti'
"""Class names in the config of the segmenter's checkpoint."""


def photograph(height: int, width: int) -> np.ndarray:
    """Something with edges and smooth parts, (height, width, 3) uint8, RGB."""
    y, x = np.mgrid[:height, :width]
    red, green = 255 * x // max(width - 1, 1), 255 * y // max(height - 1, 1)
    blue = np.where((x // 16 + y // 16) % 2, 200, 40)
    return np.stack([red, green, blue], axis=-1).astype(np.uint8)


def write_six_images(folder: Path) -> None:
    """A corrupt file, 16 bits, grey, RGBA, a single pixel and a large photograph."""
    folder.mkdir(parents=True)
    image = photograph(90, 120)
    folder.joinpath('corrupt.jpg').write_bytes(b'\xff\xd8\xff\xe0 no image')
    Image.fromarray(image[..., 0].astype(np.uint16) * 257).save(folder / 'sixteen.png')
    Image.fromarray(image[..., 0]).save(folder / 'grey.png')
    Image.fromarray(np.dstack([image, image[..., 1]])).save(folder / 'rgba.png')
    Image.fromarray(image[:1, :1]).save(folder / 'pixel.png')
    Image.fromarray(image).resize((3000, 2000)).save(folder / 'photograph.jpg')


def write_checkpoint(path: Path) -> Path:
    """Random weights of a detector that detect something everywhere."""
    config = ptnt_mm.get_config(NAME)
    torch.manual_seed(0)
    model = build(config)
    torch.nn.init.zeros_(model.bbox_head.retina_cls.bias)
    return save(model, config, dict(classes=CLASSES), path)


def write_segmenter(path: Path, config: Config) -> Path:
    """Random weights of a segmenter that predict several classes."""
    torch.manual_seed(0)
    model = build(config)
    torch.nn.init.normal_(model.decode_head.conv_seg.weight)
    return save(model, config, config.test_dataloader.dataset.metainfo.to_dict(), path)


def save(model: torch.nn.Module, config: Config, dataset_meta: dict, path: Path) -> Path:
    """Save weights with all entries that MMEngine adds."""
    meta = dict(epoch=1, cfg=config.pretty_text, dataset_meta=dataset_meta)
    hub = attacks.honest_log()
    torch.save(dict(meta=meta, state_dict=model.state_dict(), message_hub=hub), path)
    return path


def run_elsewhere(code: str, folder: Path) -> str:
    """Run Python in a folder, where nothing has imported ptnt_mm yet; return its output."""
    script, output = folder / 'program.py', folder / 'output.txt'
    script.write_text(code)
    assert Forked([script], folder, output).wait() == 0, output.read_text()
    return output.read_text()


@MODELS.register_module()
class HeadsOnly(BaseModel):
    """A detector that finds nothing: numbers of classes, perhaps read by a language model."""

    def __init__(self, heads: list[int], reads: bool):
        super().__init__()
        self.heads = torch.nn.ModuleList(torch.nn.Identity() for _ in heads)
        for head, number in zip(self.heads, heads, strict=True):
            head.num_classes = number
        self.weight = torch.nn.Parameter(torch.zeros(1))
        if reads:
            self.language_model = torch.nn.Identity()

    def forward(self, inputs: list, data_samples: list, mode: str = 'predict') -> list:
        """Samples without objects."""
        for sample in data_samples:
            sample.pred_instances = InstanceData(
                bboxes=torch.zeros(0, 4), scores=torch.zeros(0), labels=torch.zeros(0).long()
            )
        return data_samples


def write_heads_only(
    folder: Path, meta: dict, dataset: dict, *heads: int, reads: bool = False
) -> tuple[Config, Path]:
    """A config with a dataset for tests, and a checkpoint with these metadata."""
    file = folder / 'epoch_1.pth'
    torch.save(dict(meta=meta, state_dict=dict(weight=torch.zeros(1))), file)
    pipeline = [dict(type='LoadImageFromFile'), dict(type='PackDetInputs')]
    config = dict(
        default_scope='mmdet',
        model=dict(type='mmengine.HeadsOnly', heads=heads, reads=reads),
        test_dataloader=dict(dataset=dict(dataset, pipeline=pipeline)),
    )
    return Config(config), file
