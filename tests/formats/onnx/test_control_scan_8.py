# SPDX-License-Identifier: Apache-2.0
"""Scan of opset 8, over a batch and with lengths of its sequences, beside ONNX Runtime."""
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import anymps

B, T, D = 3, 5, 2


def model_of(lengths, directions=None):
    """A running sum of x[b, t], and twice the sum before each step."""
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "x"], ["s2"]), helper.make_node("Add", ["s", "s"], ["y"])], "body",
        [info("s", TensorProto.FLOAT, [D]), info("x", TensorProto.FLOAT, [D])],
        [info("s2", TensorProto.FLOAT, [D]), info("y", TensorProto.FLOAT, [D])])
    attrs = {} if directions is None else {"directions": directions}
    node = helper.make_node("Scan", ["n" if lengths else "", "s0", "xs"], ["last", "ys"], body=body, num_scan_inputs=1, **attrs)
    inputs = [info("s0", TensorProto.FLOAT, [B, D]), info("xs", TensorProto.FLOAT, [B, T, D])]
    if lengths:
        inputs.insert(0, info("n", TensorProto.INT64, [B]))
    graph = helper.make_graph([node], "g", inputs, [info("last", TensorProto.FLOAT, [B, D]), info("ys", TensorProto.FLOAT, [B, T, D])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=8).SerializeToString()


@pytest.mark.parametrize("lengths", [None, [5, 5, 5], [2, 5, 1]], ids=["no lengths", "whole", "shorter"])
def test_lengths(lengths):
    rng = np.random.default_rng(2)
    feeds = {"s0": rng.standard_normal((B, D)).astype(np.float32), "xs": rng.standard_normal((B, T, D)).astype(np.float32)}
    if lengths:
        feeds["n"] = np.array(lengths)
    model = model_of(lengths is not None)
    theirs = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feeds)
    for ours, expected in zip(anymps.load(model)(**feeds), theirs, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-6)


def test_lengths_backwards_are_refused():
    with pytest.raises(anymps.Unsupported, match="read backwards"):
        anymps.load(model_of(True, [1]))
