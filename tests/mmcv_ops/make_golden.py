"""Inputs for the compiled operators of mmcv 2.1.0, for ``tests/data/golden/mmcv_ops.npz``.

Each case draws its inputs from its own name and calls ``mmcv.ops``, whichever module provides it.
``python tests/mmcv_ops/make_golden.py`` writes the file where mmcv is compiled.
"""

import importlib.machinery
import zlib
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import torch
from mmcv import ops
from torch import Tensor

FILE = Path(__file__).parents[1] / 'data' / 'golden' / 'mmcv_ops.npz'


class Draw:
    """Random inputs from a name."""

    def __init__(self, name: str):
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))

    def normal(self, *shape: int) -> Tensor:
        return torch.from_numpy(self.rng.standard_normal(shape).astype(np.float32))

    def boxes(self, count: int, size: float) -> Tensor:
        """Boxes with corners from -size / 4 on, of sides up to size / 2."""
        start, sides = self.rng.uniform(-size / 4, size, (count, 2)), self.rng.random((count, 2))
        boxes = np.concatenate([start, start + sides * size / 2], 1)
        return torch.from_numpy(boxes.astype(np.float32))

    def scores(self, count: int) -> Tensor:
        """No two are equal."""
        return torch.from_numpy(self.rng.permutation(count).astype(np.float32) + 1) / count

    def rois(self, count: int, size: float) -> Tensor:
        images = torch.from_numpy(self.rng.integers(0, 2, (count, 1)).astype(np.float32))
        return torch.cat([images, self.boxes(count, size)], 1)


def outputs(name: str) -> list[Tensor]:
    """The results of a case."""
    torch.manual_seed(0)
    return [torch.as_tensor(result).detach() for result in CASES[name](Draw(name))]


def with_gradients(function: Callable, *inputs: Tensor) -> list[Tensor]:
    """A result, and the gradients of the sum of its elements times 0, 1, ..., 6, 0, 1, ..."""
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    result = function(*leaves)
    factors = torch.arange(result.numel()).remainder(7).to(result).view_as(result)
    result.backward(factors)
    return [result, *(leaf.grad for leaf in leaves)]


def _nms_cases() -> dict[str, Callable]:
    touching = torch.tensor([[0, 0, 10, 10], [0, 0, 10, 6], [0, 0, 10, 3.0]])
    empty = torch.tensor([[3, 3, 3, 3], [3, 3, 3, 9], [5, 5, 2, 2], [3, 3, 3, 3.0]])
    sets = {
        'many': lambda draw: (draw.boxes(300, 60), draw.scores(300)),
        'none': lambda draw: (torch.zeros(0, 4), torch.zeros(0)),
        'one': lambda draw: (draw.boxes(1, 60), draw.scores(1)),
        'equal': lambda draw: (draw.boxes(1, 60).repeat(9, 1), draw.scores(9)),
        # Up to 16 equal scores keep their order in torch's sort; beyond, it depends on the machine.
        'equal_scores': lambda draw: (draw.boxes(16, 20), torch.ones(16)),
        'all_equal': lambda draw: (draw.boxes(1, 60).repeat(9, 1), torch.ones(9)),
        'outside': lambda draw: (draw.boxes(50, 60) - 500, draw.scores(50)),
        'no_area': lambda draw: (empty, draw.scores(4)),
        'at_threshold': lambda draw: (touching, torch.tensor([0.9, 0.8, 0.7])),
    }
    cases = {}
    for (name, make), offset in product(sets.items(), (0, 1)):
        for threshold in (0.3, 0.6):
            cases[f'nms-{name}-{offset}-{threshold}'] = (
                lambda draw, make=make, o=offset, t=threshold: ops.nms(*make(draw), t, o)
            )
        for method in ('naive', 'linear', 'gaussian'):
            # The gaussian of two boxes without area is not a number in mmcv.
            if (name, offset, method) != ('no_area', 0, 'gaussian'):
                cases[f'soft_nms-{name}-{offset}-{method}'] = (
                    lambda draw, make=make, o=offset, m=method: ops.soft_nms(
                        *make(draw), 0.3, 0.5, 0.1, m, o
                    )
                )
        if offset == 0:
            cases[f'nms_match-{name}'] = lambda draw, make=make: _matched(*make(draw))
    cases['nms-best'] = lambda draw: ops.nms(
        draw.boxes(300, 60), draw.scores(300), 0.5, score_threshold=0.4, max_num=20
    )
    for agnostic, count in product((False, True), (200, 10050)):
        cases[f'batched_nms-{count}-{agnostic}'] = lambda draw, a=agnostic, n=count: _batched(
            draw, n, a
        )
    return cases


def _matched(boxes: Tensor, scores: Tensor) -> list[Tensor]:
    """The groups, each after its length."""
    groups = ops.nms_match(torch.cat([boxes, scores[:, None]], 1), 0.6)
    return [torch.tensor([n for group in groups for n in [len(group), *group.tolist()]])]


def _batched(draw: Draw, count: int, agnostic: bool) -> list[Tensor]:
    labels = torch.from_numpy(draw.rng.integers(0, 3, count))
    boxes, keep = ops.batched_nms(
        draw.boxes(count, 20),
        draw.scores(count),
        labels,
        dict(type='nms', iou_threshold=0.1),
        class_agnostic=agnostic,
    )
    return [boxes[:100], keep]


def _overlap_cases() -> dict[str, Callable]:
    return {
        f'bbox_overlaps-{mode}-{aligned}-{offset}': lambda draw, m=mode, a=aligned, o=offset: [
            ops.bbox_overlaps(draw.boxes(12, 9), draw.boxes(12, 9), m, a, o)
        ]
        for mode, aligned, offset in product(('iou', 'iof'), (False, True), (0, 1))
    }


def _roi_cases() -> dict[str, Callable]:
    special = torch.tensor(
        [[1, 2, 2, 2, 2], [0, 3, 3, 3, 9], [1, 90, 90, 99, 95], [0, -9, -9, 30, 40.0]]
    )
    sets = {
        'many': lambda draw: (draw.normal(2, 3, 9, 7), draw.rois(12, 10)),
        'none': lambda draw: (draw.normal(2, 3, 9, 7), torch.zeros(0, 5)),
        'special': lambda draw: (draw.normal(2, 3, 9, 7), special),
        'one_pixel': lambda draw: (draw.normal(2, 3, 1, 1), draw.rois(6, 2)),
    }
    options = product(('avg', 'max'), (False, True), (0, 2), ('float32', 'float64'))
    cases = {}
    for (name, make), (pool, aligned, ratio, dtype) in product(sets.items(), options):
        if dtype == 'float64' and name != 'many':
            continue

        def case(draw, make=make, pool=pool, aligned=aligned, ratio=ratio, dtype=dtype):
            maps, rois = (tensor.to(getattr(torch, dtype)) for tensor in make(draw))
            return with_gradients(
                lambda x: ops.roi_align(x, rois, (3, 2), 0.75, ratio, pool, aligned), maps
            )

        cases[f'roi_align-{name}-{pool}-{aligned}-{ratio}-{dtype}'] = case
    return cases


def _convolution_cases() -> dict[str, Callable]:
    cases = {}
    for groups, offsets in ((1, 1), (2, 2)):

        def inputs(draw, groups=groups, offsets=offsets):
            maps, weight = draw.normal(2, 4, 9, 7), draw.normal(6, 4 // groups, 3, 3)
            return (
                maps,
                2 * draw.normal(2, 18 * offsets, 5, 7),
                draw.normal(2, 9 * offsets, 5, 7),
                weight,
            )

        geometry = ((2, 1), (1, 2), (1, 2), groups, offsets)

        def plain(draw, inputs=inputs, geometry=geometry):
            maps, offset, _, weight = inputs(draw)
            return with_gradients(lambda *t: ops.deform_conv2d(*t, *geometry), maps, offset, weight)

        def weight_alone(draw, inputs=inputs, geometry=geometry):
            maps, offset, _, weight = inputs(draw)
            return with_gradients(lambda w: ops.deform_conv2d(maps, offset, w, *geometry), weight)

        def modulated(draw, inputs=inputs, geometry=geometry):
            maps, offset, mask, weight = inputs(draw)
            return with_gradients(
                lambda *t: ops.modulated_deform_conv2d(*t, None, *geometry),
                *(maps, offset, mask, weight),
            )

        def biased(draw, inputs=inputs, geometry=geometry):
            return with_gradients(
                lambda *t: ops.modulated_deform_conv2d(*t, *geometry), *inputs(draw), draw.normal(6)
            )

        def larger_offset(draw, offsets=offsets, geometry=geometry, groups=groups):
            """The output is 5 by 7; the DyHead of mmdet does this."""
            return with_gradients(
                lambda *t: ops.modulated_deform_conv2d(*t, None, *geometry),
                *(draw.normal(2, 4, 9, 7), 2 * draw.normal(2, 18 * offsets, 8, 9)),
                *(draw.normal(2, 9 * offsets, 8, 9), draw.normal(6, 4 // groups, 3, 3)),
            )

        def on_the_grid(draw, geometry=geometry, groups=groups, offsets=offsets):
            """Points on pixels and on the edges of the map, as with the offsets of a new layer."""
            moves = draw.rng.integers(-3, 4, (2, 18 * offsets, 5, 7)).astype(np.float32)
            moves[0] = 0
            return with_gradients(
                lambda *t: ops.modulated_deform_conv2d(*t, None, *geometry),
                *(draw.normal(2, 4, 9, 7), torch.from_numpy(moves)),
                *(draw.normal(2, 9 * offsets, 5, 7), draw.normal(6, 4 // groups, 3, 3)),
            )

        def plain_on_the_grid(draw, geometry=geometry, groups=groups, offsets=offsets):
            return with_gradients(
                lambda *t: ops.deform_conv2d(*t, *geometry),
                *(draw.normal(2, 4, 9, 7), torch.zeros(2, 18 * offsets, 5, 7)),
                draw.normal(6, 4 // groups, 3, 3),
            )

        for case in (
            *(larger_offset, plain, weight_alone, modulated, biased),
            *(on_the_grid, plain_on_the_grid),
        ):
            cases[f'deform_conv-{case.__name__}-{groups}'] = case
    return cases


def _psamask_cases() -> dict[str, Callable]:
    return {
        f'psamask-{kind}-{size}': lambda draw, kind=kind, size=size: with_gradients(
            ops.PSAMask(kind, size), draw.normal(2, size[0] * size[1], 4, 3)
        )
        for kind, size in product(('collect', 'distribute'), ((3, 5), (7, 5), (1, 1)))
    }


CASES: dict[str, Callable[[Draw], Sequence]] = {
    **_nms_cases(),
    **_overlap_cases(),
    **_roi_cases(),
    **_convolution_cases(),
    **_psamask_cases(),
}


def main() -> None:
    """Write the file."""
    import mmcv._ext

    if not mmcv._ext.__file__.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
        raise SystemExit('the golden numbers are those of a compiled mmcv, and this one is not')
    arrays = {}
    for name in CASES:
        for index, result in enumerate(outputs(name)):
            small = result.to(torch.int32) if result.dtype == torch.int64 else result
            arrays[f'{name}/{index}'] = small.numpy()
    np.savez_compressed(FILE, **arrays)
    print(f'{len(CASES)} cases, {FILE.stat().st_size} bytes')


if __name__ == '__main__':
    main()
