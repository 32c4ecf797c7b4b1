# SPDX-License-Identifier: Apache-2.0
"""The cases: (op, dtype, kind) as upstream's tests have them, each with what upstream expects of its own MPS device."""
import functools
import re
import unittest
import zlib
from dataclasses import dataclass

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_mps import mps_ops_grad_modifier, mps_ops_modifier

from . import DTYPES, VARIANTS, WITH_GRADIENT


@dataclass(frozen=True)
class Unit:
    """The work that shares one set of samples."""
    op: str
    dtype: str
    kinds: tuple


def name_of(op):
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


OPS = {name_of(op): op for op in op_db}


def dtype_of(short):
    return getattr(torch, DTYPES[short])


def added_by(modifier, op):
    """The decorators that upstream's modifier hangs on an op; the op stays as it was."""
    before = op.decorators
    modifier([op])
    added, op.decorators = op.decorators[len(before):], before
    return added


def upstream_expects(op):
    """{(kind, dtype)} where upstream's tests expect a failure of MPS, or skip because of one."""
    expected = set()
    for kind, modifier in (("forward", mps_ops_modifier), ("gradient", mps_ops_grad_modifier)):
        for mark in added_by(modifier, op):
            dtypes = set(mark.dtypes) if mark.dtypes is not None else None
            if dtypes == {torch.double, torch.cdouble}:
                continue  # hangs on every op: Apple's device has no float64, this one has
            if op.name.startswith(("empty", "new_empty")):
                continue  # skipped for their contents; here their form alone is compared
            assert any(d is unittest.expectedFailure or "skip" in getattr(d, "__qualname__", "") for d in mark.decorators)
            expected.update((kind, short) for short in DTYPES if dtypes is None or dtype_of(short) in dtypes)
    return expected


@functools.cache
def upstream_expects_of(name):
    return upstream_expects(OPS[name])


def expected_to_fail(name, short, kind):
    """Whether upstream expects the case to fail; a gradient fails too where there is no forward."""
    expected = upstream_expects_of(name)
    return ("gradient" if kind == "gradient" else "forward", short) in expected or kind == "gradient" and ("forward", short) in expected


def supports(op, short, kind):
    """Whether op_db has this case. The CPU's dtypes count as well as those of upstream's MPS: this device may know more."""
    dtype = dtype_of(short)
    if kind == "gradient":
        return (short in WITH_GRADIENT and op.supports_autograd
                and dtype in op.supported_backward_dtypes("cpu") | op.supported_backward_dtypes("mps"))
    if dtype not in op.supported_dtypes("cpu") | op.supported_dtypes("mps"):
        return False
    if kind == "out":
        return short == "f32" and op.supports_out
    if kind == "inplace":
        return short == "f32" and op.inplace_variant is not None
    return kind not in VARIANTS or short == "f32"


def select(pattern, dtypes, kinds, shard=(0, 1)):
    """(units, cases that op_db does not have)."""
    words = re.compile(pattern) if pattern else None
    units, missing = [], []
    for name in sorted(OPS):
        if words and not words.fullmatch(name):
            continue
        for short in dtypes:
            if zlib.crc32(f"{name} {short}".encode()) % shard[1] != shard[0]:
                continue
            kinds_here = [k for k in kinds if k not in VARIANTS or short == "f32"]
            kinds_here = [k for k in kinds_here if k != "gradient" or short in WITH_GRADIENT]
            wanted = tuple(k for k in kinds_here if supports(OPS[name], short, k))
            missing += [(name, short, k) for k in kinds_here if k not in wanted]
            if wanted:
                units.append(Unit(name, short, wanted))
    return units, missing


def sampled(units):
    """The part that CI runs: f32 of every op, and of the other dtypes one in five, by a hash of their names."""
    return [u for u in units if u.dtype == "f32" or zlib.crc32(f"{u.dtype} {u.op}".encode()) % 5 == 0]
