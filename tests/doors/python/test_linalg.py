# SPDX-License-Identifier: Apache-2.0
"""Linear algebra and Fourier transforms against NumPy, whose LAPACK is another one than ours."""
import numpy as np
import pytest

import anymps
from anymps import ops

RNG = np.random.default_rng(7)
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def matrix(*shape, dtype=np.float64):
    x = RNG.standard_normal(shape)
    return (x + 1j * RNG.standard_normal(shape)).astype(dtype) if np.dtype(dtype).kind == "c" else x.astype(dtype)


def adjoint(x):
    return np.swapaxes(x, -1, -2).conj()


def close(actual, expected, dtype=np.float64):
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=0,
                               atol=(1e-9 if dtype in (np.float64, np.complex128) else 3e-4) * max(1, np.abs(expected).max(initial=0)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 3, 8, 33])
def test_solutions(n, dtype):
    a = matrix(2, n, n, dtype=dtype) + n * np.eye(n, dtype=dtype)
    b = matrix(2, n, 3, dtype=dtype)
    close(ops.solve(a, b), np.linalg.solve(a, b), dtype)
    close(ops.solve(a, adjoint(b).copy(), left=False), adjoint(np.linalg.solve(adjoint(a), b)), dtype)
    close(ops.inverse(a), np.linalg.inv(a), dtype)
    sign, logabsdet = ops.slogdet(a)
    expected = np.linalg.slogdet(a)
    close(sign, expected[0], dtype)
    close(logabsdet, expected[1], dtype)
    lu, pivots, info = ops.lu_factor(a, outputs=3)
    assert not np.asarray(info).any() and np.asarray(info).dtype == np.int32
    p, low, up = (np.asarray(part) for part in ops.lu_unpack(lu, pivots))
    close(p @ low @ up, a, dtype)
    for left in (True, False):
        for other in (True, False):
            right = b if left else np.swapaxes(b, -1, -2).copy()
            m = adjoint(a) if other else a
            y = np.asarray(ops.lu_solve(lu, pivots, right, left=left, adjoint=other))
            close(m @ y if left else y @ m, right, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (40, 40), (2, 7, 4), (3, 0)])
def test_orthogonal_factors(shape, dtype):
    x = matrix(*shape, dtype=dtype)
    inner = min(shape[-2:])
    for mode in ("reduced", "complete"):
        expected = np.linalg.qr(x, mode)
        q, r = ops.qr(x, mode=mode, unique=False)
        close(r, expected[1], dtype)
        if mode == "reduced" or shape[-2] <= shape[-1]:
            close(q, expected[0], dtype)
        q = np.asarray(q)
        close(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), q.shape[:-2] + (q.shape[-1],) * 2), dtype)
    close(ops.qr(x, mode="r", unique=False)[1], np.linalg.qr(x, "r"), dtype)
    packed, tau = ops.geqrf(x)
    if shape[-2] >= shape[-1]:
        close(ops.householder_product(packed, tau), np.linalg.qr(x)[0], dtype)
    for unique in (True, False):
        u, s, vh = (np.asarray(part) for part in ops.svd(x, unique=unique))
        close(u * s[..., None, :] @ vh, x, dtype)
    close(s, np.linalg.svd(x, compute_uv=False), dtype)
    close(ops.svd_values(x), np.linalg.svd(x, compute_uv=False), dtype)
    assert s.shape[-1] == inner and not np.iscomplexobj(s)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 4, 30])
def test_symmetric_matrices(n, dtype):
    m = matrix(2, n, n, dtype=dtype)
    h, b = (m + adjoint(m)).astype(dtype), matrix(2, n, 2, dtype=dtype)
    for upper in (False, True):
        w, v = (np.asarray(part) for part in ops.eigh(h, upper=upper, unique=False))
        close(w, np.linalg.eigvalsh(h), dtype)
        close(h @ v, v * w[..., None, :], dtype)
        close(ops.eigh(h, upper=upper, outputs=1), np.linalg.eigvalsh(h), dtype)
    ld, pivots = ops.ldl_factor(h, hermitian=True)
    close(h @ np.asarray(ops.ldl_solve(ld, pivots, b, hermitian=True)), b, dtype)
    definite = m @ adjoint(m) + n * np.eye(n, dtype=dtype)
    factor = ops.cholesky(definite)
    close(factor, np.linalg.cholesky(definite), dtype)
    close(ops.cholesky_solve(b, factor), np.linalg.solve(definite, b), dtype)
    close(ops.cholesky_inverse(factor), np.linalg.inv(definite), dtype)


def by_place(values):
    return np.stack([row[np.lexsort((row.imag.round(3), row.real.round(3)))] for row in values])


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalues(dtype):
    x = matrix(3, 12, 12, dtype=dtype)
    for unique in (True, False):
        w, v = (np.asarray(part) for part in ops.eig(x, unique=unique))
        close(by_place(w), by_place(np.linalg.eigvals(x)), np.float32)
        close(x @ v, v * w[..., None, :], np.float32)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (5, 5)])
def test_least_squares(shape, driver, dtype):
    a, b = matrix(*shape, dtype=dtype), matrix(shape[0], 2, dtype=dtype)
    expected = np.linalg.lstsq(a, b, rcond=None)
    y, residuals, rank, s = ops.lstsq(a, b, driver=driver, outputs=4)
    close(y, expected[0], dtype)
    assert int(np.asarray(rank)) == expected[2]
    assert np.asarray(residuals).shape == (2 if shape[0] > shape[1] else 0,)
    if shape[0] > shape[1]:
        close(residuals, expected[1], dtype)
    if driver in ("gelsd", "gelss"):
        close(s, expected[3], dtype)


def test_views_are_read_as_they_lie():
    x = matrix(12, 8, 4)[::2, ::-1, :].transpose(0, 2, 1)[:, :, ::2]
    close(ops.inverse(x), np.linalg.inv(x))
    close(ops.svd_values(x), np.linalg.svd(x, compute_uv=False))


def test_info_instead_of_an_error():
    x = np.array([[[1.0, 2], [2, 4]], [[2, 0], [0, 4]]])
    inverse, info = ops.inverse(x, outputs=2)
    assert np.asarray(info).tolist() == [2, 0]
    assert np.isnan(np.asarray(inverse)[0]).all()
    close(np.asarray(inverse)[1], np.linalg.inv(x[1]))
    with pytest.raises(anymps.Error, match="singular"):
        ops.inverse(x)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 12, 31, 37, 60, 97, 128, 210, 243, 263, 1009, 1024, 4096, 65536])
def test_transforms_of_any_length(n):
    lines = 11 if n < 5000 else 2
    x = RNG.standard_normal((lines, n)) + 1j * RNG.standard_normal((lines, n))
    for inverse in (False, True):
        expected = np.fft.ifft(x) if inverse else np.fft.fft(x)
        size = np.abs(expected).max()
        y = np.asarray(ops.dft(np.stack([x.real, x.imag], -1), axis=-2, inverse=inverse))
        assert np.abs(y[..., 0] + 1j * y[..., 1] - expected).max() < 1e-15 * (2 + np.log2(n)) * size
        y = np.asarray(ops.fft(x.astype(np.complex64), inverse=inverse, scaling="size" if inverse else "none"))
        assert np.abs(y - expected).max() < 1.2e-7 * (2 + np.log2(n)) * size
        y = np.asarray(ops.fft(x, inverse=inverse, scaling="size" if inverse else "none"))
        assert y.dtype == np.complex128 and np.abs(y - expected).max() < 1e-15 * (2 + np.log2(n)) * size


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6, 10, 15, 64, 74, 210, 1000, 1018, 4096])
def test_transforms_of_real_numbers(n):
    x = RNG.standard_normal((11, n))
    spectrum = np.fft.rfft(x)
    slack = 1e-15 * (2 + np.log2(n)) * np.abs(spectrum).max()
    y = np.asarray(ops.dft(x[..., None], axis=-2, onesided=True))
    assert np.abs(y[..., 0] + 1j * y[..., 1] - spectrum).max() < slack
    assert (y[:, 0, 1] == 0).all() and (n % 2 or (y[:, -1, 1] == 0).all())
    pairs = np.stack([spectrum.real, spectrum.imag], -1)
    back = np.asarray(ops.dft(pairs, axis=-2, onesided=True, inverse=True, length=np.int64(n)))
    assert back.shape == (11, n, 1) and np.abs(back[..., 0] - x).max() < slack
    close(ops.real_to_hermitean_fft(x.astype(np.float32).T.copy(), axes=[0]), spectrum.T, np.float32)
    assert np.abs(np.asarray(ops.real_to_hermitean_fft(x)) - spectrum).max() < slack
    if n > 1:
        close(ops.hermitean_to_real_fft(spectrum.astype(np.complex64), round_to_odd=n % 2 == 1), np.fft.hfft(spectrum, n), np.float32)
    bad = x.copy()
    bad[3, n // 2] = np.inf
    y = np.asarray(ops.dft(bad[..., None], axis=-2, onesided=True))
    assert np.isnan(y[3]).all() and np.isfinite(np.delete(y, 3, 0)).all()


def test_transforms_of_several_axes():
    x = RNG.standard_normal((3, 10, 7, 12)).astype(np.float32)
    close(ops.fft(x.astype(np.complex64), axes=[1, 2, 3]), np.fft.fftn(x, axes=(1, 2, 3)), np.float32)
    spectrum = ops.real_to_hermitean_fft(x, axes=[1, 2, 3], scaling="unitary")
    close(spectrum, np.fft.rfftn(x, axes=(1, 2, 3), norm="ortho"), np.float32)
    close(ops.hermitean_to_real_fft(spectrum, axes=[1, 2, 3], inverse=True, scaling="unitary"), x, np.float32)
