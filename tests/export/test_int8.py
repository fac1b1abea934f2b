"""Preparing small ONNX graphs for the quantiser."""

import numpy as np
import pytest

from ptnt_mm.workbench.export.formats import _unshare_biases

onnx = pytest.importorskip('onnx')


def test_layers_that_share_a_bias_do_not_take_the_name_of_a_tensor():
    helper = onnx.helper
    weight = onnx.numpy_helper.from_array(np.ones((2, 2, 1, 1), np.float32), 'w')
    bias = onnx.numpy_helper.from_array(np.ones(2, np.float32), 'b')
    nodes = [
        helper.make_node('Conv', ['images', 'w', 'b'], ['x'], name='first'),
        helper.make_node('Relu', ['x'], ['b0'], name='middle'),
        helper.make_node('Conv', ['b0', 'w', 'b'], ['y'], name='last'),
    ]
    graph = helper.make_graph(nodes, 'g', [], [], [weight, bias])
    _unshare_biases(graph)
    stored = {weight.name for weight in graph.initializer}
    biases = {node.input[2] for node in graph.node if node.op_type == 'Conv'}
    assert len(biases) == 2 and biases <= stored
    assert not biases & {name for node in graph.node for name in node.output}
