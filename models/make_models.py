#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the reference ONNX models: well-known architectures with seeded random weights.

    make_models.py [--out DIR] [--force] [NAME ...]     NAME: mobilenet_v2 resnet50 minilm_l6 bert_base

The same seed gives the same weights on every machine, so a latency measured on one of these models is
comparable between runtimes and from run to run. A model that is there and newer than this file is kept.
"""
import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).resolve()
CLASSES = 1000


class Builder:
    """A thin layer over onnx.helper: each method adds one node and returns its output's name."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.count = [], [], 0

    def fresh(self, stem):
        self.count += 1
        return f"{stem}_{self.count}"

    def const(self, array, stem="w"):
        name = self.fresh(stem)
        self.weights.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def op(self, kind, inputs, n_out=1, **attrs):
        outs = [self.fresh(kind.lower()) for _ in range(n_out)]
        self.nodes.append(helper.make_node(kind, inputs, outs, name=outs[0], **attrs))
        return outs[0] if n_out == 1 else outs

    def conv(self, x, cin, cout, k, stride=1, groups=1, bias=False):
        fan_in = cin // groups * k * k
        w = self.rng.standard_normal((cout, cin // groups, k, k), np.float32) * np.sqrt(2.0 / fan_in)
        ins = [x, self.const(w.astype(np.float32))]
        if bias:
            ins.append(self.const(np.zeros(cout, np.float32)))
        pad = k // 2
        return self.op("Conv", ins, kernel_shape=[k, k], strides=[stride, stride],
                       pads=[pad] * 4, group=groups)

    def bn(self, x, c):
        r = self.rng
        ps = [1 + 0.1 * r.standard_normal(c), 0.1 * r.standard_normal(c),
              0.1 * r.standard_normal(c), 1 + 0.1 * np.abs(r.standard_normal(c))]
        return self.op("BatchNormalization", [x] + [self.const(p.astype(np.float32)) for p in ps],
                       epsilon=1e-5)

    def linear(self, x, cin, cout):
        w = (self.rng.standard_normal((cin, cout), np.float32) / np.sqrt(cin)).astype(np.float32)
        y = self.op("MatMul", [x, self.const(w)])
        return self.op("Add", [y, self.const(np.zeros(cout, np.float32))])

    def model(self, name, inputs, outputs, opset=17):
        graph = helper.make_graph(self.nodes, name, inputs, outputs, self.weights)
        m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        onnx.checker.check_model(m)
        return onnx.shape_inference.infer_shapes(m)


def image_input(size=224):
    return [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["N", 3, size, size])]


def classifier_head(b, x, c):
    x = b.op("GlobalAveragePool", [x])
    x = b.op("Flatten", [x], axis=1)
    w = (b.rng.standard_normal((CLASSES, c), np.float32) * 0.01).astype(np.float32)
    x = b.op("Gemm", [x, b.const(w), b.const(np.zeros(CLASSES, np.float32))], transB=1)
    b.nodes[-1].output[0] = "output"
    return [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["N", CLASSES])]


def mobilenet_v2():
    b = Builder(2)

    def clip6(x):
        return b.op("Clip", [x, b.const(np.float32(0)), b.const(np.float32(6))])

    x = clip6(b.bn(b.conv("input", 3, 32, 3, 2), 32))
    c = 32
    for t, cout, n, s in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                          (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]:
        for i in range(n):
            stride, hidden, skip = (s if i == 0 else 1), c * t, x
            if t != 1:
                x = clip6(b.bn(b.conv(x, c, hidden, 1), hidden))
            x = clip6(b.bn(b.conv(x, hidden, hidden, 3, stride, hidden), hidden))
            x = b.bn(b.conv(x, hidden, cout, 1), cout)
            if stride == 1 and c == cout:
                x = b.op("Add", [x, skip])
            c = cout
    x = clip6(b.bn(b.conv(x, c, 1280, 1), 1280))
    return b.model("mobilenet_v2", image_input(), classifier_head(b, x, 1280))


def resnet50():
    b = Builder(50)
    x = b.op("Relu", [b.bn(b.conv("input", 3, 64, 7, 2), 64)])
    x = b.op("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    c = 64
    for width, n, s in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]:
        for i in range(n):
            stride, skip = (s if i == 0 else 1), x
            y = b.op("Relu", [b.bn(b.conv(x, c, width, 1), width)])
            y = b.op("Relu", [b.bn(b.conv(y, width, width, 3, stride), width)])
            y = b.bn(b.conv(y, width, width * 4, 1), width * 4)
            if i == 0:
                skip = b.bn(b.conv(skip, c, width * 4, 1, stride), width * 4)
            x = b.op("Relu", [b.op("Add", [y, skip])])
            c = width * 4
    return b.model("resnet50", image_input(), classifier_head(b, x, 2048))


def encoder(name, layers, hidden, heads, vocab, seed, seq="S"):
    """A BERT-style encoder: token ids and mask in, hidden states out."""
    b = Builder(seed)
    d = hidden // heads
    table = (b.rng.standard_normal((vocab, hidden), np.float32) * 0.02).astype(np.float32)

    def i64(values):
        return b.const(np.array(values, np.int64), "shape")

    def layer_norm(x):
        g, z = b.const(np.ones(hidden, np.float32)), b.const(np.zeros(hidden, np.float32))
        return b.op("LayerNormalization", [x, g, z], axis=-1, epsilon=1e-5)

    x = layer_norm(b.op("Gather", [b.const(table), "input_ids"], axis=0))
    mask = b.op("Cast", ["attention_mask"], to=TensorProto.FLOAT)
    mask = b.op("Unsqueeze", [mask, i64([1, 2])])
    mask = b.op("Mul", [b.op("Sub", [b.const(np.float32(1)), mask]), b.const(np.float32(-1e4))])

    def split_heads(y, perm):
        return b.op("Transpose", [b.op("Reshape", [y, i64([0, 0, heads, d])])], perm=perm)

    for _ in range(layers):
        q = split_heads(b.linear(x, hidden, hidden), [0, 2, 1, 3])
        k = split_heads(b.linear(x, hidden, hidden), [0, 2, 3, 1])
        v = split_heads(b.linear(x, hidden, hidden), [0, 2, 1, 3])
        s = b.op("Div", [b.op("MatMul", [q, k]), b.const(np.float32(np.sqrt(d)))])
        p = b.op("Softmax", [b.op("Add", [s, mask])], axis=-1)
        a = b.op("Transpose", [b.op("MatMul", [p, v])], perm=[0, 2, 1, 3])
        a = b.linear(b.op("Reshape", [a, i64([0, 0, hidden])]), hidden, hidden)
        x = layer_norm(b.op("Add", [x, a]))
        h = b.linear(x, hidden, hidden * 4)
        e = b.op("Erf", [b.op("Div", [h, b.const(np.float32(np.sqrt(2)))])])
        h = b.op("Mul", [b.op("Mul", [h, b.op("Add", [e, b.const(np.float32(1))])]),
                         b.const(np.float32(0.5))])
        x = layer_norm(b.op("Add", [x, b.linear(h, hidden * 4, hidden)]))
    b.nodes[-1].output[0] = "last_hidden_state"
    ins = [helper.make_tensor_value_info(n, TensorProto.INT64, ["N", seq])
           for n in ("input_ids", "attention_mask")]
    outs = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["N", seq, hidden])]
    return b.model(name, ins, outs)


MODELS = {
    "mobilenet_v2": mobilenet_v2,
    "resnet50": resnet50,
    "minilm_l6": lambda: encoder("minilm_l6", 6, 384, 12, 4096, 6),
    "bert_base": lambda: encoder("bert_base", 12, 768, 12, 4096, 12),
}


def save_models(about, makers, *sources):
    """The command line of a script that writes models. `makers`: {name: function(path)}; a model that is newer than the
    script's `sources` is kept."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(makers)} (default: all)")
    parser.add_argument("--out", type=Path, default=HERE.parent.parent / ".models")
    parser.add_argument("--force", action="store_true", help="write a model even if it is there already")
    args = parser.parse_args()
    unknown = [n for n in args.names if n not in makers]
    if unknown:
        parser.error(f"no model named {', '.join(unknown)}; there are {', '.join(makers)}")
    args.out.mkdir(parents=True, exist_ok=True)
    newest = max(source.stat().st_mtime for source in (HERE, *sources))
    for name in args.names or makers:
        path = args.out / f"{name}.onnx"
        made = args.force or not path.exists() or path.stat().st_mtime <= newest
        if made:
            with tempfile.TemporaryDirectory(dir=args.out, prefix=".part_") as folder:
                part = Path(folder) / path.name
                makers[name](part)
                os.replace(part, path)
        print(f"{path.name}  {path.stat().st_size / 2**20:.1f} MiB{'' if made else '  (kept)'}")


if __name__ == "__main__":
    save_models(__doc__, {name: lambda path, make=make: onnx.save(make(), path) for name, make in MODELS.items()})
