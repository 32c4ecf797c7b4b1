# SPDX-License-Identifier: Apache-2.0
"""compile(quantize=…): weights in few bits."""
import anymps
import numpy as np
import pytest

DEPTH, COLUMNS = 128, 144


@pytest.fixture(scope="module")
def matrix():
    return np.random.default_rng(3).standard_normal((DEPTH, COLUMNS)).astype(np.float32)


@pytest.fixture
def graph(matrix):
    graph = anymps.Graph()
    x = graph.input("x", "f32", ("N", DEPTH))
    graph.outputs(x @ graph.constant(matrix))
    return graph


def rows(count):
    return np.random.default_rng(count).standard_normal((count, DEPTH)).astype(np.float32)


@pytest.mark.parametrize("count", [1, 5, 8, 9, 33])
def test_numbers_of_the_widened_weights(graph, matrix, count):
    step = np.abs(matrix).max(0) / np.float32(127)
    quotient = matrix / step
    widened = np.trunc(quotient + np.copysign(np.float32(0.5), quotient)).astype(np.float64) * step
    x = rows(count)
    y = anymps.compile(graph, quantize="int8")(x)
    np.testing.assert_allclose(y, x.astype(np.float64) @ widened, atol=2e-4)


def test_int4_is_near_and_int8_is_nearer(graph, matrix):
    x = rows(20)
    exact = x.astype(np.float64) @ matrix
    error = {kind: np.linalg.norm(anymps.compile(graph, quantize=kind)(x) - exact) / np.linalg.norm(exact) for kind in ("", "int8", "int4")}
    assert error[""] < 1e-5 < error["int8"] < 0.01 < error["int4"] < 0.12


def test_saved_files_keep_the_bits(graph, matrix, tmp_path):
    x, sizes = rows(3), []
    for kind, device in (("", "cpu"), ("int8", "cpu"), ("int4", "reference")):
        model = anymps.compile(graph, device, quantize=kind)
        model.save(tmp_path / "model.mps")
        sizes.append((tmp_path / "model.mps").stat().st_size)
        np.testing.assert_allclose(anymps.load(tmp_path / "model.mps")(x), model(x), atol=2e-4)
        np.testing.assert_allclose(anymps.load(tmp_path / "model.mps", device="reference")(x), model(x), atol=2e-4)
    assert sizes[0] > 3 * sizes[1] and sizes[1] > 1.2 * sizes[2]


def test_of_a_file(graph, tmp_path):
    graph.save(tmp_path / "model.mps")
    x = rows(2)
    np.testing.assert_array_equal(anymps.load(tmp_path / "model.mps", quantize="int4")(x), anymps.compile(graph, quantize="int4")(x))


def test_half_weights(matrix):
    graph = anymps.Graph()
    x = graph.input("x", "f16", ("N", DEPTH))
    graph.outputs(x @ graph.constant(matrix.astype(np.float16)))
    x = rows(4).astype(np.float16)
    y = anymps.compile(graph, quantize="int8")(x)
    exact = x.astype(np.float64) @ matrix.astype(np.float16)
    assert y.dtype == np.float16 and np.linalg.norm(y - exact) / np.linalg.norm(exact) < 0.01


@pytest.mark.parametrize("options, told", [
    ({"quantize": "int5"}, "quantize 'int5': weights can be int8 or int4"), ({"quantize": "int8", "optimization_level": 0}, "optimization level 1")])
def test_wrong_options(graph, options, told):
    with pytest.raises(anymps.InvalidArgument, match=told):
        anymps.compile(graph, **options)
    with pytest.raises(TypeError):
        anymps.compile(graph, quantize=8)
