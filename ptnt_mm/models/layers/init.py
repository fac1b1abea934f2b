"""Random initialisation of weights."""

import math

from torch import nn


def draw_weights(module: nn.Module) -> None:
    """Draw one layer's weights as the authors' classification code does; for ``Module.apply``.

    Linear: truncated normal 0.02. Convolution: normal with variance 2 / fan out. Biases 0. Norms
    keep torch's 1 and 0, and position tables are drawn by the modules that own them.
    """
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.02)
    elif isinstance(module, nn.Conv2d):
        fan_out = module.out_channels * math.prod(module.kernel_size) // module.groups
        nn.init.normal_(module.weight, std=math.sqrt(2 / fan_out))
    else:
        return
    if module.bias is not None:
        nn.init.zeros_(module.bias)
