# SPDX-License-Identifier: Apache-2.0
"""The unary ops, with their gradients and the edges of their domains: `python test_mps_unary_operators.py`, or with
pytest."""

import sys

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest
import support

_random = np.random.default_rng(1)
ANY = _random.uniform(-3, 3, (4, 5)).astype("float32")
POSITIVE = _random.uniform(0.1, 5, (4, 5)).astype("float32")
UNIT = _random.uniform(-0.9, 0.9, (4, 5)).astype("float32")
ABOVE_ONE = _random.uniform(1.1, 5, (4, 5)).astype("float32")
EDGES = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 1e30, -1e30], dtype="float32")

# The six of the original come first.
OPS = {
    "abs": (paddle.abs, ANY),
    "exp": (paddle.exp, ANY),
    "log": (paddle.log, POSITIVE),
    "sqrt": (paddle.sqrt, POSITIVE),
    "relu": (F.relu, ANY),
    "sigmoid": (F.sigmoid, ANY),
    "tanh": (paddle.tanh, ANY),
    "square": (paddle.square, ANY),
    "rsqrt": (paddle.rsqrt, POSITIVE),
    "reciprocal": (paddle.reciprocal, POSITIVE),
    "sin": (paddle.sin, ANY),
    "cos": (paddle.cos, ANY),
    "tan": (paddle.tan, UNIT),
    "asin": (paddle.asin, UNIT),
    "acos": (paddle.acos, UNIT),
    "atan": (paddle.atan, ANY),
    "sinh": (paddle.sinh, ANY),
    "cosh": (paddle.cosh, ANY),
    "asinh": (paddle.asinh, ANY),
    "acosh": (paddle.acosh, ABOVE_ONE),
    "atanh": (paddle.atanh, UNIT),
    "log2": (paddle.log2, POSITIVE),
    "log10": (paddle.log10, POSITIVE),
    "log1p": (paddle.log1p, POSITIVE),
    "expm1": (paddle.expm1, ANY),
    "erf": (paddle.erf, ANY),
    "floor": (paddle.floor, ANY),
    "ceil": (paddle.ceil, ANY),
    "sign": (paddle.sign, ANY),
    "silu": (F.silu, ANY),
    "gelu": (F.gelu, ANY),
    "relu6": (F.relu6, ANY * 4),
    "leaky_relu": (F.leaky_relu, ANY),
    "hardswish": (F.hardswish, ANY * 2),
    "hardsigmoid": (F.hardsigmoid, ANY * 2),
    "softplus": (F.softplus, ANY),
    "elu": (F.elu, ANY),
}
WITHOUT_GRADIENT = {"floor", "ceil", "sign"}


@pytest.mark.parametrize("name", OPS)
def test_values(name):
    function, values = OPS[name]
    support.on_both(function, values)


@pytest.mark.parametrize("name", ["abs", "exp", "log", "sqrt", "relu", "sigmoid", "tanh", "square"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_types(name, dtype):
    function, values = OPS[name]
    support.on_both(function, values, dtype=dtype)


@pytest.mark.parametrize("name", ["abs", "exp", "log", "sqrt", "relu", "sigmoid", "tanh", "square", "floor", "ceil"])
def test_edges(name):
    function, _ = OPS[name]
    support.on_both(function, EDGES, tolerance=(2e-5, 0))


@pytest.mark.parametrize("name", ["abs", "exp", "log", "sqrt", "relu", "sigmoid"])
def test_shapes(name):
    function, values = OPS[name]
    for shaped in (values[:0], values[0, 0].reshape(()), values.reshape(2, 2, 5, 1), values.T):
        support.on_both(function, shaped)
    support.on_both(lambda x: function(x.transpose([1, 0])[1:, ::2]), values)


@pytest.mark.parametrize("name", sorted(set(OPS) - WITHOUT_GRADIENT))
def test_gradient(name):
    function, values = OPS[name]
    weights = np.linspace(-1, 2, values.size, dtype="float32").reshape(values.shape)

    def gradient(x, w):
        x.stop_gradient = False
        (grad,) = paddle.grad((function(x) * w).sum(), x)
        return grad

    support.on_both(gradient, values, weights)


def main():
    report = support.Report("MPS Unary Operators Test")
    report.section("Testing Operations")
    for name, (function, values) in OPS.items():
        report.case(name, function, values)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
