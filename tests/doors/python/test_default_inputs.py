# SPDX-License-Identifier: Apache-2.0
"""Inputs with a default: constants until somebody feeds them."""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import anymps
from anymps.onnx_backend import AnyMPSBackend


@pytest.fixture(params=[3, 8], ids=["IR 3", "IR 8"])
def model(request):
    """y = reshape(x * w + b, shape); w, b and shape have defaults."""
    infos = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in
             (("w", TensorProto.FLOAT, [4]), ("x", TensorProto.FLOAT, [4]), ("b", TensorProto.FLOAT, [1]),
              ("shape", TensorProto.INT64, [2]))]
    values = [helper.make_tensor("w", TensorProto.FLOAT, [4], [1, 2, 3, 4]),
              helper.make_tensor("b", TensorProto.FLOAT, [1], [0.5]),
              helper.make_tensor("shape", TensorProto.INT64, [2], [2, 2])]
    nodes = [helper.make_node("Mul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["a"]),
             helper.make_node("Reshape", ["a", "shape"], ["y"])]
    graph = helper.make_graph(nodes, "g", infos, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=request.param)


X, W = np.array([1, -1, 2, 10], np.float32), np.array([1, 2, 3, 4], np.float32)


def test_without_a_feed_it_is_a_constant(model):
    executable = anymps.load(model.SerializeToString())
    assert [value.name for value in executable.inputs] == ["x"]
    assert [tuple(value) for value in executable.defaults] == [("w", "f32", (4,)), ("b", "f32", (1,)), ("shape", "i64", (2,))]
    np.testing.assert_array_equal(executable(X), (X * W + 0.5).reshape(2, 2))


@pytest.mark.parametrize("named,expected", [
    ({"w": [2, 2, 2, 2]}, (X * 2 + 0.5).reshape(2, 2)),
    ({"b": [0]}, (X * W).reshape(2, 2)),
    ({"shape": [4, 1]}, (X * W + 0.5).reshape(4, 1)),
    ({"shape": [1, 4], "w": W[::-1], "b": np.ones(1, np.float32)}, (X * W[::-1] + 1).reshape(1, 4)),
], ids=["w", "b", "shape", "all"])
def test_a_feed_takes_its_place(model, tmp_path, named, expected):
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    for source in (path, path.read_bytes(), bytearray(path.read_bytes())):
        executable = anymps.load(source, check=True)
        np.testing.assert_array_equal(executable(X, **named), expected)
        np.testing.assert_array_equal(executable(**named, x=X), expected)
        np.testing.assert_array_equal(anymps.to_numpy(executable.run({"x": X, **named})[0]), expected)
        with anymps.stream() as stream:
            result, = executable.submit(X, stream=stream, **named)
            stream.synchronize()
            np.testing.assert_array_equal(anymps.to_numpy(result), expected)
        np.testing.assert_array_equal(executable(X), (X * W + 0.5).reshape(2, 2))


def test_each_set_of_feeds_is_compiled_once(model):
    executable = anymps.load(model.SerializeToString())
    for w in range(3):
        np.testing.assert_array_equal(executable(X, w=np.full(4, w, np.float32)), (X * w + 0.5).reshape(2, 2))
    assert len(executable._variants) == 1


def test_a_graph_is_asked_for_its_inputs_when_it_is_loaded(model):
    graph = anymps.Graph.load(model.SerializeToString(), inputs=["b", "x"])
    assert [value.name for value in graph.input_values] == ["x", "b"]
    assert [value.name for value in graph.default_values] == ["w", "shape"]
    np.testing.assert_array_equal(anymps.compile(graph)(X, [1]), (X * W + 1).reshape(2, 2))


def test_errors(model):
    data = model.SerializeToString()
    executable = anymps.load(data)
    with pytest.raises(anymps.InvalidArgument, match="'x' is given twice"):
        executable(X, x=X, w=W)
    with pytest.raises(anymps.InvalidArgument, match="'x' is not given"):
        executable(w=W)
    with pytest.raises(anymps.InvalidArgument, match="2 arguments are given"):
        executable(X, X, w=W)
    with pytest.raises(anymps.InvalidArgument, match="input 'w' must be f32"):
        executable(X, w=W[:2])
    with pytest.raises(anymps.InvalidArgument, match="no input 'm'"):
        executable(X, m=W)
    with pytest.raises(anymps.NotFound, match="no input \"m\"; inputs with a default: b, shape, w"):
        anymps.Graph.load(data, inputs=["m"])


def test_the_standards_backend_takes_all_inputs_in_order(model):
    ready = AnyMPSBackend.prepare(model)
    np.testing.assert_array_equal(ready.run([X])[0], (X * W + 0.5).reshape(2, 2))
    shape = np.array([4, 1])
    np.testing.assert_array_equal(ready.run([W * 2, X, np.zeros(1, np.float32), shape])[0], (X * W * 2).reshape(4, 1))
