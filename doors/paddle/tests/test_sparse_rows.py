# SPDX-License-Identifier: Apache-2.0
"""Embeddings whose gradients hold only the rows that were looked up: the steps of optimizers are those of full gradients on
the CPU. (Paddle's own CPU Adam differs from itself there: its step for such gradients is not that for full ones; and its
AdamW fails for them on any device.)"""

import numpy as np
import paddle
import pytest
import support

OPTIMIZERS = {
    "sgd": lambda parameters: paddle.optimizer.SGD(0.1, parameters=parameters),
    "clipped": lambda parameters: paddle.optimizer.SGD(0.1, parameters=parameters, grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0)),
    "momentum": lambda parameters: paddle.optimizer.Momentum(0.1, parameters=parameters),
    "adam": lambda parameters: paddle.optimizer.Adam(0.1, parameters=parameters),
}


def trained(place, make_optimizer, sparse, padding=None):
    paddle.set_device(place)
    start = paddle.nn.initializer.Assign(np.arange(40).reshape(10, 4).astype("float32") / 10)
    table = paddle.nn.Embedding(10, 4, sparse=sparse, padding_idx=padding, weight_attr=paddle.ParamAttr(initializer=start))
    optimizer = make_optimizer(table.parameters())
    for step in range(3):
        ids = paddle.to_tensor(np.array([[1, 3, 3], [7, 1, step]]))
        (table(ids) ** 2).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
    return table.weight


@pytest.mark.parametrize("padding", [None, 3])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_those_of_full_gradients(name, padding):
    expected = support.to_numpy(trained("cpu", OPTIMIZERS[name], False, padding))
    support.compare(trained("mps", OPTIMIZERS[name], True, padding), expected, tolerance=(1e-5, 1e-5))


def lazy_adam(steps, rate=0.1, beta1=0.9, beta2=0.999, epsilon=1e-8):
    """Adam that leaves rows without a gradient, and their moments, as they are."""
    table = np.arange(40).reshape(10, 4) / 10
    m, v = np.zeros_like(table), np.zeros_like(table)
    for step in range(steps):
        gradient = np.zeros_like(table)
        ids = np.array([1, 3, 3, 7, 1, step])
        np.add.at(gradient, ids, 2 * table[ids])
        rows = np.unique(ids)
        m[rows] = beta1 * m[rows] + (1 - beta1) * gradient[rows]
        v[rows] = beta2 * v[rows] + (1 - beta2) * gradient[rows] ** 2
        t = step + 1
        table[rows] -= rate * (m[rows] / (1 - beta1**t)) / (np.sqrt(v[rows] / (1 - beta2**t)) + epsilon)
    return table


def test_lazy_mode_moves_the_rows_of_the_gradient_alone():
    got = trained("mps", lambda parameters: paddle.optimizer.Adam(0.1, parameters=parameters, lazy_mode=True), True)
    support.compare(got, lazy_adam(3), tolerance=(1e-5, 1e-5))


def twice(table):
    return (table(paddle.to_tensor([1, 2, 2])) ** 2).sum() + (table(paddle.to_tensor([2, 5])) ** 3).sum()


def rows_first(table):
    return (table(paddle.to_tensor([1, 2])) * paddle.matmul(paddle.ones([2, 10]), table.weight)).sum()


def full_first(table):
    full = paddle.matmul(table.weight, paddle.ones([4, 3])).sum()
    return full + (table(paddle.to_tensor([1, 2, 2])) ** 2).sum()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("backwards", [1, 2])
@pytest.mark.parametrize("loss", [twice, rows_first, full_first])
def test_gradients_that_meet(loss, backwards, dtype):
    grads = {}
    for place, sparse in (("cpu", False), ("mps", True)):
        paddle.set_device(place)
        start = paddle.nn.initializer.Assign(np.arange(40).reshape(10, 4) / 10)
        paddle.set_default_dtype(dtype)
        table = paddle.nn.Embedding(10, 4, sparse=sparse, weight_attr=paddle.ParamAttr(initializer=start))
        for _ in range(backwards):
            loss(table).backward()
        paddle.set_default_dtype("float32")
        optimizer = paddle.optimizer.SGD(1.0, parameters=table.parameters())
        before = support.to_numpy(table.weight)
        optimizer.step()
        grads[place] = before - support.to_numpy(table.weight)
    np.testing.assert_allclose(grads["mps"], grads["cpu"], rtol=1e-5, atol=1e-5)


def test_an_id_outside_the_table():
    paddle.set_device("mps")
    table = paddle.nn.Embedding(4, 2, sparse=True)
    with pytest.raises(Exception):
        table(paddle.to_tensor([5])).sum().backward()
