# SPDX-License-Identifier: Apache-2.0
"""Ranks that the file does not say: ops with weights tell them, and what is behind them can be imported."""
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import anymps

RNG = np.random.default_rng(3)
W = RNG.standard_normal((1, 2, 3)).astype(np.float32)
X = RNG.standard_normal((4, 2, 7)).astype(np.float32)
M = RNG.standard_normal((5, 3)).astype(np.float32)


def load(nodes, constants, inputs=(("x", None),), opset=17):
    graph = helper.make_graph(
        nodes, "ranks", [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])
    return anymps.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]).SerializeToString())


def squeezed(name, axis):
    """What exporters write for x.squeeze(axis): a branch on the extent, whose results have different ranks."""
    branch = [helper.make_node("Squeeze", [name, "axes"], ["then"])], [helper.make_node("Identity", [name], ["else"])]
    bodies = [helper.make_graph(nodes, out, [], [helper.make_tensor_value_info(out, TensorProto.FLOAT, None)])
              for nodes, out in zip(branch, ("then", "else"))]
    nodes = [helper.make_node("Shape", [name], ["shape"]), helper.make_node("Gather", ["shape", "axis"], ["extent"]),
             helper.make_node("Equal", ["extent", "one"], ["is_one"]),
             helper.make_node("If", ["is_one"], ["875"], then_branch=bodies[0], else_branch=bodies[1])]
    return nodes, {"axes": [axis], "axis": axis, "one": 1}


def convolved(x, w):
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2], axis=2)
    return np.einsum("nclk,ock->nol", windows, w)


@pytest.mark.parametrize("shape", [None, ("N", "C", "L"), ("N", 2, 7)])
def test_a_squeeze_behind_a_convolution_has_a_rank(shape):
    nodes, constants = squeezed("conv", 1)
    model = load([helper.make_node("Conv", ["x", "w"], ["conv"]), *nodes, helper.make_node("Gemm", ["875", "m"], ["y"])],
                 {"w": W, "m": M, **constants}, [("x", shape)])
    np.testing.assert_allclose(model(X), convolved(X, W)[:, 0] @ M, rtol=1e-4, atol=1e-5)


def test_a_convolution_of_channels_that_stay_keeps_its_rank():
    wide = RNG.standard_normal((6, 2, 3)).astype(np.float32)
    nodes, constants = squeezed("conv", 1)
    model = load([helper.make_node("Conv", ["x", "w"], ["conv"]), *nodes,
                  helper.make_node("GlobalAveragePool", ["875"], ["y"])], {"w": wide, **constants})
    np.testing.assert_allclose(model(X), convolved(X, wide).mean(2, keepdims=True), rtol=1e-4, atol=1e-5)


def test_weights_tell_the_rank_of_recurrent_and_transposed_layers():
    w, r = (RNG.standard_normal((1, 4, n)).astype(np.float32) for n in (2, 4))
    steps = RNG.standard_normal((3, 5, 2)).astype(np.float32)
    rnn = helper.make_node("RNN", ["x", "w", "r"], ["all"], hidden_size=4)
    given, open_ = (load([rnn, helper.make_node("GlobalMaxPool", ["all"], ["y"])], {"w": w, "r": r}, [("x", shape)])
                    for shape in ((3, 5, 2), None))
    np.testing.assert_array_equal(open_(steps), given(steps))
    up = RNG.standard_normal((2, 3, 2)).astype(np.float32)
    wide = helper.make_node("ConvTranspose", ["x", "w"], ["wide"])
    given, open_ = (load([wide, helper.make_node("GlobalMaxPool", ["wide"], ["y"])], {"w": up}, [("x", shape)])
                    for shape in (X.shape, None))
    np.testing.assert_array_equal(open_(X), given(X))


def test_images_of_an_unknown_rank():
    image, w = RNG.standard_normal((2, 3, 6, 6)).astype(np.float32), RNG.standard_normal((4, 3, 3, 3)).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("Conv", ["b", "v"], ["y"])]
    constants = {"w": w, "v": RNG.standard_normal((2, 4, 3, 3)).astype(np.float32)}
    given, open_ = (load(nodes, constants, [("x", shape)]) for shape in (image.shape, None))
    np.testing.assert_allclose(open_(image), given(image), rtol=1e-4, atol=1e-5)


def test_a_rank_that_is_not_the_weights_is_an_error_of_the_run():
    model = load([helper.make_node("Conv", ["x", "w"], ["y"])], {"w": W})
    with pytest.raises(anymps.InvalidArgument, match="rank"):
        model(X[None])


def test_extents_of_one_name_may_differ():
    """Exporters name dimensions by hand; ONNX Runtime and OpenVINO compare none of these names."""
    m = RNG.standard_normal((5, 1)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "m"], ["a"]), helper.make_node("Shape", ["z"], ["shape"]),
             helper.make_node("Reshape", ["z", "shape"], ["same"]),
             helper.make_node("ReduceSum", ["same", "axes"], ["b"], keepdims=1), helper.make_node("Add", ["a", "b"], ["y"])]
    model = load(nodes, {"m": m, "axes": [1]}, [("x", ("N", "W")), ("z", ("N", "W"))])
    for width in (2, 5, 3):
        x, z = (RNG.standard_normal((4, n)).astype(np.float32) for n in (5, width))
        np.testing.assert_allclose(model(x, z), x @ m + z.sum(1, keepdims=True), rtol=1e-5, atol=1e-5)
