# SPDX-License-Identifier: Apache-2.0
"""Graphs written as ONNX: import, export, and ONNX Runtime gives the numbers that AnyMPS gives."""
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "build" / "python"))

import anymps  # noqa: E402

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
rng = np.random.default_rng(5)


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def model_of(op, inputs, outputs=("y",), constants=(), opset=18, **attrs):
    names = ["" if value is None else f"x{i}" for i, value in enumerate(inputs)]
    node = helper.make_node(op, names, outputs, **attrs)
    feeds, initializers, infos = {}, [], []
    for i, (name, value) in enumerate(zip(names, inputs)):
        if value is None:
            continue
        if i in constants:
            initializers.append(numpy_helper.from_array(value, name))
        else:
            feeds[name] = value
            infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
    graph = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info(o) for o in outputs], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10).SerializeToString(), feeds


def ids(high, *shape):
    return rng.integers(0, high, shape).astype(np.uint8)


def ints(*values):
    return np.array(values, np.int64)


X = f32(2, 4, 6, 6)
CASES = {
    "conv": ("Conv", [X, f32(8, 2, 3, 3), f32(8)], dict(group=2, pads=[1, 1, 1, 1], strides=[2, 2])),
    "conv_same": ("Conv", [X, f32(8, 4, 3, 3)], dict(auto_pad="SAME_UPPER", strides=[2, 2])),
    "conv_transpose": ("ConvTranspose", [X, f32(4, 3, 3, 3)], dict(strides=[2, 2], output_padding=[1, 1])),
    "max_pool": ("MaxPool", [X], dict(kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=1)),
    "avg_pool": ("AveragePool", [X], dict(kernel_shape=[2, 2], count_include_pad=1, pads=[1, 1, 0, 0])),
    "lp_pool": ("LpPool", [X], dict(kernel_shape=[2, 2], p=3)),
    "global_pool": ("GlobalAveragePool", [X], {}),
    "batch_norm": ("BatchNormalization", [X, f32(4), f32(4), f32(4), np.abs(f32(4)) + 0.1], {}),
    "instance_norm": ("InstanceNormalization", [X, f32(4), f32(4)], {}),
    "layer_norm": ("LayerNormalization", [X, f32(6), f32(6)], {}),
    "lrn": ("LRN", [X], dict(size=3)),
    "gemm": ("Gemm", [f32(3, 4), f32(5, 4), f32(5)], dict(transB=1, alpha=0.5, beta=2.0)),
    "matmul": ("MatMul", [f32(2, 3, 4), f32(4, 5)], {}),
    "softmax": ("Softmax", [X], dict(axis=1)),
    "clip": ("Clip", [X, np.array(-0.5, np.float32), np.array(0.5, np.float32)], {}),
    "reduce": ("ReduceMean", [X, ints(1, -1)], dict(keepdims=0, constants=[1])),
    "reduce_computed": ("ReduceMax", [X, ints(2)], {}),
    "arg_max": ("ArgMax", [X], dict(axis=2)),
    "gather": ("Gather", [X, ints(1, 0, 3)], dict(axis=1)),
    "slice": ("Slice", [X, ints(1, 5), ints(4, 0), ints(1, 3), ints(1, -2)], dict(constants=[1, 2, 3, 4])),
    "split": ("Split", [X], dict(axis=1, num_outputs=2, outputs=("y", "z"))),
    "pad": ("Pad", [X, ints(0, 1, 0, 2)], dict(constants=[1], mode="edge", _axes=ints(2, 3))),
    "transpose": ("Transpose", [X], dict(perm=[0, 2, 3, 1])),
    "reshape": ("Reshape", [X, ints(0, -1)], dict(constants=[1])),
    "expand": ("Expand", [f32(3, 1), ints(2, 3, 4)], dict(constants=[1])),
    "tile": ("Tile", [f32(2, 3), ints(2, 1)], dict(constants=[1])),
    "concat": ("Concat", [f32(2, 3), f32(2, 2)], dict(axis=1)),
    "where": ("Where", [np.array([True, False, True]), f32(3), f32(3)], {}),
    "mod": ("Mod", [f32(6), f32(6)], dict(fmod=1)),
    "div_ints": ("Div", [np.arange(-6, 6), ints(5)], {}),
    "gelu": ("Gelu", [X], dict(opset=20)),
    "hard_swish": ("HardSwish", [X], {}),
    "cumsum": ("CumSum", [X, np.array(2)], dict(constants=[1], reverse=1)),
    "depth_to_space": ("DepthToSpace", [X], dict(blocksize=2)),
    "one_hot": ("OneHot", [ints(0, 2, 1), np.array(3), np.array([0, 1], np.float32)], dict(constants=[1])),
    "lstm": ("LSTM", [f32(5, 2, 3), f32(1, 16, 3), f32(1, 16, 4)], dict(hidden_size=4)),
    "gru": ("GRU", [f32(5, 2, 3), f32(1, 12, 3), f32(1, 12, 4), f32(1, 24)], dict(hidden_size=4, linear_before_reset=1)),
    "attention": ("Attention", [f32(1, 2, 3, 8), f32(1, 2, 5, 8), f32(1, 2, 5, 8), f32(3, 5)], dict(opset=23, is_causal=1)),
    "floor_mod": ("Mod", [ints(-7, 7, -7, 7), ints(3, 3, -3, -3)], {}),
    "resize": ("Resize", [X, None, np.array([1, 1, 1.5, 2], np.float32)], dict(constants=[2], mode="linear")),
    "resize_sizes": ("Resize", [X, None, None, ints(2, 4, 9, 5)], dict(mode="cubic", constants=[3])),
    "scatter": ("ScatterElements", [f32(3, 4), ints(1, 0, 2, 1).reshape(1, 4), f32(1, 4)], dict(axis=0, reduction="add")),
    "scatter_nd": ("ScatterND", [f32(4, 3), ints(2, 0).reshape(2, 1), f32(2, 3)], {}),
    "top_k": ("TopK", [f32(3, 7), ints(3)], dict(constants=[1], outputs=("y", "z"), largest=0)),
    "einsum": ("Einsum", [f32(2, 3), f32(3, 4)], dict(equation="ij,jk->ki")),
    "non_zero": ("NonZero", [np.array([[1, 0], [0, 2]], np.float32)], {}),
    "quantize": ("QuantizeLinear", [X, np.array(0.1, np.float32), np.array(3, np.uint8)], {}),
    "dequantize": ("DequantizeLinear", [ids(9, 3, 4), f32(4), ids(9, 4)], dict(axis=1)),
    "trilu": ("Trilu", [f32(3, 4)], dict(upper=0)),
}


def results_of(model, feeds):
    results = model(**feeds)
    return [np.asarray(r) for r in (results if isinstance(results, tuple) else (results,))]


def check(graph, feeds, path, tolerance=2e-5):
    graph.save(str(path))
    onnx.checker.check_model(str(path), full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    expected = results_of(anymps.compile(graph), feeds)
    again = results_of(anymps.load(str(path)), feeds)
    theirs = session.run(None, {i.name: feeds[i.name] for i in session.get_inputs()})
    for ours, back, other in zip(expected, again, theirs):
        assert ours.shape == other.shape == back.shape and ours.dtype == other.dtype == back.dtype
        if ours.dtype.kind != "f":
            np.testing.assert_array_equal(other, ours)
        np.testing.assert_allclose(other, ours, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(back, ours, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("case", CASES)
def test_one_op(case, tmp_path):
    op, inputs, attrs = CASES[case]
    attrs = dict(attrs)
    axes = attrs.pop("_axes", None)
    if axes is not None:
        inputs = [*inputs, None, axes]
        attrs["constants"] = [*attrs["constants"], len(inputs) - 1]
    model, feeds = model_of(op, inputs, **attrs)
    check(anymps.Graph.load(model), feeds, tmp_path / "out.onnx")


@pytest.mark.parametrize("name", ["densenet121", "inception_v2", "resnet50", "shufflenet"])
def test_light_model(name, tmp_path):
    graph = anymps.Graph.load(str(LIGHT / f"light_{name}.onnx"))
    feeds = {v.name: 1e-3 * f32(*v.shape) for v in graph.input_values}  # small: all weights of these models are equal
    check(graph, feeds, tmp_path / "out.onnx", 1e-4)


def test_what_cannot_be_written_is_listed(tmp_path):
    graph = anymps.Graph("g")
    x = graph.input("x", "f32", ("N", 4))
    graph.outputs(anymps.ops.atan2(x, x), anymps.ops.pad(x, pads=[1, 0, 0, 0], mode="symmetric"))
    with pytest.raises(anymps.Unsupported, match="2 nodes cannot be written as ONNX: atan2 .* no symmetric padding"):
        graph.save(str(tmp_path / "out.onnx"))


def test_symbols_and_names_stay(tmp_path):
    graph = anymps.Graph("g")
    x = graph.input("x", "f32", ("N", 4))
    graph.outputs(anymps.ops.relu(x, name="answer"))
    path = tmp_path / "out.onnx"
    graph.save(str(path))
    model = onnx.load(str(path))
    assert [i.name for i in model.graph.input] == ["x"]
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "N"
    assert [d.dim_param or d.dim_value for d in model.graph.output[0].type.tensor_type.shape.dim] == ["N", 4]


def test_complex_numbers_of_doubles_both_ways(tmp_path):
    numbers = np.array([0.1 + 0.2j, -1e300 + 1e-300j])
    graph = anymps.Graph("g")
    graph.outputs(anymps.ops.concat(graph.input("x", "c128", (2,)), graph.constant(numbers), axis=0))
    path = tmp_path / "out.onnx"
    graph.save(str(path))
    model = onnx.load(str(path))
    onnx.checker.check_model(model)
    assert model.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.COMPLEX128
    result = anymps.load(str(path))(numbers)
    assert result.dtype == np.complex128
    np.testing.assert_array_equal(result, np.concatenate([numbers, numbers]))
