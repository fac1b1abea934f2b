"""Two processes with an image each: `torchrun --nproc_per_node 2 two_processes.py FILE`.

Each process also takes the gradients of both images by itself, one after the other; the first one
writes the largest difference between their mean and what the processes agreed on.
"""

import sys
from pathlib import Path

import torch
import torch.distributed as dist
from mmdet.testing import demo_mm_inputs
from mmengine.config import Config
from mmengine.model import MMDistributedDataParallel
from mmengine.registry import MODELS, init_default_scope
from soak import SMALL
from torch import Tensor, nn

SHAPES = ([3, 97, 131], [3, 75, 203])


def gradients(model: nn.Module, image: int) -> dict[str, Tensor]:
    """Gradients of one image's loss."""
    detector = getattr(model, 'module', model)
    torch.manual_seed(image)
    data = demo_mm_inputs(1, [SHAPES[image]], num_classes=4)
    data = detector.data_preprocessor(data, training=True)
    model.zero_grad()
    total, _ = detector.parse_losses(model(**data, mode='loss'))
    total.backward()
    return {name: parameter.grad.clone() for name, parameter in detector.named_parameters()}


def main() -> None:
    """Compare."""
    dist.init_process_group('gloo')
    torch.set_num_threads(1)
    file = Path(sys.argv[1])
    config = file.with_name(f'small{dist.get_rank()}.py')
    config.write_text(SMALL)
    settings = Config.fromfile(config).model
    settings.backbone.drop_path_rate = 0.0
    init_default_scope('mmdet')
    torch.manual_seed(0)
    model = MODELS.build(settings)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eval()
    alone = [gradients(model, image) for image in range(2)]
    together = gradients(MMDistributedDataParallel(model), dist.get_rank())
    worst = max(
        ((alone[0][name] + alone[1][name]) / 2 - gradient).abs().max() / gradient.abs().max()
        for name, gradient in together.items()
    )
    if dist.get_rank() == 0:
        file.write_text(str(float(worst)))


if __name__ == '__main__':
    main()
