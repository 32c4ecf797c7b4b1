# SPDX-License-Identifier: Apache-2.0
"""Ops of every kind that models use, with types, shapes and gradients, against Paddle's CPU kernels:
`python test/test_mps_kernels_comprehensive.py`, or with pytest."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import numpy as np
import paddle
import paddle.nn.functional as F
import pytest
import support

_random = np.random.default_rng(2)


def floats(*shape):
    return _random.uniform(-1, 1, shape).astype("float32")


def ids(high, *shape):
    return _random.integers(0, high, shape).astype("int64")


X = floats(2, 3, 8, 8)
ROWS = floats(4, 6)

# name: function, arrays; arrays of floats are differentiated
SECTIONS = {
    "Creation": {
        "zeros": (lambda x: paddle.zeros([2, 3]) + x, (floats(3),)),
        "ones_like": (paddle.ones_like, (ROWS,)),
        "full": (lambda x: paddle.full([2, 2], 7.5) * x, (floats(2),)),
        "arange": (lambda x: paddle.arange(6, dtype="float32") + x, (floats(6),)),
        "eye": (lambda x: paddle.eye(3) * x, (floats(3),)),
        "linspace": (lambda x: paddle.linspace(0, 1, 5) * x, (floats(5),)),
        "tril": (paddle.tril, (ROWS,)),
        "triu": (paddle.triu, (ROWS,)),
    },
    "Movement": {
        "reshape": (lambda x: x.reshape([3, -1]) * 2, (ROWS,)),
        "transpose": (lambda x: x.transpose([1, 0]) * 2, (ROWS,)),
        "slice": (lambda x: x[1:3, ::2] * 2, (ROWS,)),
        "concat": (lambda x, y: paddle.concat([x, y], axis=1), (ROWS, floats(4, 2))),
        "stack": (lambda x, y: paddle.stack([x, y]), (ROWS, floats(4, 6))),
        "split": (lambda x: paddle.split(x, 3, axis=1)[1] * 2, (ROWS,)),
        "squeeze": (lambda x: x.unsqueeze(1).squeeze(1) * 2, (ROWS,)),
        "flatten": (lambda x: x.flatten(1) * 2, (X,)),
        "expand": (lambda x: x.expand([3, 4, 6]) * 2, (ROWS,)),
        "tile": (lambda x: paddle.tile(x, [2, 1]), (ROWS,)),
        "gather": (lambda x, i: paddle.gather(x, i), (ROWS, ids(4, 5))),
        "index_select": (lambda x, i: paddle.index_select(x, i, axis=1), (ROWS, ids(6, 3))),
        "where": (lambda x, y: paddle.where(x > 0, x, y), (ROWS, floats(4, 6))),
        "pad": (lambda x: F.pad(x, [1, 1, 2, 0]), (X,)),
        "flip": (lambda x: paddle.flip(x, axis=[1]), (ROWS,)),
        "roll": (lambda x: paddle.roll(x, 2, axis=1), (ROWS,)),
        "cast": (lambda x: x.astype("float64").astype("float32"), (ROWS,)),
        "clip": (lambda x: paddle.clip(x, -0.5, 0.5), (ROWS,)),
        "scale": (lambda x: paddle.scale(x, 3.0, 1.0), (ROWS,)),
        "topk": (lambda x: paddle.topk(x, 2, axis=1)[0], (ROWS,)),
        "cumsum": (lambda x: paddle.cumsum(x, axis=1), (ROWS,)),
    },
    "Reductions": {
        "sum": (lambda x: x.sum(axis=1), (ROWS,)),
        "sum of all": (lambda x: x.sum(), (X,)),
        "mean": (lambda x: x.mean(axis=[2, 3], keepdim=True), (X,)),
        "max": (lambda x: x.max(axis=1), (ROWS,)),
        "min": (lambda x: x.min(axis=0), (ROWS,)),
        "prod": (lambda x: x.prod(axis=1), (ROWS,)),
        "norm": (lambda x: paddle.linalg.norm(x), (ROWS,)),
        "logsumexp": (lambda x: paddle.logsumexp(x, axis=1), (ROWS,)),
    },
    "Products": {
        "matmul": (paddle.matmul, (ROWS, floats(6, 3))),
        "matmul, transposed": (lambda x, y: paddle.matmul(x, y, transpose_y=True), (ROWS, floats(3, 6))),
        "matmul, batched": (paddle.matmul, (floats(2, 3, 4), floats(2, 4, 5))),
        "linear": (F.linear, (ROWS, floats(6, 3), floats(3))),
    },
    "Layers": {
        "softmax": (lambda x: F.softmax(x, axis=-1), (ROWS,)),
        "log_softmax": (lambda x: F.log_softmax(x, axis=-1), (ROWS,)),
        "conv2d": (lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1), (X, floats(4, 3, 3, 3), floats(4))),
        "conv2d, grouped": (lambda x, w: F.conv2d(x, w, groups=3, padding=1), (X, floats(6, 1, 3, 3))),
        "depthwise_conv2d": (lambda x, w: F.conv2d(x, w, groups=3, padding=1), (X, floats(3, 1, 3, 3))),
        "conv2d_transpose": (lambda x, w: F.conv2d_transpose(x, w, stride=2), (X, floats(3, 4, 3, 3))),
        "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1), (X,)),
        "avg_pool2d": (lambda x: F.avg_pool2d(x, 2, 2), (X,)),
        "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 1), (X,)),
        "layer_norm": (lambda x, w, b: F.layer_norm(x, 6, w, b), (ROWS, floats(6), floats(6))),
        "group_norm": (lambda x: F.group_norm(x, 3), (X,)),
        "embedding": (lambda i, w: F.embedding(i, w), (ids(10, 2, 3), floats(10, 4))),
        "interpolate": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (X,)),
        "dropout, p = 0": (lambda x: F.dropout(x, 0.0), (ROWS,)),
    },
    "Losses": {
        "cross_entropy": (lambda x, i: F.cross_entropy(x, i), (ROWS, ids(6, 4))),
        "mse_loss": (F.mse_loss, (ROWS, floats(4, 6))),
        "binary_cross_entropy_with_logits": (
            lambda x, y: F.binary_cross_entropy_with_logits(x, F.sigmoid(y)),
            (ROWS, floats(4, 6)),
        ),
    },
}
CASES = {f"{section}: {name}": case for section, cases in SECTIONS.items() for name, case in cases.items()}
TOLERANCE = (1e-4, 1e-4)  # sums of products in another order
WITHOUT_GRADIENT = {"Creation: ones_like"}


def gradient_of(function, which):
    def gradient(*inputs):
        inputs[which].stop_gradient = False
        (grad,) = paddle.grad((function(*inputs) ** 2).sum(), inputs[which])
        return grad

    return gradient


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    function, arrays = CASES[name]
    support.on_both(function, *arrays, tolerance=TOLERANCE)


@pytest.mark.parametrize("name", sorted(set(CASES) - WITHOUT_GRADIENT))
def test_gradients(name):
    function, arrays = CASES[name]
    for which, array in enumerate(arrays):
        if array.dtype == np.float32:
            support.on_both(gradient_of(function, which), *arrays, tolerance=(1e-3, 1e-3))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["Products: matmul", "Layers: softmax", "Layers: conv2d", "Reductions: mean"])
def test_half_types(name, dtype):
    function, arrays = CASES[name]
    support.on_both(function, *arrays, dtype=dtype, tolerance=(4e-2, 4e-2) if dtype == "bfloat16" else (5e-3, 5e-3))


def test_random_numbers():
    """Not the CPU's numbers, but numbers of the same distribution, the same again for the same seed."""
    with paddle.device.device_guard("mps"):
        paddle.seed(7)
        first = [paddle.randn([4000]), paddle.rand([4000]), paddle.randint(0, 10, [4000]), paddle.randperm(100)]
        paddle.seed(7)
        again = [paddle.randn([4000]), paddle.rand([4000]), paddle.randint(0, 10, [4000]), paddle.randperm(100)]
        other = paddle.randn([4000])
    for a, b in zip(first, again, strict=True):
        assert isinstance(a.place, paddle.MPSPlace)
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    normal, uniform, integers, permutation = (t.numpy() for t in first)
    assert abs(normal.mean()) < 0.08 and abs(normal.std() - 1) < 0.08
    assert 0 <= uniform.min() and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.03
    assert set(integers) == set(range(10))
    assert sorted(permutation) == list(range(100))
    assert (other.numpy() != normal).any()


def main():
    report = support.Report("Comprehensive MPS Kernel Test")
    for section, cases in SECTIONS.items():
        report.section(f"Testing {section}")
        for name, (function, arrays) in cases.items():
            report.case(name, function, *arrays, tolerance=TOLERANCE)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
