# SPDX-License-Identifier: Apache-2.0
"""Quantized ops of the domain com.microsoft, and casts to strings, beside ONNX Runtime.

The standard's suite has no tests of them. Quantized results may differ by one step, where a quotient lies at a half."""
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "build" / "python"))

import anymps  # noqa: E402

DOMAIN = "com.microsoft"
TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.uint8): TensorProto.UINT8, np.dtype(np.int8): TensorProto.INT8,
         np.dtype(np.int32): TensorProto.INT32, np.dtype(np.int64): TensorProto.INT64, np.dtype(bool): TensorProto.BOOL}
RANDOM = np.random.default_rng(7)


def run_both(op, inputs, outputs=1, domain=DOMAIN, constants=(), **attributes):
    """(ours, theirs) of one node; `constants` are the places of inputs that are initializers."""
    names = [f"x{i}" if value is not None else "" for i, value in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    feeds = {n: v for i, (n, v) in enumerate(zip(names, inputs)) if n and i not in constants}
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info(n, TYPES[v.dtype], v.shape) for n, v in feeds.items()],
        [helper.make_empty_tensor_value_info(n) for n in results],
        [onnx.numpy_helper.from_array(inputs[i], names[i]) for i in constants])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, 1)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    theirs = session.run(None, feeds)
    ours = anymps.load(model.SerializeToString())(**feeds)
    return list(ours) if isinstance(ours, tuple) else [ours], theirs


def within_a_step(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        a = np.asarray(a)
        assert a.dtype == b.dtype and a.shape == b.shape
        difference = np.abs(a.astype(np.int32) - b.astype(np.int32))
        assert difference.max(initial=0) <= 1 and (difference > 0).mean() < 0.02


def close(ours, theirs, tolerance=1e-5):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=tolerance, atol=tolerance * np.abs(b).max())


def bytes_of(dtype, *shape):
    info = np.iinfo(dtype)
    return RANDOM.integers(info.min, info.max + 1, shape).astype(dtype)


def scale(value):
    return np.float32(value)


def zero(dtype, value):
    return np.asarray(value, dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_binary(op, dtype):
    a, b = bytes_of(dtype, 3, 17), bytes_of(dtype, 17)
    s = [np.asarray(v, np.float32) for v in (0.03, 0.05, 0.07)]
    within_a_step(*run_both(op, [a, s[0], zero(dtype, 3), b, s[1], zero(dtype, 5), s[2], zero(dtype, 7)]))


@pytest.mark.parametrize("op, attributes", [("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.1}),
                                            ("QLinearSoftmax", {"axis": -1, "opset": 13})])
def test_unary(op, attributes):
    x = bytes_of(np.uint8, 4, 33)
    s, t = np.asarray(0.05, np.float32), np.asarray(1 / 256, np.float32)
    within_a_step(*run_both(op, [x, s, zero(np.uint8, 120), t, zero(np.uint8, 0)], constants=(1, 2, 3, 4), **attributes))


def test_concat():
    a, b = bytes_of(np.uint8, 2, 3), bytes_of(np.uint8, 2, 5)
    s = [np.asarray(v, np.float32) for v in (0.04, 0.03, 0.05)]
    within_a_step(*run_both("QLinearConcat", [s[0], zero(np.uint8, 10), a, s[1], zero(np.uint8, 3), b, s[2], zero(np.uint8, 8)],
                            constants=(0, 1, 3, 4, 6, 7), axis=1))


@pytest.mark.parametrize("last", [0, 1])
def test_pools(last):
    x = bytes_of(np.uint8, 1, 6, 7, 4)
    tail = [np.asarray(0.05, np.float32), zero(np.uint8, 12), np.asarray(0.04, np.float32), zero(np.uint8, 9)]
    within_a_step(*run_both("QLinearGlobalAveragePool", [x, *tail], channels_last=last))
    within_a_step(*run_both("QLinearAveragePool", [x, *tail], channels_last=last, kernel_shape=[2, 2], strides=[2, 1]))


@pytest.mark.parametrize("columns", [False, True])
def test_products_to_float(columns):
    a, b = bytes_of(np.uint8, 2, 5, 19), bytes_of(np.int8, 19, 33)
    b_scale = RANDOM.uniform(0.01, 0.1, 33 if columns else ()).astype(np.float32)
    b_zero = bytes_of(np.int8, 33) if columns else zero(np.int8, -4)
    bias = RANDOM.standard_normal(33).astype(np.float32)
    close(*run_both("MatMulIntegerToFloat", [a, b, np.asarray(0.02, np.float32), b_scale, zero(np.uint8, 77), b_zero, bias]))
    x = RANDOM.standard_normal((2, 5, 19)).astype(np.float32)
    close(*run_both("DynamicQuantizeMatMul", [x, b, b_scale, b_zero, bias], constants=(1, 2, 3)))


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("bias", [None, (33,), (1, 33), (5, 33)])
def test_q_gemm(columns, turned, bias):
    a, b = bytes_of(np.uint8, *((19, 5) if turned else (5, 19))), bytes_of(np.int8, *((33, 19) if turned else (19, 33)))
    b_scale = RANDOM.uniform(0.01, 0.1, 33 if columns else ()).astype(np.float32)
    b_zero = bytes_of(np.int8, 33) if columns else zero(np.int8, -4)
    c = RANDOM.integers(-9999, 9999, bias).astype(np.int32) if bias else None
    inputs = [a, np.asarray(0.02, np.float32), zero(np.uint8, 77), b, b_scale, b_zero, c]
    attributes = {"transA": turned, "transB": turned, "alpha": 0.75 if turned else 1.0}
    ours, theirs = run_both("QGemm", [*inputs, np.asarray(1.5, np.float32), zero(np.uint8, 99)], **attributes)
    within_a_step(ours, theirs)
    close(*run_both("QGemm", inputs, constants=(3, 4, 5), **attributes))


def test_q_linear_where():
    scale = [np.asarray(s, np.float32) for s in (0.1, 0.03, 0.07)]
    inputs = [RANDOM.random((3, 4)) < 0.5, bytes_of(np.uint8, 3, 4), scale[0], zero(np.uint8, 9), bytes_of(np.uint8, 1, 4), scale[1],
              zero(np.uint8, 200), scale[2], zero(np.uint8, 50)]
    within_a_step(*run_both("QLinearWhere", inputs))


@pytest.mark.parametrize("n, k", [(9, 80), (192, 96)])  # a part of a block is left; products read bits
@pytest.mark.parametrize("bits, zeros", [(4, False), (4, True), (8, False)])
def test_matmul_n_bits(bits, zeros, n, k):
    block = 32
    blocks = -(-k // block)
    b = bytes_of(np.uint8, n, blocks, block * bits // 8)
    scales = RANDOM.uniform(0.01, 0.1, n * blocks).astype(np.float32)
    points = bytes_of(np.uint8, n * -(-blocks * bits // 8)) if zeros else None
    x = RANDOM.standard_normal((3, k)).astype(np.float32)
    ours, theirs = run_both("MatMulNBits", [x, b, scales, points], constants=(1, 2, 3) if zeros else (1, 2), K=k, N=n, bits=bits,
                            block_size=block)
    close(ours, theirs, 1e-4)


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("batch, hidden", [(1, 6), (1, 24), (2, 6)])
def test_dynamic_quantize_lstm(directions, columns, batch, hidden):
    """States of several sequences are quantized together there, and each by itself here: results differ by a step of them."""
    steps, inputs = 5, 7
    w, r = bytes_of(np.int8, directions, inputs, 4 * hidden), bytes_of(np.int8, directions, hidden, 4 * hidden)
    shape = (directions, 4 * hidden) if columns else (directions,)
    scales = [RANDOM.uniform(0.002, 0.004, shape).astype(np.float32) for _ in range(2)]
    zeros = [np.zeros(shape, np.int8) for _ in range(2)]
    x = RANDOM.standard_normal((steps, batch, inputs)).astype(np.float32)
    bias = RANDOM.standard_normal((directions, 8 * hidden)).astype(np.float32)
    ours, theirs = run_both("DynamicQuantizeLSTM", [x, w, r, bias, None, None, None, None, scales[0], zeros[0], scales[1], zeros[1]],
                            outputs=3, constants=(1, 2, 3, 8, 9, 10, 11), hidden_size=hidden,
                            direction="bidirectional" if directions == 2 else "forward")
    close(ours, theirs, 2e-2 if batch > 1 else 1e-4)


@pytest.mark.parametrize("values", [np.array([1, -7, 1 << 40]), np.array([True, False]), np.array([0.5, -2, 1e20], np.float32)])
def test_cast_to_strings(values):
    ours, theirs = run_both("Cast", [values], domain="", to=TensorProto.STRING)
    assert list(np.asarray(ours[0])) == list(theirs[0])
