#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seed corpus of fuzz_onnx: small files that reach each branch of the reader.

    make_onnx_corpus.py OUT_DIR        needs numpy and onnx
"""
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper


def info(name, dims=("N", 4), dtype=T.FLOAT):
    return helper.make_tensor_value_info(name, dtype, dims)


def weight(name, *shape, dtype=np.float32):
    return numpy_helper.from_array((np.arange(np.prod(shape)) % 7).reshape(shape).astype(dtype), name)


def model(nodes, weights=(), inputs=None, outputs=None, opset=17, **kw):
    graph = helper.make_graph(nodes, "g", inputs or [info("x")], outputs or [info("y", None)], list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], **kw)


def one(op, inputs, weights=(), opset=17, **attrs):
    return model([helper.make_node(op, inputs, ["y"], name=op.lower(), **attrs)], weights, opset=opset)


def typed(dtype, values):
    tensor = helper.make_tensor("w", dtype, [len(values)], values)
    return model([helper.make_node("Identity", ["w"], ["y"])], [tensor])


def branches():
    def branch(value):
        const = helper.make_node("Constant", [], ["b"], value=weight("b", 2) if value else weight("b", 3))
        return helper.make_graph([const], "branch", [], [info("b", None)])
    return model([helper.make_node("If", ["x"], ["y"], then_branch=branch(1), else_branch=branch(0))],
                 inputs=[info("x", [], T.BOOL)])


def with_function():
    twice = helper.make_function("my", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])],
                                 [helper.make_opsetid("", 17)])
    return model([helper.make_node("Twice", ["x"], ["y"], domain="my")], functions=[twice])


def external():
    tensor = weight("w", 4)
    onnx.external_data_helper.set_external_data(tensor, "../w.bin", 4, 16)
    tensor.ClearField("raw_data")
    return model([helper.make_node("Add", ["x", "w"], ["y"])], [tensor])


def sparse():
    values, indices = weight("v", 2), weight("i", 2, dtype=np.int64)
    m = model([helper.make_node("Identity", ["x"], ["y"])])
    m.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [8]))
    return m


def shape_arithmetic():
    make = helper.make_node
    return model([make("Shape", ["x"], ["s"]), make("Gather", ["s", "zero"], ["n"]),
                  make("Unsqueeze", ["n", "axes"], ["n1"]), make("Concat", ["n1", "rest"], ["to"], axis=0),
                  make("Reshape", ["x", "to"], ["y"])],
                 [numpy_helper.from_array(np.array(0), "zero"), numpy_helper.from_array(np.array([0]), "axes"),
                  numpy_helper.from_array(np.array([2, -1]), "rest")])


SEEDS = {
    "conv": one("Conv", ["x", "w", "b"], [weight("w", 2, 1, 3, 3), weight("b", 2)], pads=[1] * 4, group=2),
    "conv_auto_pad": one("Conv", ["x", "w"], [weight("w", 2, 1, 3, 3)], auto_pad="SAME_UPPER"),
    "gemm": one("Gemm", ["x", "w", "c"], [weight("w", 4, 4), weight("c", 4)], alpha=0.5, transB=1),
    "clip6": one("Clip", ["x"], opset=6, min=0.0, max=6.0),
    "clip13": one("Clip", ["x", "", "w"], [numpy_helper.from_array(np.float32(6), "w")]),
    "softmax": one("Softmax", ["x"], axis=-1),
    "squeeze11": one("Squeeze", ["x"], opset=11, axes=[0]),
    "resize": one("Resize", ["x", "", "w"], [weight("w", 4)], mode="linear"),
    "cast": one("Cast", ["x"], to=T.INT64),
    "lstm": one("LSTM", ["x", "w", "r"], [weight("w", 1, 8, 4), weight("r", 1, 8, 2)], hidden_size=2),
    "shape_arithmetic": shape_arithmetic(),
    "if": branches(),
    "function": with_function(),
    "external_escape": external(),
    "sparse": sparse(),
    "cycle": model([helper.make_node("Add", ["x", "y"], ["z"]), helper.make_node("Relu", ["z"], ["y"])]),
    "typed_float": typed(T.FLOAT, [1.0, 2.0]),
    "typed_half": typed(T.FLOAT16, [1.0, 2.0]),
    "typed_int64": typed(T.INT64, [-1, 2]),
    "typed_uint64": typed(T.UINT64, [1, 2**63]),
    "typed_bool": typed(T.BOOL, [True, False]),
    "typed_int4": typed(T.INT4, [1, -2, 3]),
    "typed_string": typed(T.STRING, [b"a", b"bc"]),
}


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for name, seed in SEEDS.items():
        (out / f"{name}.onnx").write_bytes(seed.SerializeToString())
    tensor = weight("t", 2, 3)
    (out / "tensor.pb").write_bytes(tensor.SerializeToString())


if __name__ == "__main__":
    main()
