#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the reference models in half types: weights and all that is computed, between casts of inputs and outputs.

    make_halves.py [--out DIR] [--force] [NAME ...]     NAME: mobilenet_v2_f16 mobilenet_v2_bf16 resnet50_f16 ...
"""
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from make_models import MODELS, save_models
from onnx import TensorProto, helper, numpy_helper

TYPES = {"f16": (TensorProto.FLOAT16, np.float16), "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16)}
OPSET = 22  # the first in which convolutions and poolings take bfloat16


def half(name, kind):
    """The model in a half type. Its inputs and outputs keep their types, as converters of models leave them."""
    (element, dtype), model = TYPES[kind], MODELS[name]()
    graph = model.graph
    for weight in graph.initializer:
        if weight.data_type == TensorProto.FLOAT:
            weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight).astype(dtype), weight.name))
    casts = [attr for node in graph.node if node.op_type == "Cast" for attr in node.attribute if attr.i == TensorProto.FLOAT]
    for attr in casts:
        attr.i = element

    def rename(before, after):
        for node in graph.node:
            for names in (node.input, node.output):
                names[:] = [after if n == before else n for n in names]

    first, last = [], []
    for value in graph.input:
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            rename(value.name, value.name + "_half")
            first.append(helper.make_node("Cast", [value.name], [value.name + "_half"], to=element))
    for value in graph.output:
        rename(value.name, value.name + "_half")
        last.append(helper.make_node("Cast", [value.name + "_half"], [value.name], to=TensorProto.FLOAT))
    nodes = [*first, *graph.node, *last]
    made = helper.make_model(helper.make_graph(nodes, graph.name, graph.input, graph.output, graph.initializer),
                             opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    onnx.checker.check_model(made, full_check=True)
    return made


if __name__ == "__main__":
    makers = {f"{name}_{kind}": lambda path, name=name, kind=kind: onnx.save(half(name, kind), path)
              for name in MODELS for kind in TYPES}
    save_models(__doc__, makers, Path(__file__))
