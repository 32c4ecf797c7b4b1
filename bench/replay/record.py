# SPDX-License-Identifier: Apache-2.0
"""Records the ATen calls of a training step and of an inference, below autograd: shapes, not numbers.

    .venvs/torch/bin/python bench/replay/record.py [MODEL…]      writes bench/replay/data/MODEL.txt.gz

A recording is text, one thing a line, which replay.cc reads in order:

    storage 4096                    bytes; made by the call that first names it
    storage 4096 f32 0 1 -3 3       there from the start: dtype, mean, deviation, least and greatest of its elements
    tensor 2 f32 0 [8,16] [16,1]    storage, dtype, offset in elements, extents, strides
    run inference                   what follows is one run; its phases follow each other
    phase forward
    call aten::relu. t3 > t4        arguments in the order of the schema, then results

Arguments: tN a tensor, n none, i1 f0.5 b1 numbers and flags, df32 a dtype, sWORD a string, and lists in brackets.
"""
import gzip
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from models import MODELS

DATA = Path(__file__).resolve().parent / "data"
DTYPES = {torch.uint8: "u8", torch.int32: "i32", torch.float32: "f32", torch.int64: "i64", torch.bool: "bool", torch.float64: "f64"}
WARM_UP = 2  # steps before the one that is recorded: optimizers make their state in the first


def ints(values):
    return "[" + ",".join(map(str, values)) + "]"


def state(tensor):
    """What the elements look like, so that a replay computes with numbers of the same kind."""
    values = tensor.detach().double().reshape(-1)
    numbers = (values.mean(), values.std(correction=0), values.min(), values.max()) if values.numel() else (0, 0, 0, 0)
    return f"{DTYPES[tensor.dtype]} " + " ".join(f"{float(x):.4g}" for x in numbers)


class Recorder(TorchDispatchMode):
    """Storages are kept alive: an address that is used again would be taken for the same memory. Tensors are not, or
    autograd would copy every gradient instead of handing it on."""

    def __init__(self):
        super().__init__()
        self.lines, self.storages, self.tensors, self.kept = [], {}, {}, []

    def storage(self, tensor, result):
        key = tensor.untyped_storage()._cdata
        if key not in self.storages:
            self.storages[key] = len(self.storages)
            self.kept.append(tensor.untyped_storage())
            there = ""
            if not result:
                whole = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
                there = " " + state(whole)
            self.lines.append(f"storage {tensor.untyped_storage().nbytes()}{there}")
        return self.storages[key]

    def tensor(self, tensor, result=False):
        with torch.no_grad():
            about = (f"{self.storage(tensor, result)} {DTYPES[tensor.dtype]} {tensor.storage_offset()} "
                     f"{ints(tensor.shape)} {ints(tensor.stride())}")
        if about not in self.tensors:
            self.tensors[about] = len(self.tensors)
            self.lines.append(f"tensor {about}")
        return f"t{self.tensors[about]}"

    def text(self, value, result=False):
        if value is None:
            return "n"
        if isinstance(value, torch.Tensor):
            return self.tensor(value, result)
        if isinstance(value, bool):
            return f"b{int(value)}"
        if isinstance(value, int):
            return f"i{value}"
        if isinstance(value, float):
            return f"f{value!r}"
        if isinstance(value, torch.dtype):
            return f"d{DTYPES[value]}"
        if isinstance(value, (list, tuple)):
            return " ".join(["[", *(self.text(item, result) for item in value), "]"])
        return f"s{value}"

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = [self.text(value) for value in self.complete(func, args, kwargs or {})]
        results = func(*args, **(kwargs or {}))
        if not func._schema.name.startswith("aten::"):
            return results  # marks of torch's profiler
        many = results if isinstance(results, (list, tuple)) else () if results is None else (results,)
        made = [self.text(value, result=True) for value in many]
        name = func._schema.name + "." + func._schema.overload_name
        self.lines.append(" ".join(["call", name, *given, ">", *made]))
        return results

    @staticmethod
    def complete(func, args, kwargs):
        for i, about in enumerate(func._schema.arguments):
            yield args[i] if i < len(args) else kwargs.get(about.name, about.default_value)


def record(name):
    make, feed, optimize = MODELS[name]
    torch.manual_seed(0)
    model, (x, labels) = make(), feed()
    optimizer = optimize(model.parameters())
    recorder = Recorder()

    def step(mark):
        optimizer.zero_grad()
        mark("forward")
        loss = F.cross_entropy(model(x), labels)
        mark("backward")
        loss.backward()
        mark("optimizer")
        optimizer.step()

    for _ in range(WARM_UP):
        step(lambda phase: None)
    optimizer.zero_grad()
    with recorder:
        recorder.lines.append("run training")
        step(lambda phase: recorder.lines.append(f"phase {phase}"))
    model.eval()
    with torch.no_grad(), recorder:
        recorder.lines += ["run inference", "phase inference"]
        model(x)
    DATA.mkdir(exist_ok=True)
    text = "\n".join(recorder.lines) + "\n"
    (DATA / f"{name}.txt.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{name}: {text.count(chr(10) + 'call ')} calls, {(DATA / f'{name}.txt.gz').stat().st_size} bytes")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or MODELS:
        record(wanted)
