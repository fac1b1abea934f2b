"""Time our operators for mmcv against its compiled ones, interleaved in one process.

    python tools/dev/mmcv_ops_speed.py [--rounds 11] [--threads 1] [--only nms]

Needs an mmcv with compiled operators. Prints a Markdown table of medians.
"""

import argparse
import importlib.util
import sys
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from timeit import timeit
from types import ModuleType

import mmcv._ext as compiled
import torch
from mmcv import ops
from mmdet.testing import demo_mm_inputs

from benchmark.timing import interleave
from ptnt_mm import get_config
from ptnt_mm.mmcv_ops import installation
from ptnt_mm.workbench.config.build import build_model


def ours() -> ModuleType:
    """Our extension, loaded next to the compiled one."""
    spec = importlib.util.spec_from_file_location('ours', installation.EXTENSION)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def serve(extension: ModuleType) -> None:
    """Let all of mmcv.ops call this extension."""
    for name, module in list(sys.modules.items()):
        if name.startswith('mmcv.ops.') and hasattr(module, 'ext_module'):
            module.ext_module = extension


def tasks() -> Iterator[tuple[str, Callable[[], object]]]:
    """The timed functions, each prepared when its turn comes."""
    for count in (1000, 10000, 100000):
        # About 50 for each object, as from a detector.
        objects = torch.rand(count // 50, 2).repeat(50, 1) * 1000
        corners = objects + torch.randn(count, 2)
        boxes = torch.cat([corners, corners + 50 + torch.rand(count, 2) * 10], 1)
        scores = torch.rand(count)
        yield f'nms of {count:,} boxes', lambda b=boxes, s=scores: ops.nms(b, s, 0.7)

    maps = torch.randn(2, 256, 200, 336, requires_grad=True)
    corners = torch.rand(512, 2) * torch.tensor([1000.0, 600.0])
    images = torch.arange(512)[:, None] % 2
    rois = torch.cat([images, corners, corners + 16 + torch.rand(512, 2) * 96], 1)

    def pool() -> torch.Tensor:
        return ops.roi_align(maps, rois, (7, 7), 0.25, 0, 'avg', True)

    yield 'roi_align of 512 rois, forward', pool
    pooled = pool()
    factors = torch.randn_like(pooled)

    def back() -> None:
        maps.grad = None
        pooled.backward(factors, retain_graph=True)

    # The graph belongs to mmcv.ops, which looks up its extension in the backward pass too.
    yield 'roi_align of 512 rois, backward', back
    model = build_model(get_config('mask_rcnn_ptnt_ti_1x'))
    options = dict(num_items=[10], num_classes=80, with_mask=True, use_box_type=True)
    batch = model.data_preprocessor(demo_mm_inputs(1, (3, 800, 1344), **options), True)

    def step() -> None:
        torch.manual_seed(0)
        model.zero_grad()
        loss, _ = model.parse_losses(model(**batch, mode='loss'))
        loss.backward()

    yield 'Mask R-CNN training step, 800x1344', step


def main() -> None:
    """Warm up each task, then time them interleaved."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--rounds', type=int, default=11)
    parser.add_argument('--threads', type=int, default=torch.get_num_threads())
    parser.add_argument('--only', default='', help='tasks with this in their name')
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    extensions = dict(compiled=compiled, ours=ours())
    print('| | compiled, ms | ours, ms | ours / compiled |\n|---|---|---|---|')
    for name, task in tasks():
        if args.only not in name:
            continue
        # A quick task is repeated within its turn, because a single run would measure cold caches.
        calls = max(1, round(0.05 / timeit(task, number=2) * 2))

        def turn(extension: ModuleType, task: Callable = task, calls: int = calls) -> None:
            serve(extension)
            for _ in range(calls):
                task()

        runs = {key: partial(turn, extension) for key, extension in extensions.items()}
        interleave(runs, 1)
        found = interleave(runs, args.rounds)
        theirs, own = (1000 * median(found[key]) / calls for key in extensions)
        print(f'| {name} | {theirs:.2f} | {own:.2f} | {own / theirs:.3f} |', flush=True)


if __name__ == '__main__':
    main()
