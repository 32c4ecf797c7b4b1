# SPDX-License-Identifier: Apache-2.0
"""Programs whose form is the test: segments, named data, several methods, open shapes, buffers that change, branches.

PROGRAMS maps a name to a function that gives (Lowered, {method: [inputs, ...]}).
"""

import contextlib
import io
import json
import tempfile

import torch
from torch import nn

from .. import models, partitioner, upstream
from ..lowering import Method, lower
from .kinds import floats, integers

F = nn.functional
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


class Net(nn.Module):
    """A convolution and a linear layer; softmax of a cumulative sum, which no delegate can have, if asked for."""

    def __init__(self, outside=False):
        super().__init__()
        torch.manual_seed(3)
        self.conv = nn.Conv2d(3, 6, 3, padding=1)
        self.linear = nn.Linear(6, 5)
        self.outside = outside

    def forward(self, x):
        y = torch.relu(self.conv(x)).mean((2, 3))
        if self.outside:
            y = torch.cumsum(y, 1)
        return self.linear(y).softmax(-1)


def net(outside=False, seed=0):
    return Method(Net(outside), (floats(2, 3, 7, 5, seed=seed),))


@program
def segments():
    """Delegates in segments behind an extended header."""
    return lower(net(), fp16=False, extract_delegate_segments=True), {}


@program
def segments_and_constants():
    """Two delegates in segments, and constants of the program in one of their own."""
    return lower(net(True), fp16=False, extract_delegate_segments=True), {}


class AddsConstant(nn.Module):
    """A constant that only an op outside uses, so that the program has to hold it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("offset", floats(3, 4, seed=5))

    def forward(self, x):
        return torch.cumsum(x, 1) * torch.erf(torch.flip(self.offset, (0,)))


@program
def constants_outside():
    return lower(Method(AddsConstant(), (floats(3, 4),)), fp16=False), {}


@program
def outside():
    """Ops before, between and behind delegates."""

    def function(x):
        y = torch.cumsum(x, 1) + 1
        y = torch.sort(y * 0.5, 1, descending=True)[0]
        values, places = torch.topk(torch.tanh(y), 2, 1)
        return values, places, torch.argmax(y, 1)

    from .kinds import Of, apart

    positive = apart(4, 5).abs() + 0.25  # sums grow, so that no two are equal
    return lower(Method(Of(function), (positive,)), fp16=False), {}


@program
def nothing_delegated():
    from .kinds import Of

    return lower(Method(Of(lambda x: torch.cumsum(x, 0)), (floats(3, 5),)), fp16=False), {}


@program
def methods():
    """Two methods with delegates of their own."""
    encode = Method(Net(), (floats(1, 3, 4, 4),))
    torch.manual_seed(4)
    decode = Method(nn.Linear(5, 7), (floats(2, 5),))
    both = {"encode": encode, "decode": decode}
    return lower(both, fp16=False), {n: [m.inputs] for n, m in both.items()}


class Open(nn.Module):
    """Views and expansions of an open extent."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.linear = nn.Linear(4, 3)
        self.register_buffer("start", floats(1, 1, 3, seed=2))

    def forward(self, x):
        batch, length, _ = x.shape
        y = self.linear(x.reshape(batch, length, 2, 2).flatten(2))
        y = torch.cat([self.start.expand(batch, 1, 3), y], 1)
        return F.gelu(y), y.mean(1)


@program
def open_batch():
    """An open batch of 1 to 6."""
    batch = torch.export.Dim("batch", min=1, max=6)
    method = Method(Open(), (floats(3, 5, 4),), {"x": {0: batch}})
    cases = [(floats(n, 5, 4, seed=n),) for n in (3, 1, 6)]
    return lower(method, fp16=False), {"forward": cases}


@program
def open_length():
    """An open length of 2 to 8 in the middle."""
    length = torch.export.Dim("length", min=2, max=8)
    torch.manual_seed(6)
    module = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2), nn.Softmax(-1))
    method = Method(module, (floats(2, 5, 4),), ({1: length},))
    return lower(method, fp16=False), {"forward": [(floats(2, n, 4, seed=n),) for n in (5, 2, 8)]}


class Cache(nn.Module):
    """Writes a row of a buffer and reads all of it, like a cache of keys."""

    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(1, 5, 4))

    def forward(self, place, row):
        self.rows[:, place] = row
        return torch.matmul(self.rows, row.transpose(1, 2)).softmax(1)


@program
def cache():
    """A buffer that one run leaves to the next; the expected outputs are those of a first run."""
    method = Method(Cache(), (torch.tensor([2]), floats(1, 1, 4)))
    lowered = lower(method, fp16=False)
    lowered.methods["forward"].module = FirstRun(Cache)
    return lowered, {}


class FirstRun(nn.Module):
    """A fresh module for every call."""

    def __init__(self, make):
        super().__init__()
        self.make = make

    def forward(self, *inputs):
        return self.make()(*inputs)


@program
def llama():
    """A small llama with its cache: a buffer that changes, and slices whose place is an input's element."""
    sizes = {"dim": 32, "n_layers": 1, "n_heads": 2, "n_kv_heads": 1, "vocab_size": 64, "hidden_dim": 48}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as params, contextlib.redirect_stdout(io.StringIO()):
        json.dump(sizes, params)
        params.flush()
        made = models.example("llama2", **models.llama_options(params=params.name, length=16))
    return lower(Method(made.module, made.inputs), fp16=False), {}


class Counter(nn.Module):
    """A buffer that counts the runs."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count.add_(1)
        return x * self.count


class CountsOn(Counter):
    """A counter that does not start at zero."""

    def __init__(self):
        super().__init__()
        self.count.fill_(3)


@program
def initial_state():
    """A buffer that changes, with what it starts with."""
    lowered = lower(Method(CountsOn(), (floats(3),)), fp16=False)
    lowered.methods["forward"].module = FirstRun(CountsOn)
    return lowered, {}


@program
def counter():
    lowered = lower(Method(Counter(), (floats(3),)), fp16=False)
    lowered.methods["forward"].module = FirstRun(Counter)
    return lowered, {}


class Branch(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda y: torch.tanh(y) * 2, lambda y: torch.relu(-y) + 1, (x,))


@program
def branch():
    """torch.cond: one delegate on each side, and a jump between them."""
    method = Method(Branch(), (floats(2, 3, low=1),))
    return lower(method, fp16=False), {"forward": [(floats(2, 3, low=1),), (floats(2, 3, high=-1),)]}


@program
def many_inputs():
    """Inputs and outputs in several dtypes, one of them handed through."""

    def function(a, b, c, d, e):
        return a, b + c, d & (e > 0), c.to(torch.int64) * 2, e

    from .kinds import Of

    inputs = (floats(2, 3), floats(3), integers(3), integers(4) > 0, integers(4, dtype=torch.int8))
    return lower(Method(Of(function), inputs), fp16=False), {}


@program
def shared_constant():
    """One weight in two delegates."""

    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(floats(4, 4, seed=9))

        def forward(self, x):
            return torch.cumsum(x @ self.weight, 1) @ self.weight

    return lower(Method(Shared(), (floats(3, 4),)), fp16=False), {}


@program
def sliced_constant():
    """Constants that are slices of one storage."""

    class Sliced(nn.Module):
        def __init__(self):
            super().__init__()
            whole = floats(6, 4, seed=9)
            self.register_buffer("low", whole[:3])
            self.register_buffer("high", whole[3:])

        def forward(self, x):
            return x * self.low + self.high

    return lower(Method(Sliced(), (floats(3, 4),)), fp16=False), {}


@program
def empty():
    """Tensors without elements."""
    from .kinds import Of

    return lower(Method(Of(lambda x, y: (x + 1, torch.cat([x, y]))), (torch.zeros(0, 3), floats(2, 3))), fp16=False), {}


@program
def named_data():
    """A delegate that also brings named data, in a segment of its own."""
    from executorch.exir._serialize._named_data_store import NamedDataStore

    plain = upstream.MPSBackend.preprocess

    def preprocess(edge_program, compile_specs):
        result = plain(edge_program, compile_specs)
        store = NamedDataStore()
        store.add_named_data("first", bytes(range(48)), alignment=16)
        store.add_named_data("second", b"second", alignment=64)
        result.data_store_output = store.get_named_data_store_output()
        return result

    with models.patched(upstream.MPSBackend, "preprocess", staticmethod(preprocess)):
        return lower(net(), fp16=False), {}


class MetalKernels(partitioner.Partitioner):
    """As upstream: indices of several dims go into delegates of their own, marked as Metal kernels."""

    def use_metal_kernel(self, node):
        return upstream.MPSPartitioner.use_metal_kernel(self, node)


@program
def metal_kernel():
    from .kinds import Of

    def function(x, i, j):
        return torch.relu(x[i, j]) + 1

    method = Method(Of(function), (floats(4, 5, 3), torch.tensor([3, 0, 2]), torch.tensor([4, 1, 1])))
    return lower(method, fp16=False, partitioner=MetalKernels), {}
