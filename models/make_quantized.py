#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantizes reference models to bytes with onnxruntime.quantization; runs in .venvs/peers.

    make_quantized.py [--out DIR] [--force] [NAME ...]     NAME: mobilenet_v2_qdq resnet50_qdq lstm_dynamic

NAME_qdq: batch norms are folded, activations are u8 and weights s8 by channel, with QuantizeLinear and DequantizeLinear
around each op. lstm_dynamic: three LSTM layers, quantized when they run (DynamicQuantizeLSTM).
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


QUANTIZED = {
    "mobilenet_v2_qdq": lambda to: qdq("mobilenet_v2", to),
    "resnet50_qdq": lambda to: qdq("resnet50", to),
    "lstm_dynamic": lstm_dynamic,
}


if __name__ == "__main__":
    save_models(__doc__, QUANTIZED, Path(__file__))
