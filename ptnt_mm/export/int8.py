"""Quantise an exported ONNX file to 8 bits, with ONNX Runtime's quantiser."""

import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ptnt_mm.export.end_to_end import INPUTS
from ptnt_mm.export.formats import quiet

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
    """Copy a bias for each layer that uses it, under a name that no other tensor has.

    The quantiser would do so too, but 'val_22' becomes 'val_221' even if there is such a tensor.
    """
    stored = {weight.name: weight for weight in graph.initializer}
    for node in graph.node:
        if node.op_type in _WEIGHT and len(node.input) == 3 and node.input[2] in stored:
            bias = graph.initializer.add()
            bias.CopyFrom(stored[node.input[2]])
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
