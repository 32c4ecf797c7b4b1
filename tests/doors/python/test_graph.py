# SPDX-License-Identifier: Apache-2.0
"""Graphs built in Python, against numpy."""
import inspect

import numpy as np
import pytest

import anymps
from anymps import ops

X = np.arange(-6, 6, dtype=np.float32).reshape(3, 4)


def run(build, *feeds):
    """The result of a graph that `build` makes of values for the feeds."""
    graph = anymps.Graph()
    values = [graph.input(f"x{i}", feed.dtype, [None] * feed.ndim) for i, feed in enumerate(feeds)]
    result = build(*values)
    graph.outputs(result)
    return anymps.compile(graph)(*feeds)


@pytest.mark.parametrize("build", [
    lambda x: x + 1, lambda x: 1 + x, lambda x: x - 2.5, lambda x: 2.5 - x, lambda x: x * 3, lambda x: x / 4,
    lambda x: 1 / (x * x + 1), lambda x: x ** 2, lambda x: 2 ** x, lambda x: x % 3, lambda x: x // 3, lambda x: -x,
    lambda x: abs(x), lambda x: +x, lambda x: x @ np.ones((4, 2), np.float32), lambda x: np.ones((2, 3), np.float32) @ x,
    lambda x: x + [1, 2, 3, 4], lambda x: x > 0, lambda x: x <= 1, lambda x: x == 0, lambda x: x != 0,
    lambda x: (x > 0) & (x < 3), lambda x: (x > 3) | (x < 0), lambda x: ~(x > 0), lambda x: (x > 0) ^ (x < 3),
    lambda x: x[0], lambda x: x[-1], lambda x: x[1:], lambda x: x[:, 1:3], lambda x: x[..., 0], lambda x: x[::-1],
    lambda x: x[::2, ::-2], lambda x: x[1, 2], lambda x: x[None], lambda x: x[:, None], lambda x: x[0, None],
    lambda x: x[[2, 0, 1]], lambda x: x[:, [1, 1]], lambda x: x[-3:-1], lambda x: x[:100], lambda x: x[None, ..., -1],
    lambda x: x.T,
])
def test_operators_and_indices_mean_what_numpy_means(build):
    expected = build(X)
    result = run(build, X)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_integers_stay_integers():
    x = np.array([5, -5, 7], np.int32)
    for build in (lambda v: v + 1, lambda v: v * 2, lambda v: v // 2, lambda v: v % 3):
        result = run(build, x)
        assert result.dtype == np.int32
        np.testing.assert_array_equal(result, build(x))


def test_numbers_take_the_dtype_of_what_they_meet():
    half = X.astype(np.float16)
    assert run(lambda x: x * 2 + 1.5, half).dtype == np.float16
    with pytest.raises(anymps.InvalidArgument, match="fractions"):
        run(lambda x: x + 1.5, np.array([1], np.int64))
    with pytest.raises(anymps.InvalidArgument, match="cannot hold"):
        run(lambda x: x + 300, np.array([1], np.uint8))


def test_methods_functions_and_graph_methods_are_one():
    graph = anymps.Graph()
    x = graph.input("x", "f32", (3, 4))
    graph.outputs(x.softmax(axis=0), ops.softmax(x, axis=0), graph.softmax(x, axis=0), graph.op("softmax", x, axis=0))
    results = anymps.compile(graph)(X)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_graph_and_eager_agree():
    for build in (lambda x: ops.softmax(x), lambda x: ops.reduce_sum(x, axes=[1], keep_dims=False),
                  lambda x: ops.concat(x, x, axis=1), lambda x: ops.reshape(x, [2, -1]),
                  lambda x: ops.where(ops.greater(x, 0.0), x, 0.0), lambda x: ops.cast(x, dtype=np.int8),
                  lambda x: ops.split(x, axis=1, sizes=[1, 3])[1], lambda x: ops.clamp(x, min=-1.0, max=2.0)):
        np.testing.assert_array_equal(run(build, X), build(X))


def test_outputs_of_ops():
    a, b = ops.split(X, axis=1, outputs=2)
    np.testing.assert_array_equal(np.concatenate([a, b], 1), X)
    y, indices = ops.max_pool(X.reshape(1, 1, 3, 4), kernel=[2, 2], outputs=2)
    assert indices.dtype == np.int64 and y.shape == indices.shape
    assert isinstance(ops.max_pool(X.reshape(1, 1, 3, 4), kernel=[2, 2]), np.ndarray)


def test_shapes_have_names():
    graph = anymps.Graph()
    x = graph.input("x", "f32", ("batch", None, 3))
    assert x.shape[0] == "batch" and x.shape[2] == 3 and x.ndim == 3
    assert (x + 1).shape[0] == "batch"
    graph.outputs(x + 1)
    with pytest.raises(anymps.InvalidArgument, match="x"):
        anymps.compile(graph)(np.zeros((1, 2, 4), np.float32))


def test_every_op_has_a_signature_and_a_text():
    assert len(ops.__all__) > 100
    for name in ops.__all__:
        function = getattr(ops, name)
        assert function.__doc__.strip() and "Returns:" in function.__doc__, name
        assert list(inspect.signature(function).parameters)[-1] == "name", name


@pytest.mark.parametrize("call, error, text", [
    (lambda g, x: ops.softmax(x, axis=9), anymps.InvalidArgument, r"\[softmax\].*axis 9"),
    (lambda g, x: ops.softmax(x, axis=9, name="head"), anymps.InvalidArgument, "head"),
    (lambda g, x: ops.softmax(x, axes=1), TypeError, "unexpected keyword argument 'axes'"),
    (lambda g, x: ops.softmax(), TypeError, r"\[softmax\].*missing"),
    (lambda g, x: ops.softmax(x, axis="last"), anymps.InvalidArgument, "'axis' must be of the kind int"),
    (lambda g, x: ops.cast(x, dtype="float7"), anymps.Error, "float7"),
    (lambda g, x: g.op("no_such_op", x), anymps.NotFound, "no_such_op"),
    (lambda g, x: x @ np.ones((7, 7), np.float32), anymps.InvalidArgument, r"\[matmul\]"),
    (lambda g, x: x + anymps.Graph().input("y", "f32", (3, 4)), anymps.InvalidArgument, "another graph"),
    (lambda g, x: x[5], anymps.InvalidArgument, "outside axis 0"),
    (lambda g, x: x[0, 0, 0], anymps.InvalidArgument, "3 indices"),
    (lambda g, x: bool(x > 0), TypeError, "before the graph runs"),
    (lambda g, x: list(x), TypeError, "split"),
    (lambda g, x: g.outputs(3), anymps.InvalidArgument, "not int"),
    (lambda g, x: g.input("x", "f32", (2,)), anymps.Error, "x"),
    (lambda g, x: x + object(), TypeError, "unsupported operand"),
])
def test_mistakes_are_exceptions_that_name_the_op(call, error, text):
    graph = anymps.Graph()
    x = graph.input("x", "f32", (3, 4))
    with pytest.raises(error, match=text):
        call(graph, x)


def test_values_outlive_the_names_of_their_graph():
    def make():
        graph = anymps.Graph()
        return graph.input("x", "f32", (3,)) + 1
    value = make()
    assert value.shape == (3,)
    value._graph.outputs(value * 2)
    assert anymps.compile(value._graph)([1, 2, 3]).tolist() == [4, 6, 8]


def test_gradients_beside_differences():
    rng = np.random.default_rng(3)
    w0, x0 = rng.standard_normal((4, 2)), rng.standard_normal((3, 4))
    graph = anymps.Graph()
    x, w = graph.input("x", "f64", (3, 4)), graph.input("w", "f64", (4, 2))
    loss = ((x @ w).tanh() ** 2).reduce_sum()
    graph.outputs(loss, *graph.gradient(loss, [x, w]))
    model = anymps.compile(graph)
    _, dx, dw = model(x0, w0)

    def value(x, w):
        return (np.tanh(x @ w) ** 2).sum()
    for analytic, feed, other in ((dx, x0, lambda v: value(v, w0)), (dw, w0, lambda v: value(x0, v))):
        numeric = np.zeros_like(feed)
        for at in np.ndindex(feed.shape):
            step = np.zeros_like(feed)
            step[at] = 1e-6
            numeric[at] = (other(feed + step) - other(feed - step)) / 2e-6
        np.testing.assert_allclose(analytic, numeric, rtol=1e-5, atol=1e-7)


def test_gradients_with_a_seed_and_of_one_value():
    graph = anymps.Graph()
    x = graph.input("x", "f32", (3,))
    y = x * x
    graph.outputs(graph.gradient(y, x), graph.gradient(y, x, seed=[1, 10, 100]))
    plain, seeded = anymps.compile(graph)([1, 2, 3])
    assert plain.tolist() == [2, 4, 6] and seeded.tolist() == [2, 40, 600]
    with pytest.raises(anymps.InvalidArgument, match="gradient"):
        graph.gradient(y, [3])
    with pytest.raises(anymps.InvalidArgument, match="another graph"):
        graph.gradient(y, [anymps.Graph().input("z", "f32", (3,))])


def test_control_flow_with_python_functions():
    graph = anymps.Graph()
    x, flag, count = graph.input("x", "f32", (3,)), graph.input("flag", "bool", ()), graph.input("count", "i64", ())
    chosen = ops.if_else(flag, x, then_branch=lambda v: v + 1, else_branch=lambda v: v * 10)
    summed = ops.for_loop(0, count, 1, x, x, body=lambda i, total, each: total + each, carried=1)
    halved = ops.while_loop(x, before=lambda v: (v.reduce_max(keep_dims=False) > 1, v), after=lambda v: v / 2, carried=1)
    called = ops.call(x, x, callee=lambda a, b: (a + b, a - b))
    graph.outputs(*chosen, *summed, *halved, *called)
    model = anymps.compile(graph)
    for flag, first in ((True, [2, 3, 5]), (False, [10, 20, 40])):
        results = [r.tolist() for r in model([1, 2, 4], flag, 3)]
        assert results == [first, [4, 8, 16], [0.25, 0.5, 1], [2, 4, 8], [0, 0, 0]]


def test_control_flow_with_graphs_and_mistakes():
    body = anymps.Graph("double")
    body.outputs(body.input("v", "f32", (2,)) * 2)
    graph = anymps.Graph()
    x = graph.input("x", "f32", (2,))
    graph.outputs(*ops.call(x, callee=body))
    assert anymps.compile(graph)([1, 2]).tolist() == [2, 4]
    with pytest.raises(anymps.InvalidArgument, match="graph"):
        ops.call(x, callee=3)
    with pytest.raises(anymps.InvalidArgument, match="another graph"):
        ops.call(x, callee=lambda v: v + x)
    with pytest.raises(anymps.InvalidArgument, match="control flow is for graphs"):
        ops.call(X, callee=body)


def test_variables_live_from_run_to_run():
    graph = anymps.Graph()
    x = graph.input("x", "f32", (2,))
    graph.outputs(ops.assign_variable(ops.read_variable(graph.constant(np.zeros(2, np.float32)), variable="sum") + x,
                                      variable="sum"))
    model = anymps.compile(graph)
    assert model.variable("sum") is None
    model([1, 2])
    assert model([1, 2]).tolist() == [2, 4] and model.variable("sum").tolist() == [2, 4]
    model.set_variable("sum", np.float32([10, 20]))
    assert model([1, 2]).tolist() == [11, 22]


def test_lists_and_strings_in_graphs():
    graph = anymps.Graph()
    items = graph.list_input("items")
    graph.outputs(ops.sequence_at(items, graph.constant(np.int64(1))), graph.constant(["a", "bc"]))
    second, texts = anymps.compile(graph)([np.float32([1]), np.float32([2, 3])])
    assert second.tolist() == [2, 3] and texts.tolist() == ["a", "bc"]
