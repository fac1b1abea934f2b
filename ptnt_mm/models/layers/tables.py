"""Resize learned tables from the pretraining grid to the grid of an image."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ptnt_mm.models.layers.shapes import Grid, area


def resize_learned(table: Tensor, from_hw: Grid, to_hw: Grid) -> Tensor:
    """(1, n + h*w, C) -> (1, n + h'*w', C); the entries of n class tokens stay."""
    class_tokens = table.shape[1] - area(from_hw)
    if not class_tokens:
        return resize_grid(table, from_hw, to_hw)
    first, on_grid = table[:, :class_tokens], table[:, class_tokens:]
    return torch.cat([first, resize_grid(on_grid, from_hw, to_hw)], dim=1)


def resize_grid(table: Tensor, from_hw: Grid, to_hw: Grid) -> Tensor:
    """Resize a table of grid places, differentiably: (..., h*w, C) -> (..., h'*w', C).

    Bicubic without antialiasing, corners not aligned; the identity where the grids are equal. The
    result equals ``F.interpolate``, computed with one matrix per axis: faster in both directions,
    and with a deterministic backward pass on every device. Autocast would round the tables.
    Compiled code multiplies by the identity too: a branch would trigger a recompilation.
    """
    if not torch.compiler.is_compiling() and from_hw == to_hw:
        return table
    rows, columns = axis_weights(from_hw, to_hw, table)
    with without_autocast(table):
        tall = rows @ table.unflatten(-2, from_hw).flatten(-2)  # (..., h', w*C)
        return (columns @ tall.unflatten(-1, (from_hw[1], -1))).flatten(-3, -2)


def axis_weights(from_hw: Grid, to_hw: Grid, like: Tensor) -> tuple[Tensor, Tensor]:
    """Interpolation weights along each axis: (h', h) and (w', w)."""
    rows, columns = (_weights(n, m, like) for n, m in zip(from_hw, to_hw, strict=True))
    return rows, columns


def _weights(places: int, to_places: int, like: Tensor) -> Tensor:
    """Interpolation weights from ``places`` to ``to_places`` places: (to_places, places)."""
    identity = torch.eye(places, dtype=like.dtype, device=like.device)[None, None]
    size = (to_places, places)
    return F.interpolate(identity, size=size, mode='bicubic', align_corners=False)[0, 0]


def without_autocast(like: Tensor) -> AbstractContextManager:
    """Switch autocast off in this context; the meta device has none."""
    return nullcontext() if like.is_meta else torch.autocast(like.device.type, enabled=False)


def keep_first(resize: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that every call returns the result of the first."""
    results = []

    def resize_once(*args: Any, **options: Any) -> Any:
        if not results:
            results.append(resize(*args, **options))
        return results[0]

    return resize_once
