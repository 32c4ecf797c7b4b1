# SPDX-License-Identifier: Apache-2.0
"""paddle.linalg: decompositions, solvers and determinants, with their gradients."""

import numpy as np
import paddle
import pytest
import support

linalg = paddle.linalg
TOLERANCE = {"float32": 5e-3, "float64": 1e-6}


def positive(x):
    return paddle.matmul(x, paddle.linalg.matrix_transpose(x)) + paddle.eye(x.shape[-1], dtype=x.dtype) * 3


def sizes(parts):
    """Vectors are determined up to their signs."""
    return [part * part for part in parts]


CASES = {
    "svd": (lambda x: sizes(linalg.svd(x)), (4, 3)),
    "svd wide": (lambda x: sizes(linalg.svd(x)), (3, 5)),
    "svd batch": (lambda x: sizes(linalg.svd(x)), (2, 3, 4)),
    "svd full": (lambda x: linalg.svd(x, full_matrices=True)[1], (4, 3)),
    "qr": (linalg.qr, (4, 3)),
    "qr wide": (linalg.qr, (3, 5)),
    "qr complete": (lambda x: linalg.qr(x, mode="complete"), (3, 5)),
    "eigh": (lambda x: sizes(linalg.eigh(positive(x))), (4, 4)),
    "eigh upper": (lambda x: linalg.eigh(positive(x), UPLO="U")[0], (4, 4)),
    "eigvalsh": (lambda x: linalg.eigvalsh(positive(x)), (4, 4)),
    "eig": (lambda x: [paddle.sort(paddle.abs(linalg.eig(x)[0])), paddle.abs(linalg.eig(x)[1]).sum()], (4, 4)),
    "lu": (lambda x: linalg.lu(x)[:2], (4, 4)),
    "lu unpacked": (lambda x: linalg.lu_unpack(*linalg.lu(x)[:2]), (2, 4, 4)),
    "lu solve": (lambda x, b: linalg.lu_solve(b, *linalg.lu(x)[:2]), (4, 4), (4, 2)),
    "slogdet": (linalg.slogdet, (2, 3, 3)),
    "det": (linalg.det, (2, 3, 3)),
    "inverse": (linalg.inv, (2, 3, 3)),
    "pinv": (linalg.pinv, (4, 3)),
    "cholesky solve": (lambda x, b: linalg.cholesky_solve(b, linalg.cholesky(positive(x))), (4, 4), (4, 2)),
    "matrix power": (lambda x: [linalg.matrix_power(x, n) for n in (3, 0, -2)], (3, 3)),
    "rank": (lambda x: [linalg.matrix_rank(x), linalg.matrix_rank(x, tol=0.5), linalg.matrix_rank(x, atol=0.3, rtol=0.1)], (2, 4, 4)),
    "rank hermitian": (lambda x: linalg.matrix_rank(positive(x), hermitian=True), (4, 4)),
    "least squares": (lambda a, b: [paddle.linalg.lstsq(a, b, driver=d)[0] for d in ("gels", "gelsy", "gelsd", "gelss")], (5, 3), (5, 2)),
    "condition": (lambda x: [linalg.cond(x, p=p) for p in (None, "fro", "nuc", 1)], (4, 4)),
    "renorm": (lambda x: paddle.renorm(x, 2.0, 0, 1.0), (3, 4)),
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", CASES)
def test_decomposition(name, dtype):
    function, *shapes = CASES[name]
    random = np.random.default_rng(3)
    arrays = [random.uniform(-1.5, 1.5, shape).astype(dtype) for shape in shapes]
    if name == "least squares":  # has no gradient
        arrays = [np.asarray(array) for array in arrays]
        function = paddle.no_grad()(function)
    support.compare_with_gradients(function, *arrays, tolerance=TOLERANCE[dtype])


def test_all_results_of_least_squares():
    random = np.random.default_rng(0)
    for rows, columns in ((5, 3), (3, 5)):
        a, b = random.standard_normal((rows, columns)), random.standard_normal((rows, 2))
        for driver in ("gels", "gelsy", "gelsd", "gelss"):
            results = [linalg.lstsq(paddle.to_tensor(a, place=p), paddle.to_tensor(b, place=p), driver=driver) for p in ("mps", "cpu")]
            for actual, expected in zip(*results, strict=True):
                support.compare(actual, expected, tolerance=(1e-9, 1e-9))


def slopes(function, array, step=1e-6):
    """Central differences."""
    result = np.zeros_like(array)
    for place in np.ndindex(array.shape):
        moved = [array.copy(), array.copy()]
        moved[0][place] += step
        moved[1][place] -= step
        result[place] = (function(moved[0]) - function(moved[1])) / (2 * step)
    return result


# Gradients that Paddle's CPU has otherwise: what is compared with is the slope.
@pytest.mark.parametrize("upper", [False, True])
def test_gradient_of_transposed_triangular_solve(upper):
    random = np.random.default_rng(1)
    a, b = random.uniform(-1, 1, (3, 3)), random.uniform(-1, 1, (3, 2))

    def total(a):
        a, y = (paddle.to_tensor(array, place="mps", stop_gradient=False) for array in (a, b))
        return a, linalg.triangular_solve(a, y, upper=upper, transpose=True, unitriangular=True).sum()

    x, loss = total(a)
    loss.backward()
    support.compare(x.grad, slopes(lambda a: float(total(a)[1]), a), tolerance=(1e-6, 1e-6))


def test_gradient_of_eigenvalues_of_batches():
    random = np.random.default_rng(3)
    x, weights = random.uniform(-1.5, 1.5, (2, 3, 3)), random.uniform(0.5, 1.5, (2, 3))

    def total(x):
        with paddle.device.device_guard("mps"):
            x = paddle.to_tensor(x, stop_gradient=False)
            return x, (linalg.eigvalsh(positive(x)) * paddle.to_tensor(weights)).sum()

    given, loss = total(x)
    loss.backward()
    support.compare(given.grad, slopes(lambda x: float(total(x)[1]), x), tolerance=(1e-6, 1e-6))


def test_gradient_of_spectral_norm():
    random = np.random.default_rng(2)
    x, weights = random.uniform(-1, 1, (2, 4, 3, 2))

    def total(x, steps):
        with paddle.device.device_guard("mps"):
            x = paddle.to_tensor(x, stop_gradient=False)
            layer = paddle.nn.SpectralNorm([4, 3, 2], dim=1, power_iters=steps, dtype="float64")
            layer.weight_u.set_value(np.linspace(0.1, 1, 3))
            layer.weight_v.set_value(np.linspace(0.2, 1, 8))
            return x, (layer(x) * paddle.to_tensor(weights)).sum()

    given, loss = total(x, 40)  # so that the vectors are those of the largest value, whose slope is taken
    loss.backward()
    support.compare(given.grad, slopes(lambda x: float(total(x, 40)[1]), x), tolerance=(1e-5, 1e-5))
