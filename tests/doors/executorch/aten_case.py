# SPDX-License-Identifier: Apache-2.0
"""How the tables of calls of torch's operators are written: what is called and with which tensors.

A case is one operator with odd shapes and one dtype. Needs torch; see make_aten.py, which makes programs of them."""
import executorch.exir.passes._quant_patterns_and_replacements  # noqa: F401 - registers quantized embeddings
import executorch.kernels.quantized  # noqa: F401 - registers out-variants
import torch

A = torch.ops.aten
Q = torch.ops.quantized_decomposed
F32, F16, BF16, F64 = torch.float32, torch.float16, torch.bfloat16, torch.float64
I8, I16, I32, I64, U8, BOOL = torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool
NAN, INF = float("nan"), float("inf")

CASES = []  # (family, name, function, inputs)
DYNAMIC = []  # (family, name, function, inputs to export with, their dynamic shapes, inputs to run with)


def rand(*shape, dtype=F32, low=-3, high=3):
    """Random numbers; the same for the same table."""
    if dtype == BOOL:
        return torch.rand(shape) < 0.5
    if dtype.is_floating_point:
        return (torch.rand(shape, dtype=F64) * (high - low) + low).to(dtype)
    low = max(low, torch.iinfo(dtype).min)
    return torch.randint(int(low), int(high) + 1, shape).to(dtype)


def case(family, name, function, *inputs):
    CASES.append((family, name, function, tuple(x.clone() for x in inputs)))


def dynamic(name, function, inputs, shapes, others):
    DYNAMIC.append(("dynamic", name, function, inputs, shapes, others))


def t(values, dtype=F32):
    return torch.tensor(values, dtype=dtype)


SPECIAL = t([0.0, -0.0, 1.5, -1.5, 2.5, -2.5, 0.5, INF, -INF, NAN, 1e-30, 7e4, -7e4])
