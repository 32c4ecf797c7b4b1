# SPDX-License-Identifier: Apache-2.0
"""Complex numbers, with gradients."""

import numpy as np
import paddle
import pytest
import support

TOLERANCE = {"complex64": 1e-3, "complex128": 1e-7}
linalg = paddle.linalg
UNARY = """abs angle acos acosh asin asinh atan atanh cos cosh sin sinh tan tanh exp expm1 log log2 log10 log1p sqrt square
reciprocal neg sign conj real imag isnan isinf isfinite cumsum sum mean""".split()


def put(z):
    y = z * 1
    y[0] = 1 + 2j
    y[:, 1] = y[:, 0]
    return y


def hermitian(z):
    return paddle.matmul(z, z.T.conj()) + (paddle.eye(3) * 3).astype(z.dtype)


CASES = {
    "sigmoid": (paddle.nn.functional.sigmoid, 1),
    "silu": (paddle.nn.functional.silu, 1),
    "powers": (lambda z: [z**2, z**3, paddle.pow(z, 0.5)], 1),
    "arithmetic": (lambda z, y: [z + y, z - y, z * y, z / y, z @ y, z * 2.5 + 1j * y], 2),
    "compared": (lambda z, y: [z == y, z != y, paddle.isclose(z, z + 1e-9)], 2),
    "put": (put, 1),
    "moved": (lambda z: [z.T, z[1:, ::2], paddle.concat([z, z * 2]), paddle.flip(z, [0]), paddle.roll(z, 1), paddle.tril(z)], 1),
    "picked": (lambda z: [z[paddle.to_tensor([1, 0])], paddle.gather(z, paddle.to_tensor([2, 0])), paddle.trace(z)], 1),
    "padded": (lambda z: paddle.nn.functional.pad(z, [1, 1, 0, 1]), 1),
    "products": (lambda z: [paddle.kron(z, z), paddle.dot(z[0], z[1]), paddle.einsum("ij,kj->ik", z, z), paddle.cross(z, z * 2)], 1),
    "norms": (lambda z: [linalg.norm(z), paddle.mean(z, axis=1)], 1),
    "inverse": (lambda z: [linalg.inv(z), linalg.det(z)], 1),
    "eigh": (lambda z: [paddle.abs(part) for part in linalg.eigh(hermitian(z))], 1),
    "eigvalsh": (lambda z: linalg.eigvalsh(hermitian(z)), 1),
    "svd": (lambda z: [paddle.abs(part) for part in linalg.svd(z)], 1),
    "triangular": (lambda z, y: linalg.triangular_solve(z, y), 2),
    "rank": (lambda z: linalg.matrix_rank(z), 1),
    "frames": (lambda z: paddle.signal.frame(z, 2, 1), 1),
    "spectrum": (lambda z: [paddle.fft.fft(z), paddle.fft.ifft2(z), paddle.fft.irfft(z)], 1),
    **{name: (getattr(paddle, name), 1) for name in UNARY},
}


def numbers(dtype, seed=0):
    random = np.random.default_rng(seed)
    return (random.uniform(0.3, 1.2, (3, 3)) + 1j * random.uniform(0.3, 1.2, (3, 3))).astype(dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", CASES)
def test_complex(name, dtype):
    function, count = CASES[name]
    support.compare_with_gradients(function, *(numbers(dtype, k) for k in range(count)), tolerance=TOLERANCE[dtype])


# Gradients that Paddle's CPU leaves without the conjugate that its others have: what is compared with are slopes.
SLOPES = {
    "prod": lambda z: z.prod(),
    "pow": lambda z: z ** paddle.to_tensor(np.array([[0.5 + 0.3j, 1.2, -0.7j]]), place=z.place),
    "matrix power": lambda z: linalg.matrix_power(z, 3),
    "eig": lambda z: paddle.abs(linalg.eig(z)[0]),
    "slogdet": lambda z: linalg.slogdet(z),
    "softsign": paddle.nn.functional.softsign,
}


@pytest.mark.parametrize("name", SLOPES)
def test_slopes(name):
    z = numbers("complex128")

    def total(z):
        z = paddle.to_tensor(z, place="mps", stop_gradient=False)
        y = SLOPES[name](z)
        y = paddle.as_real(y) if y.is_complex() else y
        return z, (y * paddle.linspace(0.5, 1.5, y.size, dtype="float64").to("mps").reshape(y.shape)).sum()

    given, loss = total(z)
    loss.backward()
    slope, step = np.zeros_like(z), 1e-6
    for place in np.ndindex(z.shape):
        for way in (1, 1j):
            ends = []
            for sign in (1, -1):
                moved = z.copy()
                moved[place] += sign * way * step
                ends.append(float(total(moved)[1]))
            slope[place] += way * (ends[0] - ends[1]) / (2 * step)
    support.compare(given.grad, slope, tolerance=(1e-6, 1e-6))


def test_gradient_of_signals():
    random = np.random.default_rng(0)
    for function in (
        lambda x: paddle.signal.stft(x, 16, hop_length=4),
        lambda x: paddle.signal.istft(paddle.signal.stft(x, 16, hop_length=4), 16, hop_length=4),
        lambda x: paddle.signal.overlap_add(paddle.signal.frame(x, 6, 3), 3),
        lambda x: paddle.signal.frame(x.T, 6, 3, axis=0),
    ):
        support.compare_with_gradients(function, random.standard_normal((2, 48)), tolerance=1e-6)
