"""Quantising small ONNX graphs."""

import sys

import numpy as np
import pytest

from ptnt_mm.export.int8 import quantised

onnx = pytest.importorskip('onnx')
pytestmark = pytest.mark.skipif(sys.platform != 'linux', reason='quantisation needs Linux')


def test_layers_that_share_a_bias_do_not_take_the_name_of_a_tensor():
    helper, floats = onnx.helper, onnx.TensorProto.FLOAT
    weight = onnx.numpy_helper.from_array(np.ones((2, 2, 1, 1), np.float32), 'w')
    bias = onnx.numpy_helper.from_array(np.ones(2, np.float32), 'b')
    nodes = [
        helper.make_node('Conv', ['images', 'w', 'b'], ['x'], name='first'),
        helper.make_node('Relu', ['x'], ['b1'], name='middle'),
        helper.make_node('Conv', ['b1', 'w', 'b'], ['y'], name='last'),
    ]
    ends = [helper.make_tensor_value_info(name, floats, [1, 2, 4, 4]) for name in ('images', 'y')]
    graph = helper.make_graph(nodes, 'g', ends[:1], ends[1:], [weight, bias])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 20)], ir_version=10)
    body = quantised(model.SerializeToString(), [dict(images=np.ones((1, 2, 4, 4), np.float32))])
    made = [name for node in onnx.load_from_string(body).graph.node for name in node.output]
    assert len(made) == len(set(made)), made
