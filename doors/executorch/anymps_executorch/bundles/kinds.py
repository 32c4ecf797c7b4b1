# SPDX-License-Identifier: Apache-2.0
"""One small module for each of the 90 node kinds of the MPS schema, with odd shapes.

KINDS maps a kind to a Case. Inputs are multiples of 1/64, so that float16 holds them exactly and a comparison, a floor
or a remainder does not fall on the other side there. A module has several nodes of its kind where forms differ (a
scalar, broadcasting, a negative dim).
"""

from dataclasses import dataclass, field

import torch

from ..upstream import edge, schema

F = torch.nn.functional
aten = torch.ops.aten


@dataclass
class Case:
    """A function of the inputs, and what it takes to make the exporter write the kind."""

    function: object
    inputs: tuple
    constants: dict = field(default_factory=dict)
    preserve: tuple = ()  # ops that torch would decompose
    kinds: dict = field(default_factory=dict)  # {target: kind} that the exporter itself would not choose
    fp16: bool = True  # floats are computed, so that a variant of halves makes sense
    more_inputs: tuple = ()  # further test cases


class Of(torch.nn.Module):
    """A module of a function; constants are buffers."""

    def __init__(self, function, constants=()):
        super().__init__()
        self.function = function
        for name, tensor in dict(constants).items():
            self.register_buffer(name, tensor)
        self.names = list(dict(constants))

    def forward(self, *inputs):
        return self.function(*inputs, **{name: getattr(self, name) for name in self.names})


def floats(*shape, low=-3.0, high=3.0, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed * 1000003 + sum((i + 1) * s for i, s in enumerate(shape)))
    steps = torch.randint(round(low * 64), round(high * 64) + 1, shape, generator=generator)
    return (steps / 64).to(dtype)


def integers(*shape, low=-9, high=10, seed=0, dtype=torch.int32):
    generator = torch.Generator().manual_seed(seed * 1000003 + 17 + sum(shape))
    return torch.randint(low, high, shape, generator=generator).to(dtype)


def apart(*shape, seed=0):
    """Floats of which no two are equal, for results that depend on which is greater."""
    count = torch.Size(shape).numel()
    generator = torch.Generator().manual_seed(seed + count)
    return ((torch.randperm(count, generator=generator) - count // 2) / 64).reshape(shape).float()


A, B = floats(3, 1, 5), floats(7, 5, seed=1)
NONZERO = torch.tensor([0.5, -1.5, 0.75, -2.0, 3.0])
INT_A, INT_B = integers(4, 1, 3), integers(2, 3, seed=1)
KINDS = {}


def unary(kind, function, *extra, low=-3.0, high=3.0, **options):
    """Over a tensor of rank 3, one of rank 1, and one without dims."""
    inputs = (floats(3, 5, 7, low=low, high=high), floats(11, low=low, high=high), floats(low=low, high=high))
    KINDS[kind] = Case(lambda x, y, z: (function(x), function(y), function(z)), inputs + extra, **options)


def binary(kind, function, a=A, b=B, **options):
    """Broadcasting both ways, and with a tensor of one element."""
    one = b.reshape(-1)[:1].clone()
    KINDS[kind] = Case(lambda x, y, z: (function(x, y), function(y, x), function(x, z)), (a, b, one), **options)


def activation_kinds():
    x, y = floats(2, 3, 5, high=8), floats(7)
    KINDS["MPSHardTanh"] = Case(lambda a, b: (F.hardtanh(a), F.hardtanh(b, -0.5, 2.25), F.relu6(a)), (x, y))
    KINDS["MPSReLU"] = Case(lambda a, b: (torch.relu(a), torch.relu(b)), (x, y))
    KINDS["MPSGELU"] = Case(lambda a, b: (F.gelu(a), F.gelu(b, approximate="tanh")), (x, y))
    KINDS["MPSLeakyReLU"] = Case(lambda a, b: (F.leaky_relu(a), F.leaky_relu(b, 0.25)), (x, y))
    KINDS["MPSSoftmax"] = Case(lambda a: (a.softmax(-1), a.softmax(1), a.softmax(-3)), (x,))
    KINDS["MPSLogSoftmax"] = Case(lambda a: (a.log_softmax(-1), a.log_softmax(1)), (x,))


def binary_kinds():
    binary("MPSAdd", torch.add)
    KINDS["MPSAdd"] = Case(
        lambda x, y, i, j: (x + y, torch.add(x, y, alpha=-2.5), y + 0.375, i + j, i + 3, i + 0.5, x + i),
        (A, B, integers(5), integers(3, 1)),
    )
    KINDS["MPSSub"] = Case(
        lambda x, y, i, j: (x - y, torch.sub(y, x, alpha=0.5), y - 0.375, i - j, i - 3, i - x),
        (A, B, integers(5), integers(3, 1)),
    )
    KINDS["MPSMul"] = Case(
        lambda x, y, i, j: (x * y, y * -0.375, i * j, i * 3, i * x), (A, B, integers(5), integers(3, 1))
    )
    KINDS["MPSDiv"] = Case(
        lambda x, y, i, j: (
            x / y,
            y / 4,
            i / j,
            torch.div(x, y, rounding_mode="floor"),
            torch.div(x, y, rounding_mode="trunc"),
            torch.div(i, j, rounding_mode="floor"),
            torch.div(i, j, rounding_mode="trunc"),
            i // 4,
        ),
        (A, NONZERO, integers(6), torch.tensor([2, -3, 5, -7, 1, 4], dtype=torch.int32)),
    )
    KINDS["MPSFmod"] = Case(
        lambda x, y, i, j: (torch.fmod(x, y), torch.fmod(x, 1.5), torch.fmod(i, j)),
        (A, NONZERO, integers(6), torch.tensor([2, -3, 5, -7, 1, 4], dtype=torch.int32)),
    )
    KINDS["MPSRemainder"] = Case(
        lambda x, y, i, j: (torch.remainder(x, y), torch.remainder(x, 1.5), torch.remainder(i, j)),
        (A, NONZERO, integers(6), torch.tensor([2, -3, 5, -7, 1, 4], dtype=torch.int32)),
    )
    binary("MPSMin", torch.minimum, kinds={edge.minimum.default: schema.MPSMin})
    binary("MPSMinimum", torch.minimum)
    binary("MPSMax", torch.maximum)
    binary("MPSAtan2", torch.atan2)
    KINDS["MPSPow"] = Case(
        lambda x, y, z: (torch.pow(x, y), x**2, z**3, x**-0.5, torch.pow(z, 0)),
        (floats(3, 1, 5, low=0.25, high=2), floats(7, 5, low=-2, high=2), floats(2, 3)),
    )
    for kind, function in (
        ("MPSBitwiseAnd", torch.bitwise_and),
        ("MPSBitwiseOr", torch.bitwise_or),
        ("MPSBitwiseXor", torch.bitwise_xor),
    ):
        KINDS[kind] = Case(
            lambda i, j, p, q, f=function: (f(i, j), f(i, 6), f(p, q)),
            (INT_A, INT_B, integers(3, 5) > 0, integers(5, seed=2) > 2),
            fp16=False,
        )


def comparison_kinds():
    same = A.expand(3, 7, 5).clone()
    same[:, ::2] = B[::2]
    for kind, function in (
        ("MPSEq", torch.eq),
        ("MPSNe", torch.ne),
        ("MPSGe", torch.ge),
        ("MPSGt", torch.gt),
        ("MPSLe", torch.le),
        ("MPSLt", torch.lt),
    ):
        KINDS[kind] = Case(
            lambda x, y, i, j, f=function: (f(x, y), f(y, 0.5), f(i, 2), f(i, j)),
            (same, B, integers(9, low=0, high=4), integers(9, low=0, high=4, seed=1)),
        )


def unary_kinds():
    unary("MPSExp", torch.exp)
    unary("MPSExp2", torch.exp2, preserve=(aten.exp2.default,))
    unary("MPSReciprocal", torch.reciprocal, low=0.25)
    unary("MPSSqrt", torch.sqrt, low=0)
    unary("MPSNeg", torch.neg)
    unary("MPSLog", torch.log, low=0.25)
    unary("MPSLog10", torch.log10, low=0.25)
    unary("MPSLog2", torch.log2, low=0.25)
    unary("MPSErf", torch.erf)
    unary("MPSFloor", torch.floor)
    unary("MPSCeil", torch.ceil)
    unary("MPSRsqrt", torch.rsqrt, low=0.25)
    unary("MPSSigmoid", torch.sigmoid)
    unary("MPSSin", torch.sin)
    unary("MPSSign", torch.sign)
    unary("MPSCos", torch.cos)
    unary("MPSTan", torch.tan, low=-1.25, high=1.25)
    unary("MPSAbs", torch.abs)
    unary("MPSAsin", torch.asin, low=-1, high=1)
    unary("MPSAcos", torch.acos, low=-1, high=1)
    unary("MPSAtan", torch.atan)
    unary("MPSSinh", torch.sinh)
    unary("MPSCosh", torch.cosh)
    unary("MPSTanh", torch.tanh)
    unary("MPSAsinh", torch.asinh)
    unary("MPSAcosh", torch.acosh, low=1, high=5)
    unary("MPSAtanh", torch.atanh, low=-0.9, high=0.9)
    unary("MPSRound", torch.round)
    special = torch.tensor([[1.5, float("nan"), -2.0], [float("inf"), 0.0, float("-inf")]])
    KINDS["MPSIsnan"] = Case(lambda x: (torch.isnan(x), torch.isnan(x[1])), (special,))
    KINDS["MPSIsinf"] = Case(lambda x: (torch.isinf(x), torch.isinf(x[0])), (special,))
    bits = integers(3, 5)
    KINDS["MPSBitwiseNot"] = Case(
        lambda i, p: (torch.bitwise_not(i), torch.bitwise_not(p)), (bits, bits > 1), fp16=False
    )
    KINDS["MPSLogicalNot"] = Case(
        lambda p, q: (torch.logical_not(p), torch.logical_not(q)), (bits > 1, bits[0] > 0), fp16=False
    )


def algebra_kinds():
    KINDS["MPSMatMul"] = Case(
        lambda a, b, c, d: (a @ b, torch.bmm(c, d), b.t() @ a.t()),
        (floats(3, 5), floats(5, 7), floats(2, 3, 11), floats(2, 11, 5)),
    )
    KINDS["MPSAddmm"] = Case(
        lambda c, a, b, weight: (
            torch.addmm(c, a, b),
            torch.addmm(c, a, b, beta=0.5, alpha=-2),
            F.linear(a, weight, c[0]),
        ),
        (floats(3, 7), floats(3, 5), floats(5, 7)),
        constants={"weight": floats(7, 5, seed=3)},
    )
    KINDS["MPSDequantizePerChannelGroup"] = Case(
        int4_linear,
        (floats(3, 64, low=-1, high=1),),
        constants={
            "weight": integers(6, 64, low=-8, high=8, dtype=torch.int8),
            "scales": floats(6, 2, low=0.125, high=0.5),
            "zeros": torch.zeros(6, 2),
        },
    )


def int4_linear(x, weight, scales, zeros):
    dequantize = torch.ops.quantized_decomposed.dequantize_per_channel_group.default
    full = dequantize(weight, scales, zeros, -8, 7, torch.int8, 32, torch.float32)
    return F.linear(x, full)


def constant_kinds():
    x = floats(3, 5)
    KINDS["MPSFull"] = Case(
        lambda a: (
            a + torch.full((2, 1, 5), 1.75),
            torch.full((3,), 7, dtype=torch.int32) + a[:, 0].to(torch.int32),
            torch.maximum(a, torch.full((), float("-inf"))),
        ),
        (x,),
    )
    KINDS["MPSFullLike"] = Case(
        lambda a: (a * torch.full_like(a, -0.5), torch.full_like(a, 3, dtype=torch.int32) + a.to(torch.int32)), (x,)
    )
    KINDS["MPSArange"] = Case(lambda a: (torch.arange(2, 17, 3) + a[0].long(), torch.arange(-1.0, 1.5, 0.5) * a), (x,))


def choice_kinds():
    x, y, i = floats(3, 1, 5), floats(7, 5, seed=1), integers(4, 3)
    KINDS["MPSClamp"] = Case(
        lambda a, b: (
            torch.clamp(a, -0.5, 1.25),
            torch.clamp(a, min=0.25),
            torch.clamp(a, max=0),
            torch.clamp(b, -2, 5),
        ),
        (x, i),
    )
    KINDS["MPSWhere"] = Case(
        lambda p, a, b, c: (torch.where(p, a, b), torch.where(a > 0, a, 0.5), torch.where(c > 1, c, c * 2)),
        (integers(7, 1) > 0, x, y, i),
    )


def put_columns(x, columns, value):
    x = x.clone()
    x[:, columns] = value
    return x


def put_corners(x, first, last, value):
    x = x.clone()
    x[first, :, last] = value
    return x


def index_kinds():
    x = floats(5, 7, 3)
    rows, columns = torch.tensor([4, 0, 2, 2]), torch.tensor([1, 6, 0, 3])
    KINDS["MPSIndexSelect"] = Case(
        lambda a, i, j: (torch.index_select(a, 1, i), torch.index_select(a, -1, j)),
        (x, torch.tensor([6, 0, 0, 5, 2]), torch.tensor([2, 1], dtype=torch.int32)),
        preserve=(aten.index_select.default,),
    )
    KINDS["MPSEmbedding"] = Case(
        lambda i, j, table: (F.embedding(i, table), F.embedding(j, table, padding_idx=3)),
        (integers(2, 5, low=0, high=11, dtype=torch.int64), integers(3, low=0, high=11, dtype=torch.int64)),
        constants={"table": floats(11, 6)},
    )
    KINDS["MPSIndexTensor"] = Case(
        lambda a, i, j: (a[i], a[:, j], a[i, j], a[i[:, None], j], a[i, :, j % 3], a[i, j, j % 3]), (x, rows, columns)
    )
    KINDS["MPSIndexPut"] = Case(
        lambda a, i, j, v, w, s: (
            torch.index_put(a, (i,), v),
            torch.index_put(a, (i, j), w),
            put_columns(a, j, s),
            put_corners(a, i, j % 3, s),
        ),
        (x, torch.tensor([4, 0, 2]), torch.tensor([1, 6, 3]), floats(3, 7, 3, seed=1), floats(3, 3, seed=2), floats(1)),
    )
    KINDS["MPSScatter"] = Case(
        lambda a, b, c: (
            torch.slice_scatter(a, b, 1, 1, 6, 2),
            torch.slice_scatter(a, c, 0, -2),
            torch.slice_scatter(a, b, -2, 0, 3),
        ),
        (x, floats(5, 3, 3, seed=1), floats(2, 7, 3, seed=2)),
        preserve=(aten.slice_scatter.default,),
    )


def shape_kinds():
    x = floats(3, 5, 7)
    KINDS["MPSPermute"] = Case(lambda a: (a.permute(2, 0, 1), a.permute(0, -1, 1), a[0].t()), (x,))
    KINDS["MPSView"] = Case(lambda a: (a.reshape(15, 7), a.reshape(-1), a.reshape(1, 21, 5)), (x,))
    KINDS["MPSExpand"] = Case(
        lambda a, b: (a.expand(3, 4, 5).clone(), b.expand(2, 3, -1).clone()), (floats(3, 1, 5), floats(7))
    )
    KINDS["MPSCat"] = Case(
        lambda a, b: (torch.cat([a, b], 1), torch.cat([a, a, a], -1), torch.cat([a[0], b[0]])), (x, floats(3, 2, 7))
    )
    KINDS["MPSSqueeze"] = Case(lambda a: (a.squeeze(1), a.squeeze((1, 3)), a.squeeze(-1)), (floats(3, 1, 5, 1),))
    KINDS["MPSUnsqueeze"] = Case(lambda a: (a.unsqueeze(0), a.unsqueeze(2), a.unsqueeze(-1)), (x,))
    KINDS["MPSSelect"] = Case(lambda a: (a[1], a.select(1, -2), a.select(-1, 6)), (x,))
    KINDS["MPSSlice"] = Case(lambda a: (a[1:], a[:, 1:4], a[..., ::3], a[:, -2:], a[..., 1:-1:2], a[:, :100]), (x,))
    KINDS["MPSPixelShuffle"] = Case(
        lambda a, b: (F.pixel_shuffle(a, 2), F.pixel_shuffle(b, 3)),
        (floats(2, 12, 3, 5), floats(1, 9, 2, 3)),
        preserve=(aten.pixel_shuffle.default,),
    )
    KINDS["MPSSplitWithSizes"] = Case(lambda a: (*torch.split(a, [1, 4, 2], -1), *torch.split(a, [2, 1])), (x,))
    KINDS["MPSCast"] = Case(
        lambda a, i: (
            a.to(torch.int32),
            i.to(torch.float32),
            a.to(torch.float16),
            i.to(torch.int64),
            (a > 0).to(torch.float32),
        ),
        (x, integers(3, 5)),
    )


def window_kinds():
    x = floats(2, 6, 9, 7, low=-1, high=1)
    KINDS["MPSConv2D"] = Case(
        lambda a, b, w, bias, grouped, line: (
            F.conv2d(a, w, bias, stride=(2, 1), padding=(1, 2)),
            F.conv2d(a, grouped, None, dilation=(2, 1), groups=3),
            F.conv1d(b, line, None, stride=2, padding=1),
        ),
        (x, floats(2, 6, 11, low=-1, high=1)),
        constants={
            "w": floats(5, 6, 3, 2, low=-1, high=1),
            "bias": floats(5, low=-1, high=1),
            "grouped": floats(9, 2, 3, 3, low=-1, high=1),
            "line": floats(4, 6, 3, low=-1, high=1),
        },
    )
    KINDS["MPSDepthwiseConv2D"] = Case(
        lambda a, w, bias, twice: (
            F.conv2d(a, w, bias, stride=(1, 2), padding=(2, 1), groups=6),
            F.conv2d(a, twice, None, dilation=2, groups=6),
        ),
        (x,),
        constants={
            "w": floats(6, 1, 3, 2, low=-1, high=1),
            "bias": floats(6, low=-1, high=1),
            "twice": floats(12, 1, 2, 3, low=-1, high=1),
        },
    )
    y = apart(2, 3, 9, 7)
    KINDS["MPSMaxPool2DWithIndices"] = Case(
        lambda a: (
            F.max_pool2d(a, (3, 2)),
            F.max_pool2d(a, 3, stride=(2, 1), padding=1),
            *F.max_pool2d(a, 2, stride=3, dilation=2, return_indices=True),
            F.max_pool2d(a, 2, stride=2, ceil_mode=True),
            F.max_pool2d(a, 3, stride=2, padding=1, ceil_mode=True),
        ),
        (y,),
    )
    KINDS["MPSAvgPool2D"] = Case(
        lambda a: (
            F.avg_pool2d(a, (3, 2)),
            F.avg_pool2d(a, 3, stride=(2, 1), padding=1),
            F.avg_pool2d(a, 3, stride=2, padding=1, count_include_pad=False),
            F.avg_pool2d(a, 2, stride=2, ceil_mode=True),
            F.avg_pool2d(a, 3, stride=2, padding=1, ceil_mode=True),
            F.avg_pool2d(a, 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False),
            F.avg_pool2d(a, 3, stride=2, padding=1, count_include_pad=False, divisor_override=5),
        ),
        (y,),
    )
    KINDS["MPSConstantPadND"] = Case(
        lambda a: (F.pad(a, (1, 2)), F.pad(a, (0, 1, 2, 0), value=-1.5), F.pad(a, (1, 1, 0, 2, 1, 0))),
        (floats(3, 5, 2),),
    )


def normalization_kinds():
    KINDS["MPSBatchNorm"] = Case(
        lambda a, b, mean, var, weight, bias: (
            F.batch_norm(a, mean, var, weight, bias, eps=1e-3),
            F.batch_norm(a, mean, var),
            F.batch_norm(b, mean, var, weight, bias),
        ),
        (floats(2, 3, 5, 7), floats(4, 3)),
        constants={
            "mean": floats(3),
            "var": floats(3, low=0.5, high=2),
            "weight": floats(3, low=0.5, high=2, seed=1),
            "bias": floats(3, seed=2),
        },
    )
    KINDS["MPSLayerNorm"] = Case(
        lambda a, weight, bias: (
            F.layer_norm(a, (5, 7), weight, bias),
            F.layer_norm(a, (7,)),
            F.layer_norm(a, (7,), weight[0], None, eps=1e-2),
        ),
        (floats(3, 5, 7),),
        constants={"weight": floats(5, 7, low=0.5, high=2), "bias": floats(5, 7, seed=1)},
    )
    KINDS["MPSMean"] = Case(
        lambda a: (a.mean(-1), a.mean((0, 2)), a.mean((1, -1), keepdim=True), a.mean()), (floats(3, 5, 7),)
    )


for family in (
    activation_kinds,
    binary_kinds,
    comparison_kinds,
    unary_kinds,
    algebra_kinds,
    constant_kinds,
    choice_kinds,
    index_kinds,
    shape_kinds,
    window_kinds,
    normalization_kinds,
):
    family()
