# SPDX-License-Identifier: Apache-2.0
"""Mistakes are Python errors that say what is wrong, and the device works afterwards."""

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest


@pytest.fixture(autouse=True)
def _works_afterwards(mps):
    yield
    x = paddle.ones([2, 2])
    np.testing.assert_array_equal((x + x).numpy(), np.full((2, 2), 2))


def test_shapes_that_do_not_match():
    with pytest.raises(ValueError):
        paddle.matmul(paddle.ones([2, 3]), paddle.ones([2, 3]))
    with pytest.raises(ValueError):
        paddle.add(paddle.ones([2, 3]), paddle.ones([4]))
    with pytest.raises(ValueError):
        paddle.concat([paddle.ones([2, 3]), paddle.ones([2])])
    with pytest.raises(ValueError):
        paddle.ones([2, 3]).reshape([4])


def test_types_without_a_kernel():
    text = paddle.ones([2], dtype="float32")
    with pytest.raises((RuntimeError, ValueError, TypeError)):
        paddle.nn.functional.conv2d(paddle.ones([1, 1, 4, 4], dtype="int64"), paddle.ones([1, 1, 3, 3], dtype="int64"))
    with pytest.raises((RuntimeError, ValueError, TypeError)):
        paddle.matmul(paddle.ones([2, 2], dtype="bool"), paddle.ones([2, 2], dtype="bool"))
    assert float(text.sum()) == 2


def test_indices_outside():
    with pytest.raises((IndexError, ValueError, RuntimeError)):
        paddle.nn.functional.embedding(paddle.to_tensor([5, 99]), paddle.ones([10, 4])).numpy()
    with pytest.raises((IndexError, ValueError, RuntimeError)):
        paddle.gather(paddle.ones([4, 2]), paddle.to_tensor([7])).numpy()
    with pytest.raises((IndexError, ValueError)):
        paddle.ones([3])[5]


def test_axes_outside():
    for use in (lambda x: x.sum(axis=5), lambda x: paddle.nn.functional.softmax(x, axis=3), lambda x: paddle.transpose(x, [0, 2])):
        with pytest.raises((ValueError, IndexError)):
            use(paddle.ones([2, 2]))


def test_more_memory_than_there_is():
    with pytest.raises(MemoryError, match="Out of memory error on mps:0"):
        paddle.empty([1 << 42], dtype="float32")


def test_negative_ids():
    with pytest.raises(ValueError, match="out of range"):
        paddle.nn.functional.embedding(paddle.to_tensor([1, -1]), paddle.ones([10, 4]))
    for class_number in (-1, 3):
        with pytest.raises(ValueError, match="out of range"):
            paddle.nn.functional.one_hot(paddle.to_tensor([1, class_number]), 3)


def test_views_outside_of_their_memory():
    x = paddle.ones([2, 3])
    outside = paddle.as_strided(x, [100], [1 << 20])
    with pytest.raises(ValueError, match=r"\[contiguous\].*outside of its memory"):
        outside.sum()
    with pytest.raises(ValueError, match="outside of its memory"):
        outside[:] = paddle.zeros([100])
    assert float(x.sum()) == 6
    np.testing.assert_array_equal(paddle.as_strided(x, [2, 2], [3, 1], 4).numpy(), np.ones([2, 2]))


def complained(use):
    """What the mistake raised, which must be one of Python's exceptions."""
    with pytest.raises((ValueError, RuntimeError, TypeError, IndexError, MemoryError, NotImplementedError)) as caught:
        use()
    return str(caught.value)


@pytest.mark.parametrize(
    "op, use",
    [
        ("conv2d", lambda: F.conv2d(paddle.ones([1, 1, 4, 4], dtype="int64"), paddle.ones([1, 1, 3, 3], dtype="int64"))),
        ("matmul", lambda: paddle.matmul(paddle.ones([2, 2], dtype="bool"), paddle.ones([2, 2], dtype="bool"))),
        ("cholesky", lambda: paddle.linalg.cholesky(paddle.ones([2, 2], dtype="float16"))),
        ("embedding", lambda: F.embedding(paddle.to_tensor([5, 99]), paddle.ones([10, 4]))),
        ("gather", lambda: paddle.gather(paddle.ones([4, 2]), paddle.to_tensor([7]))),
        ("one_hot", lambda: F.one_hot(paddle.to_tensor([1, 7]), 3)),
        ("cross_entropy_with_softmax", lambda: F.cross_entropy(paddle.ones([2, 3]), paddle.to_tensor([1, 9]))),
        ("take_along_axis", lambda: paddle.take_along_axis(paddle.ones([2, 3]), paddle.to_tensor([[0, 9]]), 1)),
        ("full", lambda: paddle.ones([1 << 42], dtype="float32")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_op_is_named(op, use):
    assert op in complained(use)
