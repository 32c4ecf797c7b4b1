# SPDX-License-Identifier: Apache-2.0
"""Attention by the names that have no kernel on Paddle's CPU, beside its definition."""

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest
import support
from paddle.nn.functional.flash_attention import flash_attention


def later(rows, columns):
    return paddle.to_tensor(np.triu(np.full((rows, columns), -np.inf, dtype="float32"), 1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_softmax_below_the_diagonal(dtype):
    array = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype("float32")

    def computed(place, function):
        with paddle.device.device_guard(place):
            x = paddle.to_tensor(array, place=place).astype(dtype if place == "mps" else "float32")
            x.stop_gradient = False
            y = function(x)
            (y * y * paddle.arange(8, dtype=y.dtype)).sum().backward()
            return support.to_numpy(y), support.to_numpy(x.grad)

    expected = computed("cpu", lambda x: F.softmax(x + later(8, 8)))
    actual = computed("mps", paddle.incubate.softmax_mask_fuse_upper_triangle)
    assert (actual[0][..., np.triu_indices(8, 1)[0], np.triu_indices(8, 1)[1]] == 0).all()
    tolerance = {"float16": 1e-2, "bfloat16": 5e-2}.get(dtype, 1e-5)
    for got, wanted in zip(actual, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("causal", [False, True])
def test_flash_attention(causal):
    arrays = [np.random.default_rng(k).standard_normal((2, 6, 2, 8)).astype("float32") for k in range(3)]

    def by_definition(q, k, v):
        weights = paddle.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(8)
        return paddle.einsum("bhqk,bkhd->bqhd", F.softmax(weights + later(6, 6) if causal else weights), v)

    expected = support.with_gradients("cpu", by_definition, arrays)
    actual = support.with_gradients("mps", lambda q, k, v: flash_attention(q, k, v, causal=causal)[0], arrays)
    for got, wanted in zip(actual, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
