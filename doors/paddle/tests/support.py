# SPDX-License-Identifier: Apache-2.0
"""What the tests share: strict mode, a comparison that says where it failed, and the report of those that are scripts.

In strict mode an op without a kernel for `mps` is an error. Paddle's default is to compute it on the CPU, which proves
nothing about the device; so the mode is set before Paddle is imported."""

import os
import subprocess
import sys

os.environ["FLAGS_enable_api_kernel_fallback"] = "0"

import numpy as np
import paddle

# Relative and absolute tolerance, in the type of the result. Kernels of both sides round once; transcendental functions may
# differ in the last bit or two.
TOLERANCE = {"float16": (2e-3, 2e-3), "bfloat16": (1.6e-2, 1.6e-2), "float32": (2e-5, 1e-5), "float64": (1e-12, 1e-12)}


def to_numpy(tensor):
    """The elements, where half types become float32, which holds all of them."""
    tensor = tensor.cpu()
    if tensor.dtype in (paddle.bfloat16, paddle.float16):
        tensor = tensor.astype("float32")
    return tensor.numpy()


def compare(actual, expected, dtype=None, tolerance=None):
    """Asserts that a tensor on the device equals one on the CPU, or an array; returns the largest difference."""
    assert isinstance(actual.place, paddle.MPSPlace), f"the result is on {actual.place}"
    dtype = dtype or str(actual.dtype).removeprefix("paddle.")
    if isinstance(expected, paddle.Tensor):
        assert actual.dtype == expected.dtype, (actual.dtype, expected.dtype)
        expected = to_numpy(expected)
    actual = to_numpy(actual)
    expected = np.asarray(expected)
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    rtol, atol = tolerance or TOLERANCE.get(dtype, (0, 0))
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)
    if actual.size == 0 or actual.dtype == bool:
        return 0.0
    with np.errstate(invalid="ignore"):
        difference = np.abs(actual.astype("float64") - expected.astype("float64"))
    return float(np.nanmax(np.where(np.isfinite(difference), difference, 0)))


def on_both(function, *arrays, dtype=None, tolerance=None):
    """Computes `function` of the arrays on the device and on the CPU, and compares; half types are computed in float32 on
    the CPU, whose kernels lack most of them. Returns the largest difference."""
    half = dtype in ("float16", "bfloat16")
    results = []
    for place in ("mps", "cpu"):
        with paddle.device.device_guard(place):
            tensors = [paddle.to_tensor(array, place=place) for array in arrays]
            if dtype:
                tensors = [t.astype(dtype) if t.is_floating_point() else t for t in tensors]
            if half and place == "cpu":
                tensors = [t.astype("float32") if t.is_floating_point() else t for t in tensors]
            results.append(function(*tensors))
    actual, expected = results
    if half and expected.dtype == paddle.float32:
        assert str(actual.dtype) == f"paddle.{dtype}", actual.dtype
        expected = to_numpy(expected)
    return compare(actual, expected, dtype, tolerance)


def with_gradients(place, function, arrays):
    """The results of `function` and the gradients of their weighted sum to all float and complex arrays, on a device, as numpy
    arrays. Complex results count as pairs."""
    with paddle.device.device_guard(place):
        tensors = [paddle.to_tensor(array, place=place, stop_gradient=array.dtype.kind not in "fc") for array in arrays]
        results = function(*tensors)
        results = [paddle.as_real(r) if r.is_complex() else r for r in (results if isinstance(results, (list, tuple)) else [results])]
        total = None
        for k, result in enumerate(results):
            if result.is_floating_point() and not result.stop_gradient:
                weights = np.random.default_rng(k).uniform(0.5, 1.5, result.shape)
                part = (result * paddle.to_tensor(weights, place=place).astype(result.dtype)).sum().astype("float64")
                total = part if total is None else total + part
        if total is not None:
            total.backward()
        gradients = [tensor.grad for tensor in tensors if tensor.grad is not None]
        return [to_numpy(tensor) for tensor in results + gradients]


def compare_with_gradients(function, *arrays, tolerance):
    """Results and gradients on the device and on the CPU."""
    expected = with_gradients("cpu", function, arrays)
    actual = with_gradients("mps", function, arrays)
    assert len(actual) == len(expected)
    for got, wanted in zip(actual, expected, strict=True):
        assert got.shape == wanted.shape and got.dtype == wanted.dtype, (got.shape, got.dtype, wanted.shape, wanted.dtype)
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


def run_python(code, *arguments, timeout=300, **environment):
    """Runs code in a new interpreter of the same environment; a variable that is None is removed."""
    env = {name: value for name, value in {**os.environ, **environment}.items() if value is not None}
    return subprocess.run(
        [sys.executable, *arguments, "-c", code], capture_output=True, text=True, timeout=timeout, env=env, check=False
    )


class Report:
    """The output of the tests that are scripts, in the words of the original."""

    LINE = "=" * 60

    def __init__(self, title):
        self.passed, self.failed = 0, []
        self.heading(title)
        print(f"✓ PaddlePaddle imported (version {paddle.__version__})" if "Quick" not in title else "✓ PaddlePaddle imported")
        if not (paddle.is_compiled_with_mps() and paddle.mps.is_available()):
            print("✗ MPS is not available")
            sys.exit(1)
        paddle.mps.set_device(0)
        print("✓ MPS available, device set to 0")

    def heading(self, title):
        print(f"{self.LINE}\n{title}\n{self.LINE}")

    def section(self, title):
        print()
        self.heading(title)

    def case(self, name, function, *arrays, **options):
        print(f"\n{name}:")
        try:
            difference = on_both(function, *arrays, **options)
        except Exception as error:  # the next case still runs
            self.failed.append(name)
            print(f"  ✗ Fail: {error}")
        else:
            self.passed += 1
            print(f"  ✓ Pass (max diff: {difference:.2e})")

    def finish(self):
        self.section("Summary")
        print(f"{self.passed} passed, {len(self.failed)} failed")
        for name in self.failed:
            print(f"  ✗ {name}")
        return 1 if self.failed else 0
