# SPDX-License-Identifier: Apache-2.0
"""Calls with numpy arrays alone take a short way through the extension: the same results and errors as the long way."""
import sys

import numpy as np
import pytest

import anymps
from anymps import _convert

ops = anymps.ops
DTYPES = ["f32", "f16", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool", "c64", "c128"]


def long_way(model, *args, **named):
    return [_convert.to_array(t) for t in model.run_tensors(args, named)]


def is_quick(model, *args, **named):
    return model._core.call(args, named, None) is not None


@pytest.fixture
def difference():
    """Two inputs, of which the order counts, and two results."""
    graph = anymps.Graph()
    a, b = graph.input("a", "f32", ("N", 2)), graph.input("b", "f32", (2,))
    graph.outputs(a - b, ops.reduce_sum(a, keep_dims=False))
    return anymps.compile(graph)


def test_by_position_and_by_name(difference):
    a, b = np.float32([[1, 2], [3, 4]]), np.float32([10, 20])
    for args, named in [((a, b), {}), ((a,), {"b": b}), ((), {"b": b, "a": a})]:
        assert is_quick(difference, *args, **named)
        for _ in range(3):
            result = difference(*args, **named)
            assert isinstance(result, tuple) and [type(r) for r in result] == [np.ndarray, np.ndarray]
            np.testing.assert_array_equal(result[0], a - b)
            assert result[1].shape == () and result[1] == 10


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_that_numpy_has(dtype):
    graph = anymps.Graph()
    graph.outputs(ops.concat(graph.input("x", dtype, ("N",)), graph.input("y", dtype, ("M",))))
    model = anymps.compile(graph)
    x = np.array([1, 0, 1]).astype(anymps.numpy_dtype(dtype))
    assert is_quick(model, x, x[:2])
    result = model(x, x[:2])
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, np.concatenate([x, x[:2]]))


def test_results_are_the_callers(difference):
    """They live on by themselves, can be written to, and no later call changes them."""
    b = np.float32([0, 0])
    first, _ = difference(np.float32([[1, 2]]), b)
    first[0, 0] = 7
    second, _ = difference(np.float32([[3, 4]]), b)
    np.testing.assert_array_equal(first, [[7, 2]])
    np.testing.assert_array_equal(second, [[3, 4]])


def test_feeds_are_let_go():
    graph = anymps.Graph()
    graph.outputs(ops.relu(graph.input("x", "f32", ("N",))))
    model = anymps.compile(graph)
    x = np.ones(8, np.float32)
    before = sys.getrefcount(x)
    for _ in range(5):
        model(x)
    with pytest.raises(anymps.InvalidArgument):
        model(np.ones((2, 2), np.float32))
    assert sys.getrefcount(x) == before
    x.resize(16, refcheck=False)  # fails while somebody has its buffer


class Marked(np.ndarray):
    pass


@pytest.mark.parametrize("feed", [
    [1.0, 2.0], np.arange(2, dtype=">f4"), np.float32(1) * np.ones(2, np.float32).view(Marked),
    np.frombuffer(b"\0" + np.arange(2, dtype=np.float32).tobytes(), np.uint8)[1:].view(np.float32), anymps.tensor([1.0, 2.0])],
    ids=["list", "big-endian", "subclass", "unaligned", "tensor"])
def test_the_rest_goes_the_long_way(feed):
    graph = anymps.Graph()
    graph.outputs(ops.neg(graph.input("x", "f32", ("N",))))
    model = anymps.compile(graph)
    assert not is_quick(model, feed)
    np.testing.assert_array_equal(np.asarray(model(feed)), -np.asarray(feed))


@pytest.mark.parametrize("feed", [
    np.arange(24, dtype=np.float32)[::3], np.arange(8, dtype=np.float32)[::-1], np.broadcast_to(np.float32(2), 5),
    np.zeros(0, np.float32)], ids=["strided", "backwards", "broadcast", "empty"])
def test_any_strides(feed):
    graph = anymps.Graph()
    graph.outputs(ops.neg(graph.input("x", "f32", ("N",))))
    model = anymps.compile(graph)
    assert is_quick(model, feed)
    for _ in range(2):
        np.testing.assert_array_equal(model(feed), -feed)


def test_errors_are_those_of_the_long_way(difference):
    a, b = np.ones((1, 2), np.float32), np.ones(2, np.float32)
    difference(a, b)
    for args, named in [((a,), {}), ((a, b, b), {}), ((a,), {"a": a}), ((a,), {"c": b}), ((a, b.astype(np.float64)), {}),
                        ((a[0], b), {}), ((), {})]:
        with pytest.raises(anymps.InvalidArgument) as error:
            difference(*args, **named)
        with pytest.raises(anymps.InvalidArgument) as expected:
            long_way(difference, *args, **named)
        assert str(error.value) == str(expected.value)


def test_dtypes_that_numpy_lacks_and_lists():
    graph = anymps.Graph()
    graph.outputs(ops.cast(graph.input("x", "f32", (2,)), dtype="bf16"))
    model = anymps.compile(graph)
    x = np.ones(2, np.float32)
    assert not is_quick(model, x)
    np.testing.assert_array_equal(np.asarray(model(x), np.float32), x)


def test_the_profiler_sees_them(difference):
    with anymps.profile() as profile:
        difference(np.ones((1, 2), np.float32), np.ones(2, np.float32))
    assert len(profile.json()["runs_ns"]) == 1
