# SPDX-License-Identifier: Apache-2.0
"""Every call of kernel_cases.py on the device and on the CPU: results and gradients, in float32, float64 and float16."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import numpy as np
import paddle
import pytest
import support  # noqa: F401  strict mode, before Paddle is imported
from kernel_cases import CASES

TOLERANCE = {"float32": 1e-4, "float64": 1e-9, "float16": 2e-2}
# What Paddle's CPU has in float32 alone, or computes otherwise at ties and poles of half types.
ONLY_FLOAT32 = {"bn_eval", "fused_rms_norm", "fused_layer_norm", "roi_align", "roi_pool", "yolo_box", "accuracy", "nms", "box_decode"}
NOT_HALF = ONLY_FLOAT32 | {"vander_of_complex", "weighted_bincount", "tan", "topk", "i0", "i1", "i0e", "i1e", "solve", "tri_solve", "svdvals", "matrix_power", "dist", "qr",
                           "affine_grid", "channel_shuffle", "cholesky", "inverse", "det", "eigvalsh",
                           "slogdet", "complex", "complex_multiply", "complex_numbers", "complex_conj", "irfft_lengths", "box_encode",
                           "box_decode", "prior_box", "ctc", "histogram", "viterbi", "viterbi_untagged", "fused_rms_norm", "fused_layer_norm", "median_min",
                           *(f"hsigmoid_{n}" for n in (2, 3, 8, 9, "of_a_tree")),
                           "svdvals_gradient", "cholesky_gradient", "affine_grid_gradient",
                           *(f"{kind}_{norm}" for kind in ("fft", "rfft", "rfft_odd", "irfft") for norm in ("backward", "ortho", "forward"))}
# Numbers that Paddle's CPU keeps in float32 for any type: coordinates, weights, attributes.
NUMBERS_IN_FLOAT32 = {"arange_of_rounded_steps", "selu", "norm3", "avg_pool", "avg_pool_i", "adaptive_avg", "prelu", "interp_bilinear", "interp_s_bilinear",
                      "interp_bicubic", "interp_s_bicubic", "interp_1d", "label_smooth", "prior_box",
                      "dropout_eval_downscale_in_infer", "histogram", "lp_pool_1d", *(f"lp_pool_{p}" for p in (1, 2, 3))}


def computed(place, function, arrays, grad, dtype):
    """The results and the gradients to all float inputs, of the results' weighted sum."""
    paddle.set_device(place)
    tensors = []
    for array in arrays:
        tensor = paddle.to_tensor(array.astype(dtype) if array.dtype == np.float32 else array)
        tensor.stop_gradient = not (grad and array.dtype == np.float32)
        tensors.append(tensor)
    out = function(*tensors)
    outs = list(out) if isinstance(out, (list, tuple)) else [out]
    results = [o.numpy() for o in outs]
    total = None
    for k, o in enumerate(outs):
        if o.is_floating_point() and not o.stop_gradient:
            weights = np.random.default_rng(k).uniform(0.5, 1.5, o.shape).astype(o.numpy().dtype)
            part = (o * paddle.to_tensor(weights)).sum()
            total = part if total is None else total + part
    if total is not None:
        total.backward()
        results += [t.grad.numpy() for t in tensors if t.grad is not None]
    return results


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("case", CASES, ids=[f"{place}_{case[0]}" for place, case in enumerate(CASES)])
def test_case(case, dtype):
    name, function, makers, grad = case
    if dtype == "float16" and name in NOT_HALF or dtype == "float64" and name in ONLY_FLOAT32:
        pytest.skip("not in this type")
    rng = np.random.default_rng(len(name))
    arrays = [make(rng) for make in makers]
    expected = computed("cpu", function, arrays, grad, "float32" if dtype == "float16" else dtype)
    actual = computed("mps", function, arrays, grad, dtype)
    assert len(actual) == len(expected)
    for got, wanted in zip(actual, expected):
        assert got.shape == wanted.shape
        if dtype != "float16":
            assert got.dtype == wanted.dtype
        if got.dtype != bool:
            got, wanted = got.astype("float64"), wanted.astype("float64")
        tolerance = 1e-5 if dtype == "float64" and name in NUMBERS_IN_FLOAT32 else TOLERANCE[dtype]
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)
