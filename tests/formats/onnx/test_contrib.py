# SPDX-License-Identifier: Apache-2.0
"""Ops of com.microsoft and ai.onnx.ml beside ONNX Runtime: each case is a one-node model with random inputs."""
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "build" / "python"))

import anymps  # noqa: E402

rng = np.random.default_rng(3)
OPSETS = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("ai.onnx.ml", 3)]


def f32(*shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def ids(high, *shape, dtype=np.int32):
    return rng.integers(0, high, shape).astype(dtype)


def model_of(op, inputs, outputs, domain="com.microsoft", constants=(), **attrs):
    names = ["" if value is None else f"x{i}" for i, value in enumerate(inputs)]
    node = helper.make_node(op, names, outputs, domain=domain, **attrs)
    feeds, initializers, infos = {}, [], []
    for i, (name, value) in enumerate(zip(names, inputs)):
        if value is None:
            continue
        if i in constants:
            initializers.append(numpy_helper.from_array(value, name))
            continue
        feeds[name] = value
        infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
    graph = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info(o) for o in outputs if o], initializers)
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=10).SerializeToString(), feeds


def compare(op, inputs, outputs=("y",), tolerance=2e-5, **attrs):
    model, feeds = model_of(op, inputs, outputs, **attrs)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    expected = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, feeds)
    actual = anymps.load(model)(**feeds)
    actual = actual if isinstance(actual, tuple) else (actual,)
    assert len(actual) == len(expected)
    for ours, theirs in zip(actual, expected):
        ours = np.asarray(ours)
        assert ours.shape == theirs.shape and (ours.dtype == theirs.dtype or theirs.dtype == object)
        if theirs.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(ours, theirs)


B, S, H, D = 2, 5, 4, 16
HIDDEN = H * D

ACTIVATIONS = {
    "Gelu": [f32(3, 7)],
    "FastGelu": [f32(3, 7), f32(7)],
    "BiasGelu": [f32(3, 7), f32(7)],
    "QuickGelu": [f32(3, 7)],
}


@pytest.mark.parametrize("op", ACTIVATIONS)
def test_activation(op):
    compare(op, ACTIVATIONS[op])


@pytest.mark.parametrize("attrs", [{}, {"transA": 1, "alpha": 0.5}, {"transB": 1}, {"transA": 1, "transB": 1}])
def test_fused_matmul(attrs):
    a, b = f32(2, 4, 6), f32(2, 6, 5)
    compare("FusedMatMul", [a.swapaxes(1, 2).copy() if attrs.get("transA") else a,
                            b.swapaxes(1, 2).copy() if attrs.get("transB") else b], **attrs)


def test_fused_gemm():
    compare("FusedGemm", [f32(4, 6), f32(6, 5), f32(5)], activation="LeakyRelu", activation_alpha=0.2, alpha=0.5, beta=2.0)


@pytest.mark.parametrize("residual", [False, True])
def test_fused_conv(residual):
    compare("FusedConv", [f32(1, 3, 7, 7), f32(4, 3, 3, 3), f32(4), f32(1, 4, 7, 7) if residual else None],
            pads=[1, 1, 1, 1], activation="Relu")


def test_skip_layer_normalization():
    x, skip = f32(B, S, HIDDEN), f32(B, S, HIDDEN)
    compare("SkipLayerNormalization", [x, skip, f32(HIDDEN), f32(HIDDEN), f32(HIDDEN)], ("y", "", "", "sum"), epsilon=1e-6)
    compare("SkipLayerNormalization", [x, skip, f32(HIDDEN)])
    compare("SkipSimplifiedLayerNormalization", [x, skip, f32(HIDDEN), f32(HIDDEN)], ("y", "", "", "sum"), epsilon=1e-6)


def test_simplified_layer_normalization():
    compare("SimplifiedLayerNormalization", [f32(B, S, HIDDEN), f32(HIDDEN)], domain="", epsilon=1e-6)


@pytest.mark.parametrize("masked", [False, True])
def test_embed_layer_normalization(masked):
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    compare("EmbedLayerNormalization", [ids(9, B, S), ids(2, B, S), f32(9, HIDDEN), f32(7, HIDDEN), f32(2, HIDDEN),
                                        f32(HIDDEN), f32(HIDDEN), mask if masked else None], ("y", "mask_index"))


MASKS = {
    "none": None,
    "raw": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32),
    "lengths": np.array([3, 5], np.int32),
    "square": np.tril(np.ones((B, S, S), np.int32)),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("causal", [0, 1])
def test_attention(mask, causal):
    compare("Attention", [f32(B, S, HIDDEN), f32(HIDDEN, 3 * HIDDEN, scale=0.2), f32(3 * HIDDEN), MASKS[mask]],
            num_heads=H, unidirectional=causal)


def test_attention_with_past():
    compare("Attention", [f32(B, S, HIDDEN), f32(HIDDEN, 3 * HIDDEN, scale=0.2), f32(3 * HIDDEN), None, f32(2, B, H, 3, D)],
            ("y", "present"), num_heads=H, unidirectional=1)


def test_attention_with_bias_and_sizes():
    compare("Attention", [f32(B, S, HIDDEN), f32(HIDDEN, 2 * HIDDEN + 32, scale=0.2), f32(2 * HIDDEN + 32), None, None,
                          f32(B, H, S, S)], num_heads=H, qkv_hidden_sizes=[HIDDEN, HIDDEN, 32])


@pytest.mark.parametrize("case", ["plain", "bias", "padding", "attention_bias", "past", "causal"])
def test_multi_head_attention(case):
    q, k, v = f32(B, S, HIDDEN), f32(B, S, HIDDEN), f32(B, S, HIDDEN)
    inputs, outputs, attrs = [q, k, v], ("y",), {"num_heads": H}
    if case == "bias":
        inputs.append(f32(3 * HIDDEN))
    if case == "padding":
        inputs += [None, MASKS["raw"]]
    if case == "attention_bias":
        inputs += [None, None, f32(1, H, S, S)]
    if case == "past":
        inputs += [None, None, None, f32(B, H, 3, D), f32(B, H, 3, D)]
        outputs = ("y", "present_key", "present_value")
    if case == "causal":
        attrs["unidirectional"] = 1
    compare("MultiHeadAttention", inputs, outputs, **attrs)


def test_multi_head_attention_packed():
    """ONNX Runtime has packed inputs on GPUs only; ours must be the same as the plain ones."""
    q, k, v = (f32(B, S, HIDDEN) for _ in range(3))
    heads = [x.reshape(B, S, H, D) for x in (q, k, v)]
    results = []
    for inputs in ([q, k, v], [np.stack(heads, 3)], [q, np.stack(heads[1:], 3)]):
        model, feeds = model_of("MultiHeadAttention", inputs, ["y"], num_heads=H)
        results.append(np.asarray(anymps.load(model)(**feeds)))
    np.testing.assert_allclose(results[1], results[0], rtol=1e-6)
    np.testing.assert_allclose(results[2], results[0], rtol=1e-6)


def rotary(length=16, width=D):
    angles = np.outer(np.arange(length), 1.0 / 100 ** (np.arange(width // 2) / (width // 2)))
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


OUT = ("y", "present_key", "present_value")


@pytest.mark.parametrize("attrs", [{}, {"do_rotary": 1}, {"do_rotary": 1, "rotary_interleaved": 1}, {"local_window_size": 2},
                                   {"softcap": 3.0}, {"scale": 0.3}])
@pytest.mark.parametrize("packed", [False, True])
def test_group_query_attention_prefill(attrs, packed):
    q, k, v = f32(B, S, HIDDEN), f32(B, S, 2 * D), f32(B, S, 2 * D)
    inputs = [np.concatenate([q, k, v], -1), None, None] if packed else [q, k, v]
    past = np.zeros((B, 2, 0, D), np.float32)
    inputs += [past, past, np.full(B, S - 1, np.int32), np.array(S, np.int32)]
    if "do_rotary" in attrs:
        inputs += rotary()
    compare("GroupQueryAttention", inputs, OUT, num_heads=H, kv_num_heads=2, tolerance=5e-5, **attrs)


@pytest.mark.parametrize("rotated", [False, True])
def test_group_query_attention_decode(rotated):
    # the rows of the batch hold 6 and 4 keys; the cache has room for 9
    past_k, past_v = f32(B, 2, 9, D), f32(B, 2, 9, D)
    inputs = [f32(B, 1, HIDDEN), f32(B, 1, 2 * D), f32(B, 1, 2 * D), past_k, past_v, np.array([6, 4], np.int32), np.array(7, np.int32)]
    if rotated:
        inputs += rotary()
    compare("GroupQueryAttention", inputs, OUT, num_heads=H, kv_num_heads=2, do_rotary=int(rotated), tolerance=5e-5)


def test_group_query_attention_decode_grows():
    past_k, past_v = f32(1, 2, 6, D), f32(1, 2, 6, D)
    compare("GroupQueryAttention", [f32(1, 1, HIDDEN), f32(1, 1, 2 * D), f32(1, 1, 2 * D), past_k, past_v,
                                    np.array([6], np.int32), np.array(7, np.int32)], OUT, num_heads=H, kv_num_heads=2)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("flat", [False, True])
def test_rotary_embedding(interleaved, flat):
    x = f32(B, S, HIDDEN) if flat else f32(B, H, S, D)
    compare("RotaryEmbedding", [x, ids(16, B, S, dtype=np.int64), *rotary()], interleaved=interleaved)
    compare("RotaryEmbedding", [x, np.array([4], np.int64), *rotary()], interleaved=interleaved)


def test_inverse():
    compare("Inverse", [f32(2, 4, 4) + 4 * np.eye(4, dtype=np.float32)])


def test_trilu():
    compare("Trilu", [f32(3, 4), np.array(1, np.int64)], upper=0)


@pytest.mark.parametrize("shape,axes", [((3, 8), 1), ((2, 3, 9), 1), ((2, 4, 6), 2), ((3, 4, 10), 3)])
def test_real_transforms(shape, axes):
    """ONNX Runtime has these on other devices only: numpy is the other side."""
    x = f32(*shape)
    model, feeds = model_of("Rfft", [x], ["y"], signal_ndim=axes, normalized=0, onesided=1)
    expected = np.fft.rfftn(x, axes=range(-axes, 0))
    y = anymps.load(model)(**feeds)
    np.testing.assert_allclose(y[..., 0] + 1j * y[..., 1], expected, rtol=1e-4, atol=1e-4)
    model, feeds = model_of("Irfft", [np.ascontiguousarray(y)], ["x"], signal_ndim=axes, normalized=0, onesided=1)
    back = anymps.load(model)(**feeds)
    expected = np.fft.irfftn(expected, axes=range(-axes, 0))
    assert back.shape == expected.shape
    np.testing.assert_allclose(back, expected, rtol=1e-4, atol=1e-5)


def test_forms_of_transforms_that_no_runtime_has():
    for attrs in ({"normalized": 1}, {"onesided": 0}, {"signal_ndim": 4}):
        with pytest.raises(anymps.Error, match="Rfft"):
            anymps.load(model_of("Rfft", [f32(2, 2, 2, 8)], ["y"], **attrs)[0])
