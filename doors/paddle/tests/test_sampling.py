# SPDX-License-Identifier: Apache-2.0
"""Draws from weights, of a vector as of a matrix, as distributions and generation of text make them."""

import numpy as np
import paddle
import support


def test_classes_of_a_vector():
    paddle.set_device("mps")
    paddle.seed(3)
    weights = paddle.to_tensor([0.0, 1.0, 3.0])
    drawn = paddle.multinomial(weights, 2000, replacement=True)
    assert drawn.shape == [2000] and drawn.dtype == paddle.int64
    np.testing.assert_allclose(np.bincount(drawn.numpy(), minlength=3) / 2000, [0, 0.25, 0.75], atol=0.05)
    assert sorted(paddle.multinomial(paddle.ones([5]), 5).tolist()) == [0, 1, 2, 3, 4]
    assert paddle.multinomial(paddle.ones([4, 5]), 2).shape == [4, 2]


def test_distributions_over_classes():
    paddle.set_device("mps")
    paddle.seed(3)
    drawn = paddle.distribution.Categorical(paddle.to_tensor([1.0, 1.0, 2.0])).sample([3000])
    assert isinstance(drawn.place, paddle.MPSPlace)
    assert set(drawn.flatten().tolist()) == {0, 1, 2}
    counts = paddle.distribution.Multinomial(10, paddle.to_tensor([0.2, 0.3, 0.5])).sample([500])
    support.compare(counts.sum(-1), np.full(500, 10.0), dtype="float32")
    np.testing.assert_allclose(counts.mean(0).numpy(), [2, 3, 5], atol=0.3)


def test_whole_numbers_in_place():
    paddle.set_device("mps")
    paddle.seed(3)
    for dtype in ("int32", "int64", "float32", "float64", "float16"):
        drawn = paddle.empty([4000], dtype).random_(-3, 5)
        assert str(drawn.dtype) == f"paddle.{dtype}" and isinstance(drawn.place, paddle.MPSPlace)
        values, counts = np.unique(support.to_numpy(drawn).astype("int64"), return_counts=True)
        assert values.tolist() == list(range(-3, 5))
        np.testing.assert_allclose(counts / 4000, 1 / 8, atol=0.03)
    assert float(paddle.empty([1000]).random_().max()) > 2**20
    x = paddle.ones([3])
    x.stop_gradient = False
    y = x * 2
    y.random_(0, 9)
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 0]
