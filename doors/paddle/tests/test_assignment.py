# SPDX-License-Identifier: Apache-2.0
"""Assignments to parts of tensors: gradients, and copies between views of different strides and shapes."""

import numpy as np
import paddle
import pytest
import support

INDICES = {
    "rows": lambda: np.array([3, 0]),
    "pairs": lambda: (np.array([3, 0]), np.array([1, -1])),
    "second axis": lambda: (slice(None), np.array([2, 0])),
    "mask": lambda: np.array([False, True, False, True, False]),
}


def on_device(index):
    if isinstance(index, tuple):
        return tuple(on_device(part) for part in index)
    return paddle.to_tensor(index) if isinstance(index, np.ndarray) else index


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", INDICES)
def test_gradients_of_indexed_assignment(name, dtype):
    paddle.set_device("mps")
    random = np.random.default_rng(0)
    index = INDICES[name]()
    x, weights = random.standard_normal((2, 5, 4, 3)).astype(dtype)
    value = random.standard_normal(x[index].shape).astype(dtype)
    given = [paddle.to_tensor(array, stop_gradient=False) for array in (x, value)]
    y = given[0] * 1
    y[on_device(index)] = given[1]
    (y * paddle.to_tensor(weights)).sum().backward()
    expected = x.copy()
    expected[index] = value
    support.compare(y.detach(), expected)
    to_x = weights.copy()
    to_x[index] = 0
    support.compare(given[0].grad, to_x)
    support.compare(given[1].grad, weights[index])


def test_a_strided_tensor_into_a_view_with_one_more_axis():
    paddle.set_device("mps")
    x = np.arange(12, dtype="float32").reshape(3, 4)
    y = paddle.zeros([5, 4, 3])
    y[2:3].copy_(paddle.to_tensor(x).t(), True)
    expected = np.zeros([5, 4, 3], dtype="float32")
    expected[2] = x.T
    support.compare(y, expected)


def test_more_elements_than_the_view_has():
    paddle.set_device("mps")
    y = paddle.zeros([3, 5]).t()
    with pytest.raises(ValueError, match="15 elements do not fit into a view of 3"):
        y[2:3].copy_(paddle.ones([5, 3]).t(), True)
    assert float(y.sum()) == 0


def test_a_single_element_everywhere():
    paddle.set_device("mps")
    y = paddle.zeros([4, 3]).t()
    y[1] = paddle.to_tensor([2.0])
    support.compare(y.contiguous(), [[0] * 4, [2] * 4, [0] * 4])
