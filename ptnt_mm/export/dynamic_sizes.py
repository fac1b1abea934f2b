"""Layers that a graph of dynamic size can contain."""

import torch
from mmengine.utils import to_2tuple
from torch import Tensor, nn


class AveragePool(nn.Module):
    """``nn.AdaptiveAvgPool2d`` as two matrix products, which torch exports for any size."""

    def __init__(self, grid: tuple[int, int]):
        super().__init__()
        self.grid = grid

    def forward(self, feature: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, C, h, w)."""
        rows, columns = map(self._shares, self.grid, feature.shape[2:])
        return rows.to(feature) @ feature @ columns.to(feature).T

    @staticmethod
    def _shares(places: int, side: int) -> Tensor:
        """Weights of the pixels of a side for each place: (places, side)."""
        place, pixel = torch.arange(places)[:, None], torch.arange(side)
        start = place * side // places
        # Not -(-a // b): in an ONNX graph, integer division rounds towards zero.
        end = ((place + 1) * side + places - 1) // places
        return ((start <= pixel) & (pixel < end)).float() / (end - start)


def keep_sizes_symbolic(network: nn.Module) -> None:
    """Replace layers that a graph of dynamic size cannot contain by equivalent ones.

    mmseg's upsampling converts a map's size to plain numbers, which become constants of a graph.
    """
    for parent in network.modules():
        for name, child in parent.named_children():
            if type(child).__name__ == 'Upsample' and getattr(child, 'size', None) is None:
                factor, mode, aligned = child.scale_factor, child.mode, child.align_corners
                setattr(parent, name, nn.Upsample(None, factor, mode, aligned))
            elif isinstance(child, nn.AdaptiveAvgPool2d):
                grid = to_2tuple(child.output_size)
                # The average over the full map has an operator.
                if grid != (1, 1) and None not in grid:
                    setattr(parent, name, AveragePool(grid))
