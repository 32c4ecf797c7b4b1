# SPDX-License-Identifier: Apache-2.0
"""What looks like numpy is numpy's: operators and indices of values, numbers and names of any size, dtypes that numpy
lacks. What cannot be done is an exception, never another number."""
import os
import subprocess
import sys

import numpy as np
import pytest

import anymps
from anymps import ops

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7
HUGE = 2 ** 70


def run(build, *feeds, static=False):
    """The result of a graph that `build` makes of values for the feeds."""
    graph = anymps.Graph()
    values = [graph.input(f"x{i}", feed.dtype, feed.shape if static else [f"d{k}" for k in range(feed.ndim)])
              for i, feed in enumerate(feeds)]
    graph.outputs(build(*values))
    return anymps.compile(graph)(*feeds)


@pytest.mark.parametrize("key", [
    np.array([True, False]), [False, True], [False, False], np.array([[True, False, True], [False, True, False]]),
    (slice(None), np.array([True, False, True])), (slice(None), [True, True, False], slice(1, 3)),
    (0, [True, False, True]), (slice(None), slice(None), [True, False, False, True]), X > 0,
    [], np.array([1, 0], np.uint8), np.int64(1), np.array(1), (np.array(1), slice(None)), [[0, 1], [1, 0]],
    ([[0, 1], [1, 0]], slice(1, 3)), (slice(None), [[0, 1], [1, 0]], slice(0, 2)),
    (0, slice(None), [0, 1]), ([1, 0], slice(None), 2), (slice(None), 1, [3, 0]), (..., [1, 1]), (0, ..., [1, 2]),
    (None, [1, 0]), ([1, -1],), slice(-HUGE, HUGE), slice(None, None, -1), slice(HUGE, None, -1), (slice(0, HUGE), 1),
    slice(1, 1), (slice(None), slice(5, 2)),
], ids=str)
def test_indices_select_what_numpy_selects(key):
    expected = X[key]
    result = run(lambda x: x[key], X, static=True)
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("build", [
    lambda x: x[x > 0], lambda x: x[x[:, 0, 0] > 0], lambda x: x[:, x[0, :, 0] > -4], lambda x: x[x > 100],
    lambda x: x[x[:, 0, 0] > 0, 1], lambda x: x[..., x[0, 0] > -6],
])
@pytest.mark.parametrize("static", [True, False])
def test_masks_of_the_data_select_what_numpy_selects(build, static):
    expected = build(X)
    result = run(build, X, static=static)
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("key, error", [
    (1.0, anymps.InvalidArgument), ([0.0, 1.0], anymps.InvalidArgument), (np.float64(1), anymps.InvalidArgument),
    (np.zeros(2), anymps.InvalidArgument), (slice(0.5, 2), TypeError), (slice(None, None, 0.5), TypeError),
    ("a", anymps.InvalidArgument), (1j, anymps.InvalidArgument), (True, TypeError), (np.False_, TypeError),
    ([True], anymps.InvalidArgument), (np.ones((3, 2), bool), anymps.InvalidArgument), ([0, 5], anymps.InvalidArgument),
    (HUGE, anymps.InvalidArgument), (-HUGE, anymps.InvalidArgument), ([HUGE], anymps.InvalidArgument),
    (np.array([2 ** 63], np.uint64), anymps.InvalidArgument), (([0], [1]), anymps.Unsupported),
    ((0, 0, 0, 0), anymps.InvalidArgument), ((..., ...), anymps.InvalidArgument),
], ids=str)
def test_what_is_no_index_is_an_error(key, error):
    with pytest.raises(error, match=r"\[index\]|integer"):
        run(lambda x: x[key], X, static=True)


def test_a_mask_must_have_the_extents_of_what_it_masks():
    with pytest.raises(anymps.InvalidArgument, match="same name"):
        run(lambda x: x[[True, False]], X)  # the extent is not known before the run
    graph = anymps.Graph()
    x, mask = graph.input("x", "f32", ("N", 4)), graph.input("mask", "bool", (None,))
    with pytest.raises(anymps.InvalidArgument, match="same name"):
        x[mask]
    with pytest.raises(anymps.InvalidArgument, match="'f' is f32"):
        x[graph.input("f", "f32", (2,))]


INTS = np.array([7, -7, 3, 0, 16], np.int32)


@pytest.mark.parametrize("build", [
    lambda v: v / 2, lambda v: 5 / (v * v + 1), lambda v: v / 2.5, lambda v: v / np.array([1, 2, 4, 5, 3], np.int32),
    lambda v: v / [1, 2, 3, 4, 5], lambda v: v // 2, lambda v: v // -2, lambda v: v % 3, lambda v: v % -3,
    lambda v: -5 // (v * v + 1), lambda v: v ** 2, lambda v: (v > 0) / 2, lambda v: v == 3, lambda v: (v > 0) == True,  # noqa: E712
    lambda v: (v > 0) == 0, lambda v: v < 4, lambda v: 4 <= v, lambda v: v & 3, lambda v: v ^ 1, lambda v: ~v, lambda v: -v,
])
def test_operators_of_integers_are_pythons(build):
    expected, result = build(INTS), run(build, INTS)
    assert result.dtype.kind == np.asarray(expected).dtype.kind
    np.testing.assert_allclose(result, expected, rtol=1e-6)


FLOATS = np.array([1, -1, 7.5, -7.5, 0, -0.0, np.inf, -np.inf, np.nan, 0.3], np.float32)


@pytest.mark.parametrize("other", [0.1, -0.1, 2, -2.5, 0.0, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_floor_division_goes_with_the_remainder(other, dtype):
    x = FLOATS.astype(dtype)
    with np.errstate(all="ignore"):
        for build in (lambda v: v // other, lambda v: v % other, lambda v: other // v, lambda v: other % v):
            np.testing.assert_allclose(run(build, x), build(x), rtol=1e-3 if dtype == np.float16 else 1e-6)


@pytest.mark.parametrize("build", [
    lambda v: v ** -1, lambda v: v ** [-1, 1, 1, 1, 1], lambda v: v + 1.5, lambda v: v < 2.5, lambda v: v + 2 ** 40,
    lambda v: v + HUGE, lambda v: v == HUGE, lambda v: v + 1j, lambda v: (v > 0) & 2, lambda v: (v > 0) == 2,
    lambda v: v.astype("f32") + 1e300, lambda v: v.astype("f32") + 10 ** 400, lambda v: v.astype("f16") * 1e6,
    lambda v: v.astype("f32") + 1j, lambda v: v + [[1], [2, 3]], lambda v: v + 2.0 ** 63,
    lambda v: v.astype("i64") + 2.0 ** 63, lambda v: v / 1j, lambda v: v / 1e300,
])
def test_numbers_that_do_not_fit_are_errors(build):
    with pytest.raises(anymps.InvalidArgument):
        run(build, INTS)


def test_large_integers_are_floats_where_floats_are_asked_for():
    np.testing.assert_allclose(run(lambda v: v * HUGE, np.float32([1, 2])), [2.0 ** 70, 2.0 ** 71])
    graph = anymps.Graph()
    assert graph.constant(HUGE, "f64").dtype == "f64"
    with pytest.raises(anymps.InvalidArgument, match="cannot hold"):
        graph.constant(HUGE)
    with pytest.raises(anymps.InvalidArgument, match="cannot hold"):
        graph.constant(9, "i4")
    assert graph.constant(2j).dtype == "c64"


def test_strings_compare_by_element():
    words = np.array(["a", "b", "a"], object)
    np.testing.assert_array_equal(run(lambda s: s == "a", words), [True, False, True])


@pytest.mark.parametrize("call", [
    lambda g, x: ops.softmax(x, axis=HUGE), lambda g, x: ops.reshape(x, [HUGE]), lambda g, x: ops.softmax(x, axis="1"),
    lambda g, x: ops.max_pool(x, kernel=[2.5, 2]), lambda g, x: ops.softmax(x, axis=float("inf")),
    lambda g, x: ops.leaky_relu(x, alpha=10 ** 400), lambda g, x: ops.split(x, axis=0, outputs=HUGE),
    lambda g, x: ops.split(x, axis=0, outputs=10 ** 9), lambda g, x: ops.softmax(x, axis=0, name="a\0b"),
    lambda g, x: ops.softmax(x, axis=0, name="\udcff"), lambda g, x: ops.div(x, x, rounding="floor\0"),
    lambda g, x: g.input("y", "f32", (HUGE,)), lambda g, x: g.input("y", "f32", (-1,)), lambda g, x: g.input("y\0", "f32"),
    lambda g, x: g.input("\ud800", "f32"), lambda g, x: g.input("y", "f32", ("a\0",)), lambda g, x: g.input("y", "f32\0"),
    lambda g, x: g.constant(1, name="c\0"), lambda g, x: g.save("/tmp/a\0b.mps"), lambda g, x: g.text("svg\0"),
    lambda g, x: anymps.load("/tmp/a\0b.onnx"), lambda g, x: anymps.load(b"/tmp/\xff.onnx".decode(errors="surrogateescape")),
    lambda g, x: anymps.load("/tmp/\ud800.onnx"), lambda g, x: anymps.device("cpu\0x"), lambda g, x: anymps.Graph("a\0"),
    lambda g, x: anymps.Program("/tmp/a\0.pte"), lambda g, x: anymps.empty((HUGE,)), lambda g, x: anymps.empty((-1,)),
    lambda g, x: anymps.empty((2 ** 40, 2 ** 40)), lambda g, x: anymps.compile(g, threads=HUGE),
    lambda g, x: anymps.compile(g, threads=-1), lambda g, x: anymps.Graph.load(b"x", name="a\0"),
    lambda g, x: anymps.Graph.load(b"x", inputs=["\udcff"]), lambda g, x: anymps.tensor([HUGE]),
    lambda g, x: anymps.tensor([1, 2], dtype="f\0"), lambda g, x: ops.cast(x, dtype=object()),
])
def test_sizes_and_names_of_any_kind_are_errors_of_the_package(call):
    graph = anymps.Graph()
    x = graph.input("x", "f32", (1, 1, 3, 4))
    graph.outputs(x + 1)
    with pytest.raises(anymps.Error, match=r"^\["):
        call(graph, x)


def test_a_path_to_save_to_may_be_bytes(tmp_path):
    graph = anymps.Graph()
    graph.outputs(graph.input("x", "f32", (2,)) * 2)
    graph.save(os.fsencode(tmp_path / "twice.mps"))
    np.testing.assert_array_equal(anymps.load(tmp_path / "twice.mps")([1, 2]), [2, 4])


WITHOUT_ML_DTYPES = """
import sys
sys.modules["ml_dtypes"] = None
import numpy as np
import anymps

x = np.float32([1.5, -2, 3])
half = anymps.ops.cast(x, dtype="bf16")
assert isinstance(half, anymps.Tensor) and half.dtype == "bf16", half     # not words that look like integers
assert half.tolist() == [1.5, -2, 3] and "1.5" in repr(half)
again = anymps.ops.add(half, half)
assert again.dtype == "bf16" and anymps.ops.cast(again, dtype="f32").tolist() == [3, -4, 6]
for read in (lambda: half.numpy(), lambda: np.asarray(half), lambda: np.array(half), lambda: anymps.to_numpy(half),
             lambda: anymps.numpy_dtype("bf16")):
    try:
        read()
    except anymps.Unsupported as error:
        assert "ml_dtypes" in str(error)
    else:
        raise AssertionError("integers in the place of bf16")
graph = anymps.Graph()
v = graph.input("x", "bf16", (3,))
graph.outputs(v * 2.5 + graph.constant([1, 2, 0.5], "bf16") + graph.constant(np.ones(3), "bf16"))
result = anymps.compile(graph)([1.5, -2, 3])
assert result.dtype == "bf16" and result.tolist() == [5.75, -2, 9], result
assert anymps.tensor([1.5], "bf16", copy=True).item() == 1.5
assert graph.constant([7, -8], "i4").dtype == "i4"
try:
    graph.constant([8], "i4")
except anymps.InvalidArgument:
    print("done")
"""


def test_numpy_reads_what_ml_dtypes_brings():
    pytest.importorskip("ml_dtypes")
    half = ops.cast(anymps.tensor(np.float32([1.5, -2])), dtype="bf16")
    for array in (np.asarray(half), np.array(half), half.numpy(), ops.cast(np.float32([1.5, -2]), dtype="bf16")):
        assert array.dtype == anymps.numpy_dtype("bf16") and array.tolist() == [1.5, -2]
    with pytest.raises(BufferError):
        memoryview(half)
    half.numpy()[0] = 3
    assert half.tolist() == [3, -2]


def test_dtypes_that_numpy_lacks_stay_tensors():
    done = subprocess.run([sys.executable, "-c", WITHOUT_ML_DTYPES], capture_output=True, text=True, env=os.environ)
    assert done.stdout == "done\n", done.stderr
