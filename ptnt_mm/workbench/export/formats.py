"""Take a network's graph and write it: ONNX, also of 8 bits, for OpenVINO, or torch.export."""

import copy
import io
import json
import logging
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from mmengine.utils import to_2tuple
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from ptnt_mm.deploy.export_info import KEY, ExportInfo, with_export_info
from ptnt_mm.utils.atomic_files import sha256, write_atomically
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.frames import one_line
from ptnt_mm.utils.noise import logging_disabled
from ptnt_mm.utils.text import printable
from ptnt_mm.workbench.export.end_to_end import INPUTS, EndToEndModel

OLDEST_TORCH = '2.9'
"""Oldest supported version; graphs of older ones contain custom operators or checks of sizes."""

_OPSET = 20

_COARSEST = 128  # stride in pixels of the coarsest level of this package's pyramids


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress messages of exporters about their internals, which are not actionable."""
    with warnings.catch_warnings(action='ignore'), logging_disabled(logging.WARNING):
        yield


def take_graph(network: EndToEndModel, size: tuple[int, int], dynamic: bool) -> ExportedProgram:
    """Export a network with torch, or raise a UserError if torch is too old.

    Args:
        network: The network to export.
        size: Height and width of the input; if ``dynamic``, of a sufficiently large example.
        dynamic: Whether the graph accepts any number of images of any size.
    """
    if torch.__version__ < OLDEST_TORCH:
        raise UserError(f'export needs torch {OLDEST_TORCH}, and this is {torch.__version__}')
    batch, shapes = 1, None
    if dynamic:
        # 1 is special to torch.export, both in a batch and in the height of the coarsest level.
        batch, size = 2, tuple(max(side, _COARSEST + 1) for side in size)
        shapes = ({0: Dim.AUTO, 1: Dim.AUTO, 2: Dim.AUTO}, {0: Dim.AUTO})
    images = torch.randint(0, 256, (batch, *size, 3), dtype=torch.uint8)
    inputs = images, torch.tensor([size] * batch)
    with torch.no_grad(), quiet():
        # The host's model stays unchanged, because the file is compared with it.
        network = copy.deepcopy(network)
        if dynamic:
            keep_sizes_symbolic(network)
        return torch.export.export(network, inputs, dynamic_shapes=shapes, strict=False)


def drop_assumptions(program: ExportedProgram) -> None:
    """Drop what torch generalised from its example, in place: at least two boxes, the least size.

    The graph itself computes every number of boxes, and images of at least 2 x 2 pixels.
    """
    for node in list(program.graph.nodes):
        if node.target is torch.ops.aten._assert_scalar.default:
            program.graph.erase_node(node)
    program.graph.eliminate_dead_code()
    program.graph_module.recompile()
    for symbol, limits in list(program.range_constraints.items()):
        is_found_while_running = str(symbol).startswith('u')
        least = 0 if is_found_while_running else 2
        program.range_constraints[symbol] = type(limits)(least, limits.upper)


def to_onnx(program: ExportedProgram, network: EndToEndModel) -> bytes:
    """An ONNX file with only standard operators, from a network's graph."""
    with quiet():
        exported = torch.onnx.export(
            program,
            input_names=list(INPUTS),
            output_names=list(network.outputs),
            opset_version=_OPSET,
            dynamo=True,
            optimize=False,
            verbose=False,
        )
        _simplify(exported.model)
    return exported.model_proto.SerializeToString()


def take_program(
    network: EndToEndModel, shape: tuple[int, int], dynamic: bool, format: str
) -> tuple[ExportedProgram, bytes]:
    """The graph of a network, and an ONNX file of it, empty for torch-export.

    The arguments are those of :func:`take_graph`, and the name of the file's format.

    Raises:
        UserError: if torch cannot export it.
    """
    try:
        program = take_graph(network, shape, dynamic)
        if format == 'torch-export':
            drop_assumptions(program)
            return program, b''
        return program, to_onnx(program, network)
    except UserError:
        raise
    except Exception as error:  # models may contain any operator
        why = printable(one_line(error))
        advice = 'Try `size=(H, W)`' if dynamic else 'docs/deploy.md lists what can be exported'
        raise UserError(f'torch cannot export a graph of this model: {why}. {advice}') from error


def _simplify(model: Any) -> None:
    """Fold constants, and remove unused nodes, in place.

    onnxscript's search for operator patterns would take half of the export, and runtimes do the
    same when they load a file. The model is one of onnx_ir.
    """
    from onnx_ir import passes
    from onnx_ir.passes import common
    from onnxscript import optimizer

    common.InlinePass()(model)
    # Weights are transposed once, however large; int8 expects them next to their layers.
    optimizer.fold_constants(
        model,
        onnx_shape_inference=True,
        should_fold=lambda node: True if node.op_type == 'Transpose' else None,
    )
    passes.Sequential(
        common.RemoveUnusedNodesPass(),
        common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        common.DeduplicateInitializersPass(),
        common.CommonSubexpressionEliminationPass(),
        common.RemoveUnusedNodesPass(),
        common.OutputFixPass(),
        common.NameFixPass(),
    )(model)


def halved(body: bytes) -> bytes:
    """Store large float32 weights of an ONNX file as float16, each followed by a cast.

    Runtimes still compute in float32. Weights with values beyond float16 stay as they are.
    """
    from onnx import TensorProto, helper, load_from_string, numpy_helper

    model, casts = load_from_string(body), []
    for weight in model.graph.initializer:
        if weight.data_type == TensorProto.FLOAT and len(weight.raw_data) > 1024:
            values = numpy_helper.to_array(weight)
            if np.abs(values).max() > np.finfo(np.float16).max:
                continue
            half = f'{weight.name}_half'
            casts.append(helper.make_node('Cast', [half], [weight.name], to=TensorProto.FLOAT))
            weight.CopyFrom(numpy_helper.from_array(values.astype(np.float16), half))
    nodes = [*casts, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model.SerializeToString()


def write_onnx(file: Path, body: bytes, about: ExportInfo) -> None:
    """Write an ONNX file, or convert it for OpenVINO: an .xml, and a .bin with its weights."""
    if file.suffix == '.onnx':
        write_atomically(file, with_export_info(body, about, '.onnx'))
        return
    import openvino

    model = openvino.convert_model(io.BytesIO(body))
    with tempfile.TemporaryDirectory() as folder:
        xml = Path(folder, 'model.xml')
        openvino.save_model(model, xml, compress_to_fp16=about.precision == 'float16')
        weights = xml.with_suffix('.bin')
        about = replace(about, weights_sha256=sha256(weights))
        write_atomically(file.with_suffix('.bin'), weights.read_bytes())
        write_atomically(file, with_export_info(xml.read_bytes(), about, '.xml'))


def write_program(file: Path, program: ExportedProgram, about: ExportInfo) -> None:
    """Write a torch.export program; ``torch.export.load`` reads it, with torchvision imported."""
    stream = io.BytesIO()
    torch.export.save(program, stream, extra_files={f'{KEY}.json': json.dumps(asdict(about))})
    write_atomically(file, stream.getvalue())


def as_arrays(program: ExportedProgram, network: EndToEndModel) -> Callable[[dict], dict]:
    """A torch.export program with the interface of ``ptnt_mm.deploy``'s runtimes."""
    # Without checks of sizes: torch generalises some properties of its example to all images.
    module = program.module(check_guards=False)

    def run(inputs: dict) -> dict:
        try:
            with torch.no_grad():
                found = module(*(torch.from_numpy(inputs[name]) for name in INPUTS))
        except RuntimeError as error:
            raise UserError(f'the exported program refuses an image: {one_line(error)}') from error
        return dict(zip(network.outputs, map(Tensor.numpy, found), strict=True))

    return run


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


_WEIGHT = {'Conv': 1, 'ConvTranspose': 1, 'Gemm': 1, 'MatMul': 1}
"""Operators that are quantised, and the index of their weight among the inputs."""


def quantised(body: bytes, inputs: Iterable[dict[str, np.ndarray]]) -> bytes:
    """Quantise convolutions and linear layers, but not attention, normalisation and boxes.

    Weights get a scale for each output channel. The ranges of layer inputs are those seen in the
    calibration images (OpenVINO computes such a file in 8 bits too).

    Args:
        body: An ONNX file.
        inputs: Images and sizes to calibrate with, one image at a time.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_static

    model = onnx.load_from_string(body)
    names = list(_layers(model.graph))
    _unshare_biases(model.graph)
    with tempfile.TemporaryDirectory() as folder, quiet():
        file = Path(folder, 'int8.onnx')
        quantize_static(
            model,
            file,
            # The quantiser requests images until it gets None.
            SimpleNamespace(get_next=partial(next, iter(inputs), None)),
            nodes_to_quantize=names,
            op_types_to_quantize=list(_WEIGHT),
            per_channel=True,
            weight_type=QuantType.QInt8,
            activation_type=QuantType.QUInt8,
            extra_options=dict(MatMulConstBOnly=True),
        )
        return file.read_bytes()


def _unshare_biases(graph: Any) -> None:
    """Give each layer a bias that nothing else uses, under a name that no other tensor has.

    The quantiser would do so too, but 'val_22' becomes 'val_221' even if there is such a tensor.
    """
    stored = {weight.name: weight for weight in graph.initializer}
    users = Counter(name for node in graph.node for name in node.input)
    for node in graph.node:
        if node.op_type in _WEIGHT and len(node.input) == 3 and node.input[2] in stored:
            shared = node.input[2]
            # The last user keeps the original.
            if users[shared] > 1:
                users[shared] -= 1
                bias = graph.initializer.add()
                bias.CopyFrom(stored[shared])
                bias.name = node.input[2] = f'{node.name}.bias'


def _layers(graph: Any) -> Iterator[str]:
    """The names of layers with a stored weight whose input depends on the image."""
    stored = {weight.name for weight in graph.initializer}
    of_image = {INPUTS[0]}
    for node in graph.node:
        # A size does not depend on pixels: position tables resized to it are not quantised.
        if node.op_type != 'Shape' and of_image.intersection(node.input):
            of_image.update(node.output)
            place = _WEIGHT.get(node.op_type)
            if place and node.input[0] in of_image and node.input[place] in stored:
                yield node.name
