#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small ONNX models of kinds that the reference models are not, with seeded random weights.

    make_kinds.py [--out DIR] [--force] [NAME ...]
    NAME: kind_picture kind_decoder kind_clip kind_words kind_speech

Each has one input, `frames`, and is written as exporters write it: group normalization as an instance normalization
between reshapes, borders as nodes of their own.
"""
from pathlib import Path

import numpy as np
import onnx
from make_models import Builder, save_models
from onnx import TensorProto, helper


class Kind(Builder):
    """Layers that the reference models do not have."""

    def ints(self, *values):
        return self.const(np.array(values, np.int64), "ints")

    def numbers(self, *shape, scale=0.1, around=0.0):
        return self.const((around + scale * self.rng.standard_normal(shape)).astype(np.float32))

    def window(self, x, inputs, outputs, kernel, groups=1, **attrs):
        count = inputs // groups * int(np.prod(kernel))
        weights = self.numbers(outputs, inputs // groups, *kernel, scale=count ** -0.5)
        pads = attrs.pop("pads", [k // 2 for k in kernel] * 2)
        return self.op("Conv", [x, weights, self.numbers(outputs)], kernel_shape=list(kernel), pads=pads, group=groups,
                       **attrs)

    def silu(self, x):
        return self.op("Mul", [x, self.op("Sigmoid", [x])])

    def layer_norm(self, x, width):
        return self.op("LayerNormalization", [x, self.numbers(width, around=1), self.numbers(width)], axis=-1)

    def finish(self, name, shape, result):
        self.nodes[-1].output[0] = "output"
        given = [helper.make_tensor_value_info("frames", TensorProto.FLOAT, shape)]
        return self.model(name, given, [helper.make_tensor_value_info("output", TensorProto.FLOAT, result)])


def picture():
    """Style transfer: mirrored borders, instance normalization, a 9x9 window onto three channels."""
    b = Kind(21)

    def layer(x, inputs, outputs, size, stride=1):
        edge = size // 2
        x = b.op("Pad", [x, b.ints(0, 0, edge, edge, 0, 0, edge, edge)], mode="reflect")
        return b.window(x, inputs, outputs, (size, size), strides=[stride, stride], pads=[0] * 4)

    def normed(x, channels, relu=True):
        x = b.op("InstanceNormalization", [x, b.numbers(channels, around=1), b.numbers(channels)])
        return b.op("Relu", [x]) if relu else x

    x = normed(layer("frames", 3, 32, 9), 32)
    x = normed(layer(x, 32, 64, 3, 2), 64)
    for _ in range(2):
        y = normed(layer(x, 64, 64, 3), 64)
        x = b.op("Add", [x, normed(layer(y, 64, 64, 3), 64, relu=False)])
    x = b.op("Resize", [x, "", b.const(np.array([1, 1, 2, 2], np.float32))], mode="nearest")
    x = normed(layer(x, 64, 32, 3), 32)
    layer(x, 32, 3, 9)
    return b.finish("picture", [1, 3, 192, 192], [1, 3, 192, 192])


def decoder():
    """Of an image's code: group normalization and SiLU between 3x3 convolutions."""
    b = Kind(22)

    def normed(x, channels, size):
        y = b.op("Reshape", [x, b.ints(0, 8, -1)])
        y = b.op("InstanceNormalization", [y, b.const(np.ones(8, np.float32)), b.const(np.zeros(8, np.float32))])
        y = b.op("Reshape", [y, b.ints(1, channels, size, size)])
        y = b.op("Add", [b.op("Mul", [y, b.numbers(channels, 1, 1, around=1)]), b.numbers(channels, 1, 1)])
        return b.silu(y)

    def block(x, channels, size):
        y = b.window(normed(x, channels, size), channels, channels, (3, 3))
        return b.op("Add", [x, b.window(normed(y, channels, size), channels, channels, (3, 3))])

    x = block(b.window("frames", 4, 96, (3, 3)), 96, 32)
    x = b.op("Resize", [x, "", b.const(np.array([1, 1, 2, 2], np.float32))], mode="nearest")
    x = block(b.window(x, 96, 64, (3, 3)), 64, 64)
    b.window(normed(x, 64, 64), 64, 3, (3, 3))
    return b.finish("decoder", [1, 4, 32, 32], [1, 3, 64, 64])


def clip():
    """Of a film's frames: convolutions in three dimensions, some of one channel each."""
    b = Kind(23)
    x = b.op("Relu", [b.window("frames", 3, 24, (3, 5, 5), strides=[1, 2, 2])])
    channels = 24
    for outputs, stride in (24, 1), (48, 2):
        y = b.op("Relu", [b.window(x, channels, 54, (1, 1, 1))])
        y = b.silu(b.window(y, 54, 54, (3, 3, 3), 54, strides=[1, stride, stride]))
        y = b.window(y, 54, outputs, (1, 1, 1))
        x = b.op("Add", [x, y]) if stride == 1 else y
        channels = outputs
    b.op("GlobalAveragePool", [x])
    return b.finish("clip", [1, 3, 8, 96, 96], [1, 48, 1, 1, 1])


def words():
    """Of a text's words: windows as wide as a word's vector."""
    b, found = Kind(24), []
    x = b.op("Unsqueeze", ["frames", b.ints(1)])
    for count in 3, 4, 5:
        y = b.op("Relu", [b.window(x, 1, 100, (count, 100), pads=[0] * 4)])
        found.append(b.op("ReduceMax", [y], axes=[2, 3], keepdims=0))
    x = b.op("Concat", found, axis=1)
    b.op("Gemm", [x, b.numbers(300, 4), b.numbers(4)])
    return b.finish("words", [1, 60, 100], [1, 4])


def speech():
    """Conformer blocks without their attention: a gate, and a window of 31 steps over each channel."""
    b, x, width = Kind(25), "frames", 144
    for _ in range(4):
        y = b.linear(b.layer_norm(x, width), width, 4 * width)
        x = b.op("Add", [x, b.linear(b.silu(y), 4 * width, width)])
        y = b.op("Transpose", [b.layer_norm(x, width)], perm=[0, 2, 1])
        halves = b.op("Split", [b.window(y, width, 2 * width, (1,)), b.ints(width, width)], 2, axis=1)
        y = b.op("Mul", [halves[0], b.op("Sigmoid", [halves[1]])])
        y = b.window(b.silu(b.window(y, width, width, (31,), width)), width, width, (1,))
        x = b.op("Add", [x, b.op("Transpose", [y], perm=[0, 2, 1])])
    b.layer_norm(x, width)
    return b.finish("speech", [1, 64, width], [1, 64, width])


KINDS = {"kind_picture": picture, "kind_decoder": decoder, "kind_clip": clip, "kind_words": words, "kind_speech": speech}


if __name__ == "__main__":
    save_models(__doc__, {name: lambda path, make=make: onnx.save(make(), path) for name, make in KINDS.items()}, Path(__file__))
