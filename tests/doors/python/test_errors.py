# SPDX-License-Identifier: Apache-2.0
"""Mistakes of a user are Python exceptions that say what, where and what came instead."""
import numpy as np
import pytest
from onnx import TensorProto, helper

import anymps


def test_every_error_is_an_anymps_error_and_a_known_one():
    for name, also in (("InvalidArgument", ValueError), ("NotFound", LookupError), ("Unsupported", NotImplementedError),
                       ("OutOfMemory", MemoryError), ("Corrupt", ValueError), ("Mismatch", ArithmeticError),
                       ("IoError", OSError)):
        kind = getattr(anymps, name)
        assert issubclass(kind, anymps.Error) and issubclass(kind, also)
        assert kind.__module__ == "anymps" and kind.__doc__


@pytest.mark.parametrize("feeds, named, text", [
    ((np.zeros((2, 4)),), {}, r"'x' must be f32\[N, 4\], f64\[2, 4\] given"),
    ((np.zeros((2, 5), np.float32),), {}, r"'x' must be f32\[N, 4\], f32\[2, 5\] given"),
    ((np.zeros(4, np.float32),), {}, "'x'"),
    ((None,), {}, "None is given.*'x'"),
    ((), {}, "the input 'x' is not given"),
    ((1, 2), {}, "2 arguments"),
    ((), {"y": 1}, "no input 'y'; there are: x"),
    ((1,), {"x": 1}, "given twice"),
    ((np.array([object()]),), {}, "."),
    ((np.array(["a"]),), {}, "."),
    ((np.zeros(3, "datetime64[s]"),), {}, "no element type for datetime64"),
    (("text",), {}, "."),
])
def test_wrong_feeds(mlp, feeds, named, text):
    with pytest.raises((anymps.InvalidArgument, ValueError, TypeError), match=text):
        mlp[0](*feeds, **named)


def test_files():
    with pytest.raises(anymps.NotFound, match="nowhere.onnx"):
        anymps.load("nowhere.onnx")
    with pytest.raises(anymps.Corrupt):
        anymps.load(b"no model")
    with pytest.raises(anymps.Error):
        anymps.load(b"")
    with pytest.raises(TypeError):
        anymps.load(3)
    with pytest.raises(anymps.NotFound, match="cpu"):
        anymps.device("toaster")


def test_unsupported_ops_are_all_named():
    nodes = [helper.make_node("NoSuchOp", ["x"], ["a"], name="first"), helper.make_node("NorThisOne", ["a"], ["y"])]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy")
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y]), ir_version=8,
                              opset_imports=[helper.make_opsetid("", 17)])
    with pytest.raises(anymps.Unsupported, match="(?s)NoSuchOp.*first.*NorThisOne|NorThisOne.*NoSuchOp.*first"):
        anymps.load(model.SerializeToString())


def test_a_memory_limit_is_an_exception_and_not_the_end():
    try:
        anymps.set_memory_limit(anymps.memory_stats()["reserved"] + (16 << 20))
        with pytest.raises(anymps.OutOfMemory):
            anymps.empty((1 << 28,))
    finally:
        anymps.set_memory_limit(0)
    assert anymps.empty((4,)).shape == (4,)


@pytest.mark.parametrize("shape", [(-1,), (1 << 62, 1 << 62), (1 << 62,)])
def test_impossible_shapes(shape):
    with pytest.raises(anymps.Error):
        anymps.empty(shape)


def test_views_and_buffers_that_make_no_sense():
    tensor = anymps.tensor(np.arange(6, dtype=np.float32))
    with pytest.raises(anymps.InvalidArgument, match="outside"):
        tensor._view([2], [1], 5)
    with pytest.raises(anymps.InvalidArgument, match="strides"):
        tensor._view([2], [], 0)
    with pytest.raises(BufferError):
        memoryview(anymps.tensor("text"))
    with pytest.raises(TypeError):
        anymps.Tensor()


def test_an_error_of_a_submitted_run_comes_with_synchronize(mlp):
    model = mlp[0]
    stream = anymps.stream()
    with pytest.raises(anymps.InvalidArgument, match="'x'"):
        model.submit(np.zeros((2, 9), np.float32), stream=stream)
        stream.synchronize()
    assert model(np.zeros((1, 4), np.float32)).shape == (1, 3)
