#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantizes reference models to bytes with onnxruntime.quantization; runs in .venvs/peers.

    make_quantized.py [--out DIR] [--force] [NAME ...]     NAME: mobilenet_v2_qdq resnet50_qdq lstm_dynamic
                      minilm_l6_dynamic bert_base_dynamic bert_base_4bit

NAME_qdq: batch norms are folded, activations are u8 and weights s8 by channel, with QuantizeLinear and DequantizeLinear
around each op. lstm_dynamic: three LSTM layers, quantized when they run (DynamicQuantizeLSTM). NAME_dynamic: products whose
left operands are quantized when they run, as quantize_dynamic makes them. NAME_4bit: MatMulNBits with blocks of 32.
"""
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from make_models import MODELS, Builder, save_models
from onnx import TensorProto, helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

LSTM_UNITS, LSTM_INPUTS, LSTM_LAYERS, LSTM_STEPS = 256, 64, 3, 100


class Images(CalibrationDataReader):
    """A few seeded images."""

    def __init__(self, count=4):
        rng = np.random.default_rng(1)
        self.left = [{"input": rng.standard_normal((1, 3, 224, 224), np.float32)} for _ in range(count)]

    def get_next(self):
        return self.left.pop() if self.left else None


def fold(model, path):
    """The model without its batch norms: basic optimizations make them a part of the convolutions."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 3
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def qdq(name, to):
    folded = to.with_name("folded.onnx")
    fold(MODELS[name](), folded)
    quantize_static(folded, to, Images(), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)


def lstm_dynamic(to):
    b, x, inputs, rng = Builder(9), "frames", LSTM_INPUTS, np.random.default_rng(9)
    for layer in range(LSTM_LAYERS):
        def weights(size):
            return b.const((rng.standard_normal((1, 4 * LSTM_UNITS, size), np.float32) / np.sqrt(size)).astype(np.float32))

        bias = b.const(0.1 * rng.standard_normal((1, 8 * LSTM_UNITS), np.float32))
        y = b.op("LSTM", [x, weights(inputs), weights(LSTM_UNITS), bias], hidden_size=LSTM_UNITS)
        x, inputs = b.op("Squeeze", [y, b.const(np.array([1], np.int64))]), LSTM_UNITS
    b.nodes[-1].output[0] = "output"
    plain = to.with_name("plain.onnx")
    onnx.save(b.model("lstm", [helper.make_tensor_value_info("frames", TensorProto.FLOAT, [LSTM_STEPS, 1, LSTM_INPUTS])],
                      [helper.make_tensor_value_info("output", TensorProto.FLOAT, [LSTM_STEPS, 1, LSTM_UNITS])]), plain)
    quantize_dynamic(plain, to, weight_type=QuantType.QInt8, op_types_to_quantize=["LSTM"])


def encoder_dynamic(name, to):
    plain = to.with_name("plain.onnx")
    onnx.save(MODELS[name](), plain)
    quantize_dynamic(plain, to, weight_type=QuantType.QInt8)


def encoder_4bit(name, to, block=32):
    """Each product with a constant matrix becomes a MatMulNBits."""
    model = MODELS[name]()
    graph, constants = model.graph, {c.name: c for c in model.graph.initializer}
    for node in graph.node:
        weights = constants.get(node.input[1]) if node.op_type == "MatMul" else None
        if weights is None:
            continue
        w = onnx.numpy_helper.to_array(weights).T.astype(np.float32)  # [columns, depth]
        n, k = w.shape
        blocks = w.reshape(n, k // block, block)
        furthest = np.take_along_axis(blocks, np.abs(blocks).argmax(-1, keepdims=True), -1)
        scales = np.where(furthest == 0, 1, furthest / -8).astype(np.float32)
        steps = (np.clip(np.rint(blocks / scales), -8, 7) + 8).astype(np.uint8)
        name = weights.name
        graph.initializer.append(onnx.numpy_helper.from_array(steps[..., ::2] | steps[..., 1::2] << 4, name + ".steps"))
        graph.initializer.append(onnx.numpy_helper.from_array(scales.reshape(-1), name + ".scales"))
        node.CopyFrom(helper.make_node("MatMulNBits", [node.input[0], name + ".steps", name + ".scales"], list(node.output),
                                       domain="com.microsoft", K=k, N=n, bits=4, block_size=block))
    read = {name for node in graph.node for name in node.input}
    for constant in [c for c in graph.initializer if c.name not in read]:
        graph.initializer.remove(constant)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    onnx.save(model, to)


QUANTIZED = {
    "mobilenet_v2_qdq": lambda to: qdq("mobilenet_v2", to),
    "resnet50_qdq": lambda to: qdq("resnet50", to),
    "lstm_dynamic": lstm_dynamic,
    "minilm_l6_dynamic": lambda to: encoder_dynamic("minilm_l6", to),
    "bert_base_dynamic": lambda to: encoder_dynamic("bert_base", to),
    "bert_base_4bit": lambda to: encoder_4bit("bert_base", to),
}


if __name__ == "__main__":
    save_models(__doc__, QUANTIZED, Path(__file__))
