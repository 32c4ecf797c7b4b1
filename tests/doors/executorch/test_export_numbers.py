# SPDX-License-Identifier: Apache-2.0
"""What the exporter writes means what the module computes, where the wheel's own exporter is wrong or fails."""

import pytest

pytest.importorskip("executorch.backends.apple.mps", reason="needs .venvs/executorch: scripts/env executorch")

import torch  # noqa: E402

from anymps_executorch.bundles.kinds import floats, integers  # noqa: E402
from anymps_executorch.checking import differences  # noqa: E402

F = torch.nn.functional
X = floats(3, 5)
I = integers(3, 5)
PICTURE = floats(1, 2, 7, 6)

# name: (function, inputs, kinds that must be written)
CASES = {
    "lifted constant": (lambda x: x * torch.tensor([1.0, 2, 3, 4, 5]), (X,), ["MPSMul"]),
    "cast to int": (lambda x: x.to(torch.int32) + 1, (X,), ["MPSCast", "MPSAdd"]),
    "cast of a constant": (lambda x: x + torch.tensor([3]), (X,), ["MPSAdd"]),
    "int divided by int": (lambda i: i / 4, (I,), ["MPSDiv"]),
    "floor division": (lambda i: i // 4, (I,), ["MPSDiv"]),
    "scalars 2 and 2.0": (lambda x, i: (x * 2, i * 2), (X, I), ["MPSMul"]),
    "int32 scalar": (lambda i: i + 7, (I,), ["MPSAdd"]),
    "float16 scalar": (lambda h: h * 0.5, (X.half(),), ["MPSMul"]),
    "mixed dtypes": (lambda x, i: x + i, (X, I), ["MPSCast", "MPSAdd"]),
    "sqrt of ints": (lambda i: torch.sqrt(i.abs()), (I,), ["MPSCast", "MPSSqrt"]),
    "addmm factors": (
        lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=3),
        (floats(2, 4), floats(2, 3), floats(3, 4)),
        ["MPSAddmm"],
    ),
    "slice from a start": (lambda x: torch.ops.aten.slice(x, 1, 2), (X,), ["MPSSlice"]),
    "slice from the back": (lambda x: x[:, -3:-1], (X,), ["MPSSlice"]),
    "scatter from the back": (lambda x, y: torch.slice_scatter(x, y, 1, -2), (X, floats(3, 2)), []),
    "hardtanh defaults": (lambda x: torch.ops.aten.hardtanh(x), (X,), ["MPSHardTanh"]),
    "clamp to infinity": (lambda x: torch.clamp(x, 0.5, float("inf")), (X,), ["MPSClamp"]),
    "full of minus infinity": (lambda x: torch.maximum(x, torch.full_like(x, float("-inf"))), (X,), ["MPSFullLike"]),
    "ints by full": (lambda i: i + torch.full((5,), 3, dtype=torch.int32), (I,), ["MPSFull"]),
    "pool without a stride": (lambda p: torch.ops.aten.avg_pool2d(p, [2, 2]), (PICTURE,), ["MPSAvgPool2D"]),
    "divisor and padding": (
        lambda p: F.avg_pool2d(p, 3, 2, 1, count_include_pad=False, divisor_override=4),
        (PICTURE,),
        ["MPSAvgPool2D"],
    ),
    "padding not counted": (lambda p: F.avg_pool2d(p, 3, 2, 1, True, False), (PICTURE,), ["MPSAvgPool2D"]),
    "max pool, ceil": (lambda p: F.max_pool2d(p, 3, 2, 1, ceil_mode=True), (PICTURE,), ["MPSMaxPool2DWithIndices"]),
    "mean of all": (lambda x: x.mean(), (X,), ["MPSMean"]),
    "sum": (lambda x: (x.sum(1), x.sum((0, 1), keepdim=True)), (X,), ["MPSMean", "MPSMul"]),
    "any": (lambda x: (x > 2.5).any(1), (X,), ["MPSMean", "MPSNe"]),
    "two indices": (lambda x, i, j: x[i, j], (X, torch.tensor([2, 0]), torch.tensor([4, 1])), ["MPSIndexTensor"]),
    "put with two indices": (
        lambda x, i, j, v: torch.index_put(x, (i, j), v),
        (X, torch.tensor([2, 0]), torch.tensor([4, 1]), floats(2)),
        ["MPSIndexPut"],
    ),
    "padding row of a table": (
        lambda i, table: F.embedding(i, table, padding_idx=2),
        (torch.tensor([2, 5, 0]), floats(6, 3)),
        ["MPSEmbedding"],
    ),
    "cat of dtypes": (lambda x, i: torch.cat([x, i]), (X, I), ["MPSCast", "MPSCat"]),
    "maximum": (lambda x, y: torch.maximum(x, y), (X, floats(5)), ["MPSMax"]),
    "logical and": (lambda x, i: torch.logical_and(x, i), (X, I), ["MPSCast", "MPSBitwiseAnd"]),
    "attention": (
        lambda q: F.scaled_dot_product_attention(q, q * 0.5, q + 1),
        (floats(1, 2, 5, 4),),
        ["MPSMatMul", "MPSSoftmax"],
    ),
    "attention with a mask": (
        lambda q, m: F.scaled_dot_product_attention(q, q * 0.5, q + 1, m),
        (floats(1, 2, 5, 4), torch.tensor([[True] * 5, [False] * 5, [True, False] * 2 + [True]] + [[True] * 5] * 2)),
        ["MPSSoftmax", "MPSWhere"],
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("fp16", [False, True], ids=["f32", "f16"])
def test_case(lowered, name, fp16):
    function, inputs, kinds = CASES[name]
    made = lowered(function, *inputs, fp16=fp16)
    report = made.reports["forward"]
    assert not report.outside and len(report.delegates) == 1, str(report)
    assert all(report.kinds()[kind] for kind in kinds), str(report)
    assert max(differences(made)) <= (2e-2 if fp16 else 1e-6)


def test_second_export_of_a_process(lowered):
    """The wheel keeps ids of the first export; both programs must come out the same."""
    first, second = (lowered(lambda x: torch.relu(x) * 2 + 1, X).buffer() for _ in range(2))
    assert first == second


def test_two_delegates(lowered):
    """A constant in both delegates of one program."""
    made = lowered(lambda x: torch.cumsum(x * 3 + 1, 0) * 3 + 1, X)
    assert len(made.reports["forward"].delegates) == 2
    assert max(differences(made)) == 0


def test_constant_in_a_larger_storage(lowered):
    class Half(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("rows", floats(6, 5)[3:])

        def forward(self, x):
            return x + self.rows

    made = lowered(Half(), X)
    assert max(differences(made)) == 0
    payload = made.reports["forward"].payloads[0]
    assert int.from_bytes(payload[16:24], "little") == 64  # 15 floats, padded to 16 bytes


@pytest.mark.parametrize(("low", "high", "zero"), [(-8, 7, 0), (-8, 7, 2), (-128, 127, 0)])
def test_groups_of_weights(lowered, low, high, zero):
    """int4 is a node of its own; wider weights and zero points are written out."""
    dequantize = torch.ops.quantized_decomposed.dequantize_per_channel_group.default

    class Weights(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("weight", integers(4, 64, low=low, high=high, dtype=torch.int8))
            self.register_buffer("scales", floats(4, 2, low=0.25))
            self.register_buffer("zeros", torch.full((4, 2), float(zero)))

        def forward(self, x):
            full = dequantize(self.weight, self.scales, self.zeros, low, high, torch.int8, 32, torch.float32)
            return x @ full.t()

    made = lowered(Weights(), floats(2, 64))
    kinds = made.reports["forward"].kinds()
    assert kinds["MPSDequantizePerChannelGroup"] == (high == 7 and zero == 0)
    assert max(differences(made)) <= 1e-5


def test_buffer_that_changes_is_no_constant(lowered):
    class Keeps(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("last", torch.zeros(3, 5))

        def forward(self, x):
            y = self.last * 2 + x
            self.last.copy_(y + 1)
            return y

    made = lowered(Keeps(), X)
    signature = made.graphs["forward"][1].graph_signature
    assert list(signature.buffers_to_mutate.values()) == ["last"]
    assert "last" in signature.inputs_to_buffers.values()


def test_initial_state_of_a_buffer(lowered):
    """ExecuTorch leaves out what a buffer that changes starts with unless it is told."""

    class Counts(torch.nn.Module):
        def __init__(self, start):
            super().__init__()
            self.register_buffer("count", torch.full((64,), float(start)))

        def forward(self, x):
            self.count.add_(1)
            return x * self.count[:5]

    zero, three = (len(lowered(Counts(start), X).buffer()) for start in (0, 3))
    assert three - zero >= 256


def test_lowest_float_stays_finite_in_halves(lowered):
    """A row that is masked with the lowest float32 is uniform; with -inf it would be no number."""
    lowest = torch.finfo(torch.float32).min
    made = lowered(
        lambda x: (x + torch.full((5,), lowest)).softmax(1) + torch.where(x > 9, x, lowest).softmax(1), X, fp16=True
    )
    assert max(differences(made)) <= 2e-2


def test_channels_last_inputs(lowered):
    picture = PICTURE.to(memory_format=torch.channels_last)
    made = lowered(lambda p: p * 2, picture)
    value = made.program.executorch_program.execution_plan[0].values[0].val
    assert list(value.dim_order) == [0, 1, 2, 3]
    assert max(differences(made)) == 0


def test_open_extent(lowered):
    batch = torch.export.Dim("batch", min=1, max=8)
    made = lowered(
        lambda x: torch.relu(x.reshape(x.shape[0], 4)).softmax(1), floats(3, 2, 2), dynamic_shapes=(({0: batch},),)
    )
    report = made.reports["forward"]
    assert not report.outside and len(report.delegates) == 1, str(report)
    for count in (1, 8):
        assert max(differences(made, inputs=(floats(count, 2, 2),))) <= 1e-6
