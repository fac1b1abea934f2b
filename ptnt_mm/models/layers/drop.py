"""Stochastic depth (arXiv 1603.09382)."""

from itertools import islice

import torch
from torch import Tensor, nn


class DropPath(nn.Module):
    """Drop a whole residual branch, independently for each entry of the batch axis.

    Kept branches are divided by the probability of being kept, which preserves the mean.

    Args:
        rate: Probability that a branch is dropped, in [0, 1).
    """

    def __init__(self, rate: float):
        super().__init__()
        self.rate = rate

    def forward(self, branch: Tensor) -> Tensor:
        """(B, ...) -> (B, ...)."""
        if not self.training or self.rate == 0.0:
            return branch
        keep = 1.0 - self.rate
        mask_shape = (branch.shape[0],) + (1,) * (branch.dim() - 1)
        mask = torch.empty(mask_shape, dtype=branch.dtype, device=branch.device).bernoulli_(keep)
        return branch * mask.div_(keep)

    def extra_repr(self) -> str:
        """Show the rate where the module is printed."""
        return f'rate={self.rate:.3g}'


def drop_path_rates(rate: float, depths: tuple[int, ...]) -> list[list[float]]:
    """Rates that rise linearly from 0 at the first block to ``rate`` at the last, by stage.

    Raises:
        ValueError: if the rate is outside [0, 1): at 1 the last block would divide by zero.
    """
    if not isinstance(rate, int | float) or not 0 <= rate < 1:
        raise ValueError(f'drop_path_rate is {rate!r}: expected at least 0 and below 1')
    total = sum(depths)
    rates = (rate * block / max(total - 1, 1) for block in range(total))
    return [list(islice(rates, depth)) for depth in depths]
