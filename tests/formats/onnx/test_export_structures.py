# SPDX-License-Identifier: Apache-2.0
"""Control flow, lists, optionals and strings written as ONNX, beside ONNX Runtime; and what the types of opset 21 do
not allow."""
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "build" / "python"))

import anymps  # noqa: E402
from anymps import ops  # noqa: E402

rng = np.random.default_rng(8)


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def as_list(results):
    return list(results) if isinstance(results, tuple) else [results]


def same(ours, theirs, tolerance=2e-5):
    if isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            same(a, b)
        return
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    if theirs.dtype.kind == "f":
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(ours, theirs)


def check(graph, feeds, path, runtime=True):
    """What was written gives what the graph gives, read again and in ONNX Runtime."""
    graph.save(str(path))
    onnx.checker.check_model(str(path), full_check=True)
    expected = as_list(anymps.compile(graph)(**feeds))
    for ours, back in zip(expected, as_list(anymps.load(path)(**feeds)), strict=True):
        same(back, ours if not isinstance(ours, tuple) else list(ours))
    if runtime:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        for ours, theirs in zip(expected, session.run(None, {i.name: feeds[i.name] for i in session.get_inputs()}), strict=True):
            same(ours, theirs)


def imported(nodes, feeds, outputs, initializers=(), opset=21):
    infos = []
    for name, value in feeds.items():
        kind = TensorProto.STRING if value.dtype == object else helper.np_dtype_to_tensor_dtype(value.dtype)
        infos.append(helper.make_tensor_value_info(name, kind, value.shape))
    graph = helper.make_graph(nodes, "g", infos, [onnx.ValueInfoProto(name=name) for name in outputs],
                              [numpy_helper.from_array(np.asarray(v), k) for k, v in dict(initializers).items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return anymps.Graph.load(model.SerializeToString())


def body(nodes, inputs, outputs):
    def info(name, kind):
        return helper.make_tensor_value_info(name, kind, None if kind == TensorProto.FLOAT else [])
    return helper.make_graph(nodes, "body", [info(*i) for i in inputs], [info(*o) for o in outputs])


F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


@pytest.mark.parametrize("condition", [True, False])
def test_if(condition, tmp_path):
    then = body([helper.make_node("Mul", ["x", "w"], ["a"])], [], [("a", F)])
    other = body([helper.make_node("Sub", ["x", "w"], ["s"]), helper.make_node("Abs", ["s"], ["b"])], [], [("b", F)])
    feeds = {"c": np.array(condition), "x": f32(2, 3), "w": f32(3)}
    graph = imported([helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)], feeds, ["y"])
    assert "if_else" in graph.text()
    check(graph, feeds, tmp_path / "m.onnx")


def test_loop_with_captures_and_scan_outputs(tmp_path):
    inner = body([helper.make_node("Mul", ["v", "w"], ["m"]), helper.make_node("Add", ["m", "x"], ["v2"]),
                  helper.make_node("ReduceSum", ["v2"], ["s"], keepdims=0), helper.make_node("Less", ["i", "k"], ["go"])],
                 [("i", I), ("c", B), ("v", F)], [("go", B), ("v2", F), ("s", F)])
    feeds = {"x": f32(2, 3), "w": f32(3), "n": np.array(6), "k": np.array(3)}
    graph = imported([helper.make_node("Loop", ["n", "", "x"], ["last", "sums"], body=inner)], feeds, ["last", "sums"])
    check(graph, feeds, tmp_path / "m.onnx")


def test_loop_in_a_loop_in_a_branch(tmp_path):
    deep = body([helper.make_node("Add", ["q", "w"], ["q2"]), helper.make_node("Identity", ["d"], ["d2"])],
                [("j", I), ("d", B), ("q", F)], [("d2", B), ("q2", F)])
    inner = body([helper.make_node("Loop", ["two", "", "v"], ["v2"], body=deep), helper.make_node("Identity", ["c"], ["c2"])],
                 [("i", I), ("c", B), ("v", F)], [("c2", B), ("v2", F)])
    then = body([helper.make_node("Loop", ["n", "", "x"], ["a"], body=inner)], [], [("a", F)])
    other = body([helper.make_node("Identity", ["x"], ["b"])], [], [("b", F)])
    feeds = {"c": np.array(True), "x": f32(3), "w": f32(3), "n": np.array(4)}
    graph = imported([helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)], feeds, ["y"],
                     {"two": np.array(2)})
    check(graph, feeds, tmp_path / "m.onnx")


def test_scan(tmp_path):
    inner = body([helper.make_node("Add", ["s", "x"], ["s2"]), helper.make_node("Mul", ["s2", "w"], ["y"])],
                 [("s", F), ("x", F)], [("s2", F), ("y", F)])
    feeds = {"s0": f32(3), "xs": f32(3, 5), "w": f32(3)}
    node = helper.make_node("Scan", ["s0", "xs"], ["last", "ys"], body=inner, num_scan_inputs=1, scan_input_axes=[1],
                            scan_input_directions=[1], scan_output_axes=[1])
    check(imported([node], feeds, ["last", "ys"]), feeds, tmp_path / "m.onnx")


@pytest.mark.parametrize("bounds", [(0, 5, 1), (2, 9, 3), (7, 0, -2), (5, 5, 1), (6, 2, 1)])
@pytest.mark.parametrize("dtype", ["i32", "i64"])
def test_for_loop(bounds, dtype, tmp_path):
    graph = anymps.Graph("g")
    x, w = graph.input("x", "f32", (3,)), graph.input("w", "f32", (3,))
    ends = [graph.constant(b, dtype) for b in bounds]
    y = ops.for_loop(*ends, x, w, body=lambda i, v, w: v * w + ops.cast(i, dtype="f32"), carried=1, outputs=1)
    graph.outputs(y)
    check(graph, {"x": f32(3), "w": f32(3)}, tmp_path / "m.onnx")


def test_while_loop(tmp_path):
    graph = anymps.Graph("g")
    x, limit = graph.input("x", "f32", ()), graph.input("limit", "f32", ())
    y = ops.while_loop(x, limit, before=lambda v, limit: (v < limit, v, v * 10.0),
                       after=lambda v, tenfold, limit: v * 1.5 + tenfold * 0.01, carried=1, outputs=2)
    graph.outputs(*y)
    for start in (1.0, 50.0):
        check(graph, {"x": np.array(start, np.float32), "limit": np.array(20, np.float32)}, tmp_path / "m.onnx")


def test_call(tmp_path):
    graph = anymps.Graph("g")
    x = graph.input("x", "f32", (3,))
    graph.outputs(ops.call(ops.call(x, callee=lambda v: ops.relu(v), outputs=1), callee=lambda v: v + 1.0, outputs=1))
    check(graph, {"x": f32(3)}, tmp_path / "m.onnx")


def test_lists(tmp_path):
    feeds = {"x": f32(5, 2), "p": np.array(1)}
    nodes = [helper.make_node("SplitToSequence", ["x", "sizes"], ["list"], axis=0),
             helper.make_node("SequenceInsert", ["list", "x", "p"], ["longer"]),
             helper.make_node("SequenceErase", ["longer", "p"], ["again"]),
             helper.make_node("SequenceAt", ["longer", "p"], ["item"]),
             helper.make_node("SequenceLength", ["longer"], ["n"]),
             helper.make_node("ConcatFromSequence", ["longer"], ["all"], axis=0),
             helper.make_node("SequenceConstruct", ["x", "item"], ["made"]),
             helper.make_node("SequenceEmpty", [], ["none"], dtype=TensorProto.INT64),
             helper.make_node("SequenceLength", ["none"], ["zero"])]
    graph = imported(nodes, feeds, ["longer", "again", "item", "n", "all", "made", "zero"], {"sizes": np.array([2, 3])})
    check(graph, feeds, tmp_path / "m.onnx")


def test_sequence_map(tmp_path):
    inner = body([helper.make_node("Mul", ["a", "b"], ["c"])], [("a", F), ("b", F)], [("c", F)])
    nodes = [helper.make_node("SplitToSequence", ["x"], ["list"], axis=0),
             helper.make_node("SequenceMap", ["list", "w"], ["mapped"], body=inner),
             helper.make_node("ConcatFromSequence", ["mapped"], ["y"], axis=0)]
    feeds = {"x": f32(3, 2), "w": f32(2)}
    check(imported(nodes, feeds, ["y"]), feeds, tmp_path / "m.onnx")


def test_optionals(tmp_path):
    nodes = [helper.make_node("Optional", ["x"], ["o"]), helper.make_node("OptionalHasElement", ["o"], ["has"]),
             helper.make_node("OptionalGetElement", ["o"], ["y"]),
             helper.make_node("Optional", [], ["nothing"], type=helper.make_tensor_type_proto(TensorProto.FLOAT, [2])),
             helper.make_node("OptionalHasElement", ["nothing"], ["hasnt"])]
    feeds = {"x": f32(2)}
    check(imported(nodes, feeds, ["has", "y", "hasnt"]), feeds, tmp_path / "m.onnx")


def test_strings(tmp_path):
    feeds = {"x": np.array(["a b", "cd  e", ""], object)}
    nodes = [helper.make_node("StringConcat", ["x", "tail"], ["longer"]),
             helper.make_node("StringSplit", ["x"], ["parts", "counts"], maxsplit=1),
             helper.make_node("StringNormalizer", ["x"], ["upper"], case_change_action="UPPER", stopwords=["a b"], locale="C"),
             helper.make_node("RegexFullMatch", ["x"], ["match"], pattern="[a-c ]+")]
    graph = imported(nodes, feeds, ["longer", "parts", "counts", "upper", "match"], {"tail": np.array(["!", "é"], object)[:1]})
    check(graph, feeds, tmp_path / "m.onnx")


LAYERS = {
    "rnn": ("RNN", [f32(5, 2, 3), f32(1, 4, 3), f32(1, 4, 4), f32(1, 8)], dict(hidden_size=4, activations=["Relu"])),
    "rnn_both": ("RNN", [f32(5, 2, 3), f32(2, 4, 3), f32(2, 4, 4), None, np.array([5, 3], np.int32)],
                 dict(hidden_size=4, direction="bidirectional")),
    "lstm_other": ("LSTM", [f32(5, 2, 3), f32(1, 16, 3), f32(1, 16, 4)],
                   dict(hidden_size=4, activations=["HardSigmoid", "ScaledTanh", "Relu"], activation_alpha=[0.3, 1.2],
                        activation_beta=[0.4, 0.8], clip=2.0)),
    "gru_lengths": ("GRU", [f32(5, 2, 3), f32(1, 12, 3), f32(1, 12, 4), None, np.array([5, 2], np.int32)], dict(hidden_size=4)),
    "grid_sample": ("GridSample", [f32(1, 2, 4, 5), (rng.random((1, 3, 3, 2)) * 2.4 - 1.2).astype(np.float32)],
                    dict(padding_mode="reflection", align_corners=1)),
    "grid_sample_cubic": ("GridSample", [f32(1, 2, 4, 5), (rng.random((1, 3, 3, 2)) * 2 - 1).astype(np.float32)], dict(mode="cubic")),
    "dft": ("DFT", [f32(2, 10, 1), np.array(12), np.array(1)], dict(onesided=1, constants=[1, 2])),
    "dft_inverse": ("DFT", [f32(2, 7, 2), None, np.array(-2)], dict(inverse=1, constants=[2])),
    "stft": ("STFT", [f32(1, 32, 1), np.array(4), f32(8)], dict(constants=[1])),
    "hann": ("HannWindow", [np.array(9)], dict(periodic=0)),
    "mel": ("MelWeightMatrix", [np.array(8), np.array(16), np.array(8192), np.float32(0), np.float32(4096)], {}),
    "affine_grid": ("AffineGrid", [f32(2, 2, 3), np.array([2, 3, 4, 5])], dict(constants=[1])),
}


@pytest.mark.parametrize("case", LAYERS)
def test_layer(case, tmp_path):
    op, inputs, attrs = LAYERS[case]
    attrs = dict(attrs)
    constants = attrs.pop("constants", ())
    names = ["" if v is None else f"x{i}" for i, v in enumerate(inputs)]
    feeds = {n: np.asarray(v) for i, (n, v) in enumerate(zip(names, inputs)) if v is not None and i not in constants}
    fixed = {names[i]: inputs[i] for i in constants}
    outputs = ["y", "y_h"] if op in ("RNN", "GRU", "LSTM") else ["y"]
    graph = imported([helper.make_node(op, names, outputs, **attrs)], feeds, outputs, fixed)
    check(graph, feeds, tmp_path / "m.onnx")


@pytest.mark.parametrize("build,words", [
    (lambda g: ops.sin(g.input("x", "bf16", (3,))), r"sin \(node \"sin\"\): input 0 of ONNX's Sin is bf16, must be one of"),
    (lambda g: ops.avg_pool(g.input("x", "bf16", (1, 1, 4, 4)), kernel=[2, 2]), "input 0 of ONNX's AveragePool is bf16"),
    (lambda g: ops.cast(g.input("x", "f32", (3,)), dtype="i2"), "what ONNX's Cast makes is i2"),
    (lambda g: ops.if_else(g.input("c", "bool", ()), g.input("x", "bf16", (3,)), then_branch=ops.cos, else_branch=ops.sin, outputs=1),
     r"if_else .*1 node cannot be written as ONNX: cos .*input 0 of ONNX's Cos is bf16"),
])
def test_types_that_opset_21_does_not_have(build, words, tmp_path):
    graph = anymps.Graph("g")
    graph.outputs(build(graph))
    with pytest.raises(anymps.Unsupported, match=words):
        graph.save(str(tmp_path / "m.onnx"))


def test_the_table_of_types_is_that_of_the_standard():
    folder = ROOT / "src" / "formats" / "onnx" / "schema"
    made = subprocess.run([sys.executable, str(folder / "make_schemas.py")], capture_output=True, text=True, check=True)
    assert made.stdout == (folder / "schemas.inc").read_text()
