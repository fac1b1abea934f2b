"""Time exported files next to PyTorch, interleaved: the table of docs/deploy.md, as Markdown.

    OMP_NUM_THREADS=2 python tools/dev/time_deployed.py [--rounds 9] [--threads 2] [--only demo]

PyTorch's milliseconds are followed by the times of the other forms relative to them, without
warm-up. Weights are random; times depend on them only through the number of boxes. Needs
onnxruntime and openvino.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter

import mmdet
import numpy as np
import torch
from torch import nn

from benchmark.timing import interleave
from ptnt_mm.deploy.runtimes import load_runtime
from ptnt_mm.workbench.config.build import build_model
from ptnt_mm.workbench.config.read import read_config
from ptnt_mm.workbench.export.end_to_end import EndToEndModel
from ptnt_mm.workbench.export.evaluation import pattern
from ptnt_mm.workbench.export.formats import quantised, take_graph, to_onnx
from ptnt_mm.workbench.export.supported_models import build_network

MMDET = Path(mmdet.__file__).parent / '.mim' / 'configs'

MODELS = {
    'demo': (
        'RetinaNet-Ti of the demo, 192x256',
        'demo_retinanet_ptnt_ti',
        build_network,
        (192, 256),
    ),
    's': ('RetinaNet-S, 800x1344', 'retinanet_ptnt_s_1x', build_network, (800, 1344)),
    'neck': ('RetinaNet-S, backbone and neck', 'retinanet_ptnt_s_1x', EndToEndModel, (800, 1344)),
    'r50': (
        "mmdet's RetinaNet-R50, backbone and neck",
        f'{MMDET}/retinanet/retinanet_r50_fpn_1x_coco.py',
        EndToEndModel,
        (800, 1344),
    ),
    'swin': (
        "mmdet's RetinaNet-Swin-T, backbone and neck",
        f'{MMDET}/swin/retinanet_swin-t-p4-w7_fpn_1x_coco.py',
        EndToEndModel,
        (800, 1344),
    ),
}
"""Title, config, how much of the model, and size, by the name for ``--only``."""

FILES = {
    'ONNX Runtime': ('float32', 'onnxruntime', 'f32'),
    'OpenVINO': ('float32', 'openvino', 'f32'),
    'OpenVINO bfloat16': ('float32', 'openvino', 'bf16'),
    'ONNX Runtime int8': ('int8', 'onnxruntime', 'f32'),
    'OpenVINO int8': ('int8', 'openvino', 'f32'),
}
"""The file, the runtime and its precision, by the name of the form."""

FORMS = ('compiled', *FILES)
"""The forms that are compared with PyTorch."""


def main() -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--rounds', type=int, default=9)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--only', nargs='+', choices=list(MODELS), default=list(MODELS))
    parser.add_argument('--calibrate', type=int, default=4, help='images for int8')
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print(f'| | PyTorch, ms | {" | ".join(FORMS)} | export, s | float32, MB | int8, MB |')
    print('|---' * (len(FORMS) + 5) + '|')
    for name in args.only:
        title, config, build, size = MODELS[name]
        network = build(random_model(config))
        with tempfile.TemporaryDirectory() as folder:
            files, exported = write_files(network, size, Path(folder), args.calibrate)
            tasks = dict(runs(network, size, files, args.threads))
            interleave(tasks, 2)
            times = {form: median(s) for form, s in interleave(tasks, args.rounds).items()}
            base = times['PyTorch']
            ratios = [f'{times[form] / base:.2f}' for form in FORMS]
            sizes = [f'{file.stat().st_size / 1e6:.0f}' for file in files.values()]
        row = [title, f'{base * 1e3:.0f}', *ratios, f'{exported:.0f}', *sizes]
        print(f'| {" | ".join(row)} |', flush=True)
    return 0


def random_model(path: str) -> nn.Module:
    """The model of a config, with random weights that predict boxes."""
    config = read_config(path)
    config.model.backbone.init_cfg = None
    torch.manual_seed(0)
    model = build_model(config).eval()
    head = getattr(model, 'bbox_head', None)
    if hasattr(head, 'retina_cls'):
        # Initial weights predict no boxes. These predict some hundred before suppression.
        nn.init.normal_(head.retina_cls.weight, std=0.05)
    return model


def write_files(
    network: EndToEndModel, size: tuple[int, int], folder: Path, images: int
) -> tuple[dict[str, Path], float]:
    """The ONNX files by precision, and the seconds that the first one took."""
    start = perf_counter()
    body = to_onnx(take_graph(network, size, dynamic=False), network)
    seconds = perf_counter() - start
    files = {name: folder / f'{name}.onnx' for name in ('float32', 'int8')}
    files['float32'].write_bytes(body)
    files['int8'].write_bytes(quantised(body, (inputs(size, seed) for seed in range(images))))
    return files, seconds


def runs(
    network: EndToEndModel, size: tuple[int, int], files: dict[str, Path], threads: int
) -> Iterator[tuple[str, Callable[[], object]]]:
    """The timed functions by name."""
    arrays = inputs(size, 0)
    tensors = [torch.from_numpy(array) for array in arrays.values()]
    yield 'PyTorch', partial(without_gradients, network, tensors)
    yield 'compiled', partial(without_gradients, torch.compile(network), tensors)
    for form, (file, runtime, precision) in FILES.items():
        yield form, partial(load_runtime(files[file], runtime, threads, precision), arrays)


@torch.no_grad()
def without_gradients(network: nn.Module, tensors: list[torch.Tensor]) -> object:
    """A forward pass."""
    return network(*tensors)


def inputs(size: tuple[int, int], seed: int) -> dict[str, np.ndarray]:
    """A test pattern as input of the networks."""
    return dict(images=pattern(seed, size)[None], sizes=np.array([size], dtype=np.int64))


if __name__ == '__main__':
    sys.exit(main())
