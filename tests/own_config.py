"""The configs that docs/own_config.md shows, and the recipe on the demo set.

    python tests/own_config.py work_dirs/own_config
    python tools/train.py work_dirs/own_config/on_demo.py

trains it as ``demo_retinanet_ptnt_ti`` is trained: on that one's data, as long, with its rates and
its narrow pyramid and head, from random weights.
"""

import re
import sys
from pathlib import Path

from mmengine.config import Config
from repository import ROOT

import ptnt_mm

PAGE = ROOT / 'docs' / 'own_config.md'

# Settings specific to the demo: data, length, rates and log.
OF_THE_DEMO = (
    *(f'{split}_{part}' for split in ('train', 'val', 'test') for part in ('dataloader', 'cfg')),
    *('val_evaluator', 'test_evaluator', 'param_scheduler', 'auto_scale_lr', 'randomness'),
    *('default_hooks', 'custom_hooks'),
)


def snippet(folder: Path, base: str, number: int = 0, page: Path = PAGE) -> Path:
    """Write one of a page's configs with this base into a folder, as a reader would."""
    blocks = re.findall(r'```python\n(.*?)```', page.read_text(), re.DOTALL)
    text = [block for block in blocks if f"_base_ = '{base}" in block][number]
    file = folder / 'snippet.py'
    file.write_text(text)
    return file


def on_demo(folder: Path) -> Path:
    """Write the same for the demo set, with the smallest variant and without weights."""
    config = Config.fromfile(snippet(folder, 'mmdet::'))
    demo = ptnt_mm.get_config('demo_retinanet_ptnt_ti')
    for key in OF_THE_DEMO:
        config[key] = demo[key]
    backbone = demo.model.backbone
    config.model.backbone.update(
        arch=backbone.arch, drop_path_rate=backbone.drop_path_rate, init_cfg=None
    )
    for neck in config.model.neck:
        neck.in_channels = demo.model.neck.in_channels[1:]  # no transposed convolution of the first
    config.model.neck[1].out_channels = demo.model.neck.out_channels
    for key in ('num_classes', 'in_channels', 'feat_channels', 'stacked_convs'):
        config.model.bbox_head[key] = demo.model.bbox_head[key]
    config.optim_wrapper.optimizer.lr = demo.optim_wrapper.optimizer.lr
    config.optim_wrapper.clip_grad = demo.optim_wrapper.clip_grad
    file = folder / 'on_demo.py'
    config.dump(file)
    return file


if __name__ == '__main__':
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    print(on_demo(Path(sys.argv[1])))
