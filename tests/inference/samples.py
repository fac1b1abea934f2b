"""Images of every kind, and a checkpoint as training writes it."""

from pathlib import Path

import attacks
import numpy as np
import torch
from PIL import Image

import ptnt_mm

CLASSES = ('ball', 'coin', 'crate', 'cup')

NAME = 'demo_retinanet_ptnt_ti'
"""Of the config that the checkpoint belongs to."""


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
    Image.fromarray(image).resize((6000, 4000)).save(folder / 'photograph.jpg')


def write_checkpoint(path: Path) -> Path:
    """Random weights that find something everywhere, with all that MMEngine writes beside them."""
    from mmengine.registry import MODELS, init_default_scope

    config = ptnt_mm.get_config(NAME)
    init_default_scope('mmdet')
    torch.manual_seed(0)
    model = MODELS.build(config.model)
    torch.nn.init.zeros_(model.bbox_head.retina_cls.bias)
    meta = dict(epoch=1, cfg=config.pretty_text, dataset_meta=dict(classes=CLASSES))
    hub = attacks.honest_log()
    torch.save(dict(meta=meta, state_dict=model.state_dict(), message_hub=hub), path)
    return path
