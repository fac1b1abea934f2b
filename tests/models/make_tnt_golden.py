"""Outputs of timm's TNT, for ``tests/data/golden``. With timm installed, run from ``tests``:

    python -m models.make_tnt_golden

The file holds the maps of a small arch for two image sizes, and timm's names and shapes: the
weights are functions of these (see ``golden.py``), so that it can be compared without timm.
"""

import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from . import golden

NAME = 'tnt_timm_seed0'
SIZES = (64, 96)
ARCH = dict(depth=2, outer_dim=32, inner_dim=8, outer_heads=4, inner_heads=2, words=16)


def timms(arch: dict, img_size: int) -> nn.Module:
    """timm's TNT of an arch, with golden weights."""
    from timm.models.tnt import TNT

    model = TNT(
        img_size,
        embed_dim=arch['outer_dim'],
        inner_dim=arch['inner_dim'],
        depth=arch['depth'],
        num_heads_outer=arch['outer_heads'],
        num_heads_inner=arch['inner_heads'],
        num_classes=0,
    )
    return golden.filled(model).eval()


@torch.inference_mode()
def features(model: nn.Module, image: Tensor) -> Tensor:
    """The final tokens without the class token, as a map (B, C, h, w)."""
    hw = image.shape[2] // 16, image.shape[3] // 16
    return model.forward_features(image)[:, 1:].mT.unflatten(2, hw)


if __name__ == '__main__':
    arrays = {}
    for size in SIZES:
        model = timms(ARCH, size)
        shapes = {name: list(weight.shape) for name, weight in model.state_dict().items()}
        arrays[f'shapes{size}'] = np.frombuffer(json.dumps(shapes).encode(), dtype=np.uint8)
        arrays[f'map{size}'] = features(model, golden.image(1, size, size)).numpy()
    np.savez_compressed(Path(golden.DATA, 'golden', f'{NAME}.npz'), **arrays)
