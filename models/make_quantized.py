#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantizes reference models to bytes with onnxruntime.quantization; runs in .venvs/peers.

    make_quantized.py [--out DIR] [--force] [NAME ...]     NAME: mobilenet_v2_qdq resnet50_qdq lstm_dynamic

NAME_qdq: batch norms are folded, activations are u8 and weights s8 by channel, with QuantizeLinear and DequantizeLinear
around each op. lstm_dynamic: three LSTM layers, quantized when they run (DynamicQuantizeLSTM).
"""
import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from make_models import MODELS, Builder, is_current
from onnx import TensorProto, helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

HERE = Path(__file__).resolve()
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


def qdq(name, folder, to):
    folded = folder / "folded.onnx"
    fold(MODELS[name](), folded)
    quantize_static(folded, to, Images(), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)


def lstm_dynamic(folder, to):
    b, x, inputs, rng = Builder(9), "frames", LSTM_INPUTS, np.random.default_rng(9)
    for layer in range(LSTM_LAYERS):
        def weights(size):
            return b.const((rng.standard_normal((1, 4 * LSTM_UNITS, size), np.float32) / np.sqrt(size)).astype(np.float32))

        bias = b.const(0.1 * rng.standard_normal((1, 8 * LSTM_UNITS), np.float32))
        y = b.op("LSTM", [x, weights(inputs), weights(LSTM_UNITS), bias], hidden_size=LSTM_UNITS)
        x, inputs = b.op("Squeeze", [y, b.const(np.array([1], np.int64))]), LSTM_UNITS
    b.nodes[-1].output[0] = "output"
    plain = folder / "plain.onnx"
    onnx.save(b.model("lstm", [helper.make_tensor_value_info("frames", TensorProto.FLOAT, [LSTM_STEPS, 1, LSTM_INPUTS])],
                      [helper.make_tensor_value_info("output", TensorProto.FLOAT, [LSTM_STEPS, 1, LSTM_UNITS])]), plain)
    quantize_dynamic(plain, to, weight_type=QuantType.QInt8, op_types_to_quantize=["LSTM"])


QUANTIZED = {
    "mobilenet_v2_qdq": lambda folder, to: qdq("mobilenet_v2", folder, to),
    "resnet50_qdq": lambda folder, to: qdq("resnet50", folder, to),
    "lstm_dynamic": lstm_dynamic,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(QUANTIZED)} (default: all)")
    parser.add_argument("--out", type=Path, default=HERE.parent.parent / ".models")
    parser.add_argument("--force", action="store_true", help="write a model even if it is there already")
    args = parser.parse_args()
    unknown = [n for n in args.names if n not in QUANTIZED]
    if unknown:
        parser.error(f"no model named {', '.join(unknown)}; there are {', '.join(QUANTIZED)}")
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.names or QUANTIZED:
        path = args.out / f"{name}.onnx"
        made = args.force or not is_current(path) or path.stat().st_mtime < HERE.stat().st_mtime
        if made:
            with tempfile.TemporaryDirectory(dir=args.out, prefix=".part_") as folder:
                part = Path(folder) / "made.onnx"
                QUANTIZED[name](Path(folder), part)
                os.replace(part, path)
        print(f"{path.name}  {path.stat().st_size / 2**20:.1f} MiB{'' if made else '  (kept)'}")


if __name__ == "__main__":
    main()
