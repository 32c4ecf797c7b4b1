# SPDX-License-Identifier: Apache-2.0
"""The arguments of ops whose schema alone does not tell them.

A wrapper has the op's name and makes the arguments of one call from a shape, before anything is timed; what is timed is the
ATen op itself with these. Ops without a wrapper get arguments from samples.py.
"""

from dataclasses import dataclass

import torch
from torch.utils._pytree import tree_map_only

WRAPPERS = {}


@dataclass
class Call:
    """One call of an ATen op. Nothing is made when it is called but what the op itself makes."""

    op: torch._ops.OpOverload
    args: tuple
    kwargs: dict
    shape: str

    def __call__(self):
        return self.op(*self.args, **self.kwargs)

    def to(self, device):
        args, kwargs = tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), (self.args, self.kwargs))
        return Call(self.op, args, kwargs, self.shape)


class Make:
    """Tensors of one dtype, the same ones in every run. Numbers lie between 0 and 1, where most functions are defined."""

    def __init__(self, dtype):
        self.dtype = getattr(torch, dtype)
        self.generator = torch.Generator().manual_seed(0)

    def __call__(self, *shape):
        if self.dtype.is_floating_point or self.dtype.is_complex:
            return torch.rand(shape, generator=self.generator).mul_(0.9).add_(0.05).to(self.dtype)
        return self.index(2 if self.dtype == torch.bool else 100, *shape).to(self.dtype)

    def index(self, high, *shape):
        return torch.randint(max(high, 1), shape, generator=self.generator)

    def positive_definite(self, *shape):
        square = self(*shape)
        return square @ square.mT + shape[-1] * torch.eye(shape[-1], dtype=self.dtype)


def wrapper(*shapes, overload="default"):
    """Registers a wrapper with the shapes that are measured unless the list of targets has others."""

    def register(function):
        WRAPPERS[function.__name__] = (function, shapes, overload)
        return function

    return register


@wrapper((1024,), (16384,), overload="Tensor_Tensor")
def isin(make, *shape):
    return make(*shape), make(64)


@wrapper((128, 64), (1024, 128))
def index_copy(make, rows, *rest):
    chosen = torch.randperm(rows, generator=make.generator)[: max(rows // 2, 1)]
    return make(rows, *rest), 0, chosen, make(len(chosen), *rest)


@wrapper((1, 3, 64, 64), (1, 3, 256, 256))
def _upsample_bicubic2d_aa(make, n, c, h, w):
    return make(n, c, h, w), [max(h // 2, 1), max(w // 2, 1)], False


@wrapper((1, 3, 64, 64), (1, 3, 256, 256))
def upsample_bicubic2d(make, n, c, h, w):
    return make(n, c, h, w), [h * 2, w * 2], False


@wrapper((1, 4, 8, 16, 16), (1, 8, 8, 32, 32))
def max_pool3d_with_indices(make, *shape):
    return make(*shape), [2, 2, 2]


@wrapper((1, 4, 8, 16, 16), (1, 8, 8, 32, 32))
def avg_pool3d(make, *shape):
    return make(*shape), [2, 2, 2]


@wrapper((1, 4, 4, 8, 8), (1, 8, 4, 16, 16))
def max_unpool3d(make, *shape):
    pooled, places = torch.nn.functional.max_pool3d(make(*(shape[:2] + tuple(2 * s for s in shape[2:]))), 2, return_indices=True)
    return pooled, places, [2 * s for s in shape[2:]], [2, 2, 2], [0, 0, 0]


@wrapper((1, 2, 8, 8, 8), (1, 4, 16, 16, 16))
def grid_sampler_3d(make, n, c, *shape):
    return make(n, c, *shape), make(n, *shape, 3) * 2 - 1, 0, 0, False


@wrapper((1024,), (8192,), overload="self_Tensor")
def repeat_interleave(make, *shape):
    return make(*shape), make.index(4, shape[0]), 0


@wrapper((1, 16, 16), (4, 64, 64))
def linalg_cholesky_ex(make, *shape):
    return (make.positive_definite(*shape),)


@wrapper((1, 16, 16), (4, 64, 64))
def cholesky_inverse(make, *shape):
    return (torch.linalg.cholesky(make.positive_definite(*shape)),)


@wrapper((1, 16, 16), (4, 64, 64))
def lu_unpack(make, *shape):
    return tuple(torch.linalg.lu_factor(make.positive_definite(*shape)))


@wrapper((32, 32), (256, 256), overload="two")
def scatter_reduce(make, *shape):
    return make(*shape), 0, make.index(shape[0], *shape), make(*shape), "sum"


@wrapper((50, 2, 20), (100, 8, 30))
def _ctc_loss(make, steps, batch, classes):
    length = max(steps // 4, 1)
    return make(steps, batch, classes).log_softmax(-1), make.index(classes - 1, batch, length) + 1, [steps] * batch, [length] * batch


@wrapper((1000, 16), (10000, 64))
def _embedding_bag(make, rows, width):
    return make(rows, width), make.index(rows, 2048), torch.arange(0, 2048, 8)


@wrapper((64, 64), (256, 256))
def _fft_r2c(make, *shape):
    return make(*shape), [len(shape) - 1], 0, True


@wrapper((64, 64), (256, 256))
def binomial(make, *shape):
    return make.index(50, *shape).to(make.dtype), make(*shape)


@wrapper((1, 4, 8, 16, 16), (1, 8, 8, 32, 32))
def adaptive_max_pool3d(make, *shape):
    return make(*shape), [4, 4, 4]


@wrapper((1, 4, 8, 16, 16), (1, 8, 8, 32, 32))
def _adaptive_avg_pool3d(make, *shape):
    return make(*shape), [4, 4, 4]


@wrapper((64, 10), (512, 100))
def multi_margin_loss(make, batch, classes):
    return make(batch, classes), make.index(classes, batch)


def find_op(name):
    """The op of a name such as isin or isin.Tensor_Tensor; without overload, the one that the wrapper or PyTorch prefers."""
    base, _, overload = name.partition(".")
    packet = getattr(torch.ops.aten, base, None)
    if packet is None:
        raise ValueError(f"unknown op: there is no aten::{base} in torch {torch.__version__}")
    overloads = packet.overloads()
    if not overload:
        overload = WRAPPERS[base][2] if base in WRAPPERS else "default" if "default" in overloads else overloads[0]
    if overload not in overloads:
        raise ValueError(f"unknown op: aten::{base} has no overload {overload!r}; there are {', '.join(overloads)}")
    return getattr(packet, overload)


def wrapped(name, shape, dtype):
    """The call of an op with a wrapper."""
    function = WRAPPERS[name.partition(".")[0]][0]
    try:
        args = function(Make(dtype), *shape)
    except TypeError:
        raise ValueError(f"the wrapper of {name} does not take the shape {list(shape)}") from None
    return Call(find_op(name), args, {}, "x".join(map(str, shape)) or "scalar")


