# SPDX-License-Identifier: Apache-2.0
"""Gradients where a function has none, or several: equal elements and kinks. Paddle's CPU has a habit for each. Not here:
which of equal elements `kthvalue`, `median` and `topk` take, which no page of Paddle says, and products with a zero, whose
gradient is NaN on the CPU."""

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest
import support

ROWS = np.array([[1, 1, 0, 1], [0, 0, 0, 0], [2, 3, 3, 2]], dtype="float32")
LEFT, RIGHT = np.array([1, 2, 3, -1], dtype="float32"), np.array([1, 3, 2, -1], dtype="float32")
STEPS = np.array([-3, -1, -0.5, 0, 0.5, 1, 3, 6], dtype="float32")
FLAT = np.ones((1, 2, 6, 6), dtype="float32")
CASES = {
    **{
        f"{name} {axis}": (lambda x, name=name, axis=axis: getattr(paddle, name)(x, axis=axis), ROWS)
        for name in ("max", "min", "amax", "amin")
        for axis in (None, 0, 1, [0, 1])
    },
    **{name: (getattr(paddle, name), LEFT, RIGHT) for name in ("maximum", "minimum", "fmax", "fmin")},
    "maximum of a row": (paddle.maximum, ROWS, ROWS[1]),
    "minimum of a row": (paddle.minimum, ROWS, ROWS[1]),
    **{
        name: (getattr(F, name), STEPS)
        for name in (
            *("relu", "relu6", "leaky_relu", "elu", "selu", "celu", "hardtanh", "hardswish", "hardsigmoid", "hardshrink", "softshrink"),
            *("thresholded_relu", "softplus", "softsign", "tanhshrink", "silu", "mish"),
        )
    },
    "abs": (paddle.abs, STEPS),
    "clip": (lambda x: paddle.clip(x, -1, 1), STEPS),
    "clip from below": (lambda x: paddle.clip(x, min=0.5), STEPS),
    "prelu": (lambda x: F.prelu(x, paddle.to_tensor([0.1], dtype=x.dtype)), STEPS),
    "maxout": (lambda x: F.maxout(x, 2), FLAT),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1), FLAT),
    "max_pool2d with places": (lambda x: F.max_pool2d(x, 2, return_mask=True)[0], FLAT),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, 4), FLAT),
    "sort": (paddle.sort, ROWS),
    "sort down": (lambda x: paddle.sort(x, descending=True), ROWS),
    "cummax": (lambda x: paddle.cummax(x, axis=1)[0], ROWS),
    "cummin": (lambda x: paddle.cummin(x, axis=1)[0], ROWS),
    "largest size": (lambda x: paddle.norm(x, float("inf"), axis=1), ROWS),
    "sum of sizes": (lambda x: paddle.norm(x, 1, axis=1), ROWS),
    "length": (lambda x: paddle.norm(x, 2, axis=1), ROWS),
    "cumprod": (lambda x: paddle.cumprod(x, dim=1), ROWS),
    "l1_loss": (lambda x: F.l1_loss(x, paddle.zeros([8], x.dtype)), STEPS),
    "smooth_l1_loss": (lambda x: F.smooth_l1_loss(x, paddle.zeros([8], x.dtype)), STEPS),
    "round": (paddle.round, STEPS),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_gradients(name, dtype):
    function, *arrays = CASES[name]
    support.compare_with_gradients(function, *(array.astype(dtype) for array in arrays), tolerance=1e-6)
