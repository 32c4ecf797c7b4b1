# SPDX-License-Identifier: Apache-2.0
"""What graph compilers use: constants over their memory, results in the memory of feeds, dimensions bound by name, files
in memory, one lowering for arrays and graphs."""
import gc
import threading
import weakref

import numpy as np
import pytest

import anymps
from anymps import ops

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def linear(w, **options):
    graph = anymps.Graph()
    x = graph.input("x", "f32", ("N", 3))
    graph.outputs(x @ graph.constant(w, name="w", **options))
    return graph


def test_constants_are_refreshed_in_place():
    w = np.ones((3, 2), np.float32)
    model = anymps.compile(linear(w, copy=False))
    np.testing.assert_array_equal(model(X), X @ w)
    w *= 3
    model.refresh("w")
    np.testing.assert_array_equal(model(X), X @ w)
    model.refresh("w", write=lambda: w.fill(-1))
    np.testing.assert_array_equal(model(X), X @ w)


def test_constants_move_and_memory_is_let_go():
    first = np.ones((3, 2), np.float32)
    alive = weakref.ref(first)
    model = anymps.compile(linear(first, copy=False))
    del first
    gc.collect()
    assert alive() is not None
    second = np.arange(6, dtype=np.float32).reshape(2, 3).T
    model.refresh(w=second)
    gc.collect()
    assert alive() is None
    np.testing.assert_array_equal(model(X), X @ second)


def test_refresh_says_what_is_wrong():
    w = np.ones((3, 2), np.float32)
    model = anymps.compile(linear(w, copy=False))
    with pytest.raises(anymps.NotFound, match="'v' is no constant"):
        model.refresh("v")
    with pytest.raises(anymps.InvalidArgument, match="must be f32"):
        model.refresh(w=np.ones((2, 2), np.float32))
    with pytest.raises(ZeroDivisionError):
        model.refresh("w", write=lambda: 1 / 0)
    for value, options in (([1.0, 2.0], {}), (w, {"dtype": "f16"}), (w.astype(">f4"), {}), (np.array(["a"]), {})):
        with pytest.raises(anymps.InvalidArgument):
            anymps.Graph().constant(value, copy=False, **options)
    with pytest.raises(anymps.NotFound):
        anymps.compile(linear(w)).refresh("w")  # a copy


def test_runs_of_other_threads_see_old_or_new_numbers():
    w = np.zeros((3, 2), np.float32)
    model, wrong, stop = anymps.compile(linear(w, copy=False)), [], threading.Event()

    def run():
        while not stop.is_set():
            y = model(np.ones((1, 3), np.float32))
            if len(set(y.ravel().tolist())) != 1:
                wrong.append(y)
    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for n in range(100):
        model.refresh("w", write=lambda n=n: w.fill(n))
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_results_lie_in_feeds():
    graph = anymps.Graph()
    p, d = graph.input("p", "f32", (3,)), graph.input("d", "f32", (3,))
    graph.outputs(p - d * 0.5)
    name = graph.output_values[0].name
    model = anymps.compile(graph, "cpu", aliases={name: "p"})
    data = np.ones(3, np.float32)
    for _ in range(2):
        model.run([data, X[0]], [data])
    np.testing.assert_array_equal(data, 1 - X[0])
    assert "(copy)" not in model.text("plan")
    with pytest.raises(anymps.NotFound, match="no input 'q'"):
        anymps.compile(graph, aliases={0: "q"})
    with pytest.raises(anymps.InvalidArgument, match="result 1"):
        anymps.compile(graph, aliases={1: 0})


def test_dimensions_are_bound_by_name():
    graph = anymps.Graph()
    x = graph.input("x", "f32", ("K",))
    rows = ops.reshape(graph.dimension("N"), [1])
    graph.outputs(ops.reshape(x, ops.concat(rows, np.array([-1]), axis=0)))
    model = anymps.compile(graph)
    for n in (1, 2, 3):
        assert model.bind(N=n)(X.ravel()).shape == (n, 6 // n)
    with pytest.raises(anymps.InvalidArgument, match="nothing tells dimension 'N'"):
        model(X.ravel())
    with pytest.raises(anymps.NotFound, match="no dimension 'M'"):
        model.bind(M=1)
    with pytest.raises(anymps.InvalidArgument, match="'K' is bound to 5"):
        model.bind(K=5, N=2)(X.ravel())


def test_files_in_memory():
    w = np.ones((3, 2), np.float32)
    graph = linear(w)
    for data in (graph.bytes(), graph.bytes("onnx"), anymps.compile(graph).bytes()):
        np.testing.assert_array_equal(anymps.load(data)(X), X @ w)
    with pytest.raises(anymps.Corrupt):
        anymps.load(graph.bytes()[:-9])


def gated(x, w):
    """One lowering: it computes on arrays and builds on values."""
    a, b = ops.split(ops.gelu(ops.matmul(x, w), approximate="tanh"), axis=-1, sizes=[1, 1])
    return ops.softmax(ops.add(ops.mul(a, ops.sigmoid(b)), 0.5), axis=0)


def test_one_function_serves_arrays_and_graphs():
    w = np.array([[1, 2], [-1, 0.5], [0.25, -2]], np.float32)
    graph = anymps.Graph()
    graph.outputs(gated(graph.input("x", "f32", (2, 3)), w))
    np.testing.assert_allclose(gated(X, w), anymps.compile(graph)(X), rtol=1e-6)


def test_subnormal_numbers_are_flushed_or_kept():
    graph = anymps.Graph()
    x = graph.input("x", "f32", (2,))
    graph.outputs(x + x)
    tiny = np.float32(2.0 ** -140)
    feed = np.array([tiny, 1], np.float32)
    for option, expected in ("", 0), ("flush", 0), ("keep", 2 * tiny):
        np.testing.assert_array_equal(anymps.compile(graph, "cpu", denormals=option)(feed), [expected, 2])
    with pytest.raises(anymps.InvalidArgument, match="'flush' or 'keep'"):
        anymps.compile(graph, denormals="often")
