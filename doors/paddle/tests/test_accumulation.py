# SPDX-License-Identifier: Apache-2.0
"""Gradients of a leaf that come in several parts."""

import numpy as np
import paddle
import pytest
import support


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_transposed_gradients(dtype):
    random = np.random.default_rng(0)
    x = paddle.to_tensor(random.standard_normal((3, 6, 4)).astype(dtype), place="mps", stop_gradient=False)
    expected = np.zeros(x.shape, dtype)
    for k in range(4):
        weights = random.standard_normal((6, 3, 4)).astype(dtype)
        if k == 2:
            (x * paddle.to_tensor(weights.transpose(1, 0, 2).copy(), place="mps")).sum().backward()
        else:
            (x.transpose([1, 0, 2]) * paddle.to_tensor(weights, place="mps")).sum().backward()
        expected += weights.transpose(1, 0, 2)
        support.compare(x.grad, expected, tolerance=(1e-6, 1e-6))


def test_a_weight_that_is_used_transposed_too():
    def trained(place):
        with paddle.device.device_guard(place):
            table = paddle.create_parameter([7, 4], "float64", default_initializer=paddle.nn.initializer.Assign(np.linspace(-1, 1, 28).reshape(7, 4)))
            for _ in range(3):
                hidden = paddle.nn.functional.embedding(paddle.to_tensor([[1, 2], [6, 1]]), table)
                paddle.nn.functional.cross_entropy(hidden @ table.T, paddle.to_tensor([[2, 3], [1, 0]])).backward()
            return table.grad

    support.compare(trained("mps"), trained("cpu"), tolerance=(1e-9, 1e-9))


# The value needs no gradient: nothing asks for one.
def test_gradient_through_an_assignment_of_a_constant():
    x = paddle.to_tensor(np.ones((3, 4), "float32"), place="mps", stop_gradient=False)
    y = x * 2
    y[0] = paddle.to_tensor(np.arange(4, dtype="float32"), place="mps")
    y[1, 1] = 3.0
    (y * y).sum().backward()
    expected = np.full((3, 4), 8, "float32")
    expected[0] = expected[1, 1] = 0
    support.compare(x.grad, expected)
