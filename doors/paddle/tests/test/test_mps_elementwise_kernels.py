# SPDX-License-Identifier: Apache-2.0
"""Elementwise binary ops against Paddle's CPU kernels: types, broadcasting, views, gradients.
`python -m pytest test/test_mps_elementwise_kernels.py -v`"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import numpy as np
import paddle
import pytest
import support

ARITHMETIC = {"add": paddle.add, "subtract": paddle.subtract, "multiply": paddle.multiply, "divide": paddle.divide}
OTHER = {
    "maximum": paddle.maximum,
    "minimum": paddle.minimum,
    "pow": paddle.pow,
    "floor_divide": paddle.floor_divide,
    "remainder": paddle.remainder,
}
COMPARISONS = {
    "equal": paddle.equal,
    "not_equal": paddle.not_equal,
    "less_than": paddle.less_than,
    "less_equal": paddle.less_equal,
    "greater_than": paddle.greater_than,
    "greater_equal": paddle.greater_equal,
}
SHAPES = [
    ((3, 4), (3, 4)),
    ((3, 4), (4,)),
    ((3, 1), (1, 4)),
    ((2, 3, 4), (3, 1)),
    ((), (2, 2)),
    ((5, 1, 3), (2, 1)),
    ((0, 3), (3,)),
    ((), ()),
]


def arrays(shapes, dtype="float32", low=0.5, high=3.0):
    random = np.random.default_rng(len(shapes[0]) * 7 + len(shapes[1]))
    if dtype.startswith(("int", "uint")):
        return [random.integers(1, 20, shape).astype(dtype) for shape in shapes]
    return [random.uniform(low, high, shape).astype("float32" if dtype in ("float16", "bfloat16") else dtype) for shape in shapes]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_broadcasting(name, shapes):
    support.on_both(ARITHMETIC[name], *arrays(shapes))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32", "int64"])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply"])
def test_types(name, dtype):
    support.on_both(ARITHMETIC[name], *arrays(((4, 5), (5,)), dtype), dtype=None if dtype.startswith("int") else dtype)


@pytest.mark.parametrize("name", OTHER)
def test_other_arithmetic(name):
    support.on_both(OTHER[name], *arrays(((3, 4), (4,))))


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name, dtype):
    a, b = arrays(((6, 4), (4,)), dtype)
    a[::2] = b
    support.on_both(COMPARISONS[name], a, b)


def test_infinities_and_nan():
    values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0], dtype="float32")
    for function in (*ARITHMETIC.values(), paddle.maximum, paddle.minimum, paddle.equal, paddle.less_than):
        support.on_both(function, values[:, None], values[None], tolerance=(1e-6, 0))


@pytest.mark.parametrize("name", ARITHMETIC)
def test_views(name):
    a, b = arrays(((6, 8), (8, 6)))
    support.on_both(lambda x, y: ARITHMETIC[name](x[1:5:2, ::-1], y.transpose([1, 0])[:2]), a, b)


@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("wanted", [0, 1])
@pytest.mark.parametrize("shapes", [((3, 4), (3, 4)), ((3, 4), (4,)), ((2, 1, 4), (3, 1))], ids=str)
def test_gradients(name, wanted, shapes):
    def gradient(x, y):
        inputs = (x, y)
        inputs[wanted].stop_gradient = False
        result = ARITHMETIC[name](x, y)
        (grad,) = paddle.grad((result * result).sum(), inputs[wanted])
        return grad

    support.on_both(gradient, *arrays(shapes), tolerance=(1e-4, 1e-4))


def test_in_place():
    a, b = arrays(((3, 4), (3, 4)))

    def compute(x, y):
        x.add_(y)
        x.multiply_(y)
        x[1] = 5.0
        return x

    support.on_both(compute, a, b)


def test_shapes_that_do_not_broadcast():
    a, b = (paddle.ones(shape, dtype="float32", place="mps") for shape in ([2, 3], [4]))
    with pytest.raises(ValueError, match="(?i)broadcast"):
        paddle.add(a, b)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-v"]))
