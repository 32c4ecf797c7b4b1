# SPDX-License-Identifier: Apache-2.0
"""Gradients of gradients: paddle.grad with create_graph, Hessians, penalties on gradients."""

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest
import support

CASES = {
    "tanh": paddle.tanh,
    "sigmoid": F.sigmoid,
    "sin": paddle.sin,
    "cos": paddle.cos,
    "exp": paddle.exp,
    "log": lambda x: paddle.log(x.abs() + 1),
    "sqrt": lambda x: paddle.sqrt(x.abs() + 1),
    "rsqrt": lambda x: paddle.rsqrt(x.abs() + 1),
    "square": paddle.square,
    "relu": lambda x: F.relu(x) * x,
    "leaky_relu": lambda x: F.leaky_relu(x) * x,
    "elu": F.elu,
    "celu": lambda x: F.celu(x, 0.7),
    "softplus": lambda x: F.softplus(x, 2.0),
    "abs": lambda x: x.abs() * x,
    "power": lambda x: x**3,
    "divide": lambda x: x / (x * x + 1),
    "divided by a row": lambda x: x / (x[:1] * x[:1] + 1),
    "matmul": lambda x: x @ x.T @ x,
    "broadcast": lambda x: x * x.mean(axis=1, keepdim=True) - x[0],
    "convolution": lambda x: F.conv2d(x.reshape([1, 1, 3, 4]) ** 2, x.reshape([1, 1, 3, 4])[:, :, :2, :2], padding=1),
    "average": lambda x: F.avg_pool2d(x.reshape([1, 1, 3, 4]), 2) ** 2,
    "instance_norm": lambda x: F.instance_norm(x.reshape([1, 2, 2, 3]) * x.reshape([1, 2, 2, 3])),
    "batch_norm": lambda x: F.batch_norm(x * x, paddle.zeros([4], x.dtype), paddle.ones([4], x.dtype), training=True),
}


@pytest.mark.parametrize("name", CASES)
def test_second(name):
    def twice(x):
        (gradient,) = paddle.grad(CASES[name](x).sum(), x, create_graph=True)
        return gradient

    x = np.random.default_rng(0).standard_normal((3, 4))
    support.compare_with_gradients(twice, x, tolerance=1e-5 if name in ("instance_norm", "batch_norm", "leaky_relu", "softplus", "celu") else 1e-7)


THIRD = {
    **{name: CASES[name] for name in ("tanh", "sigmoid", "sin", "cos", "power")},
    "product": lambda x: x * x.tanh(),
    "product of a row": lambda x: x.reshape([5, 1]) * x * x,
    "matmul": lambda x: paddle.matmul(x.reshape([5, 1]), x.reshape([1, 5])) @ x,
    "matmul transposed": lambda x: paddle.matmul(x.reshape([1, 5]), x.reshape([1, 5]), transpose_x=True) @ x,
}


@pytest.mark.parametrize("name", THIRD)
def test_third(name):
    results = []
    for place in ("cpu", "mps"):
        with paddle.device.device_guard(place):
            x = paddle.to_tensor(np.random.default_rng(1).standard_normal(5), stop_gradient=False)
            y = THIRD[name](x) * x
            for k in range(3):
                (y,) = paddle.grad(y.sum(), x, create_graph=k < 2)
            results.append(y.numpy())
    np.testing.assert_allclose(results[1], results[0], rtol=1e-9, atol=1e-9)


def test_hessian():
    for place in ("cpu", "mps"):
        with paddle.device.device_guard(place):
            x = paddle.to_tensor(np.linspace(-1, 1, 3), stop_gradient=False)
            hessian = paddle.autograd.hessian((paddle.tanh(x) * x).sum(), x)[:].numpy()
            t = np.tanh(np.linspace(-1, 1, 3))
            slope = 1 - t * t
            np.testing.assert_allclose(hessian, np.diag(2 * slope - 2 * t * slope * np.linspace(-1, 1, 3)), rtol=1e-9, atol=1e-12)
