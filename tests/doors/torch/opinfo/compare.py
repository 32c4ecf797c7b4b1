# SPDX-License-Identifier: Apache-2.0
"""Compares what two devices computed, and says where they first differ."""
import torch
from torch.utils import _pytree as pytree

from .tolerances import BY_DTYPE

# Ops that choose among equal elements as they like: (position of `dim` in args, its default).
TIES = {"sort": (0, -1), "argsort": (0, -1), "msort": (None, 0), "topk": (1, -1), "kthvalue": (1, -1), "mode": (0, -1),
        "median": (0, None), "nanmedian": (0, None)}
# Their contents are whatever was in memory.
UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}

# However wrong the CPU is, a relative error above this is wrong (f32, half precision).
WORST = (1e-3, 5e-2)
# Two results of the same steps have errors of the same size, not the same errors: the order of sums decides.
OF_A_SIZE = 4


class Differs(Exception):
    """Two results are not the same."""


def leaves(result):
    return [x for x in pytree.tree_leaves(result) if x is not None]


def plain(t):
    """A strided tensor on the CPU, with the same elements."""
    if t.is_nested:
        return torch.cat([plain(x).flatten() for x in t.unbind()]) if t.size(0) else torch.empty(0)
    t = t.detach()
    if t.layout != torch.strided:
        t = t.to("cpu").to_dense()
    return t.to("cpu").resolve_conj().resolve_neg()


def same_form(ours, theirs, where):
    for what in ("dtype", "layout", "is_nested"):
        if getattr(ours, what) != getattr(theirs, what):
            raise Differs(f"{where}: {what} {getattr(ours, what)}, expected {getattr(theirs, what)}")
    if not ours.is_nested and ours.shape != theirs.shape:
        raise Differs(f"{where}: shape {tuple(ours.shape)}, expected {tuple(theirs.shape)}")


def near(ours, theirs, tolerance):
    """Where two tensors on the CPU agree; NaN is like NaN."""
    if not (ours.is_floating_point() or ours.is_complex()):
        if tolerance is None or tolerance == (0, 0) or ours.dtype == torch.bool:
            return ours == theirs
        return torch.isclose(ours.double(), theirs.double(), atol=tolerance[0], rtol=tolerance[1])
    rtol, atol = BY_DTYPE.get(str(ours.dtype)[6:], (0.0, 0.0))
    if tolerance is not None:
        atol, rtol = tolerance
    if ours.dtype in (torch.float16, torch.bfloat16):
        ours, theirs = ours.float(), theirs.float()
    elif ours.dtype == torch.complex32:
        ours, theirs = ours.to(torch.complex64), theirs.to(torch.complex64)
    return torch.isclose(ours, theirs, atol=atol, rtol=rtol, equal_nan=True)


def first_difference(ours, theirs, good, where):
    index = tuple((~good).nonzero()[0].tolist()) if good.dim() else ()
    return Differs(f"{where}{list(index)} of {tuple(ours.shape)}: {ours[index].item()}, expected {theirs[index].item()} "
                   f"({int((~good).sum())} of {good.numel()} differ)")


def compare(ours, theirs, tolerance, what="output", values=True):
    """Raises Differs at the first leaf that is not the same."""
    ours, theirs = leaves(ours), leaves(theirs)
    if len(ours) != len(theirs):
        raise Differs(f"{len(ours)} {what}s, expected {len(theirs)}")
    for number, (a, b) in enumerate(zip(ours, theirs)):
        where = f"{what} {number}" if len(ours) > 1 else what
        if not isinstance(b, torch.Tensor):
            if type(a) is not type(b):
                raise Differs(f"{where}: {'a tensor' if isinstance(a, torch.Tensor) else a}, expected {b}")
            if values and isinstance(b, (bool, int, float, complex)):
                compare(torch.tensor(a), torch.tensor(b), tolerance, where)
            elif values and isinstance(b, str) and a != b:
                raise Differs(f"{where}: {a}, expected {b}")
            continue
        if not isinstance(a, torch.Tensor):
            raise Differs(f"{where}: {a}, expected a tensor")
        same_form(a, b, where)
        if values:
            a, b = plain(a), plain(b)
            good = near(a, b, tolerance)
            if not good.all():
                raise first_difference(a, b, good, where)


def as_exact_as_cpu(ours, theirs, exact, tolerance):
    """Second opinion from a wider dtype: every element's error is of the size of the CPU's worst, or within the tolerance."""
    ours, theirs, exact = leaves(ours), leaves(theirs), leaves(exact)
    if not len(ours) == len(theirs) == len(exact):
        return False
    for a, b, e in zip(ours, theirs, exact):
        if not isinstance(a, torch.Tensor) or not (a.is_floating_point() or a.is_complex()):
            try:
                compare(a, b, tolerance)
            except Differs:
                return False
            continue
        if a.shape != e.shape or a.dtype != b.dtype or not (e.is_floating_point() or e.is_complex()):
            return False
        half = a.dtype in (torch.float16, torch.bfloat16)
        wide = torch.complex128 if a.is_complex() else torch.float64
        a, b, e = plain(a), plain(b), plain(e)
        good = near(a, b, tolerance) | near(a, e.to(a.dtype), tolerance)
        if not good.all():
            a, b, e = a.to(wide), b.to(wide), e.to(wide)
            sane = torch.isfinite(a) & torch.isfinite(b) & torch.isfinite(e)
            worst = ((b - e).abs() / (1 + e.abs()))[sane].amax() if sane.any() else torch.tensor(0.0)
            bound = (OF_A_SIZE * worst).clamp(max=WORST[half])
            good |= sane & ((a - e).abs() <= bound * (1 + e.abs()))
            if not good.all():
                return False
    return True


def dim_of(op, sample):
    """The axis along which an op of TIES chooses."""
    position, default = TIES[op.name]
    given = sample.args[position] if position is not None and len(sample.args) > position else default
    return sample.kwargs.get("dim", given)


def ties(op, sample, ours, theirs, tolerance):
    """Whether only the choice among equal elements differs: the values agree, and so does what the indices point at."""
    if op.name not in TIES or not isinstance(sample.input, torch.Tensor) or sample.kwargs.get("stable"):
        return False
    dim = dim_of(op, sample)
    if not isinstance(dim, int) or isinstance(dim, bool):
        return False
    pairs = [(plain(a), plain(b)) for a, b in zip(leaves(ours), leaves(theirs))]
    if any(a.shape != b.shape or a.dtype != b.dtype for a, b in pairs):
        return False
    *values, (a, b) = pairs
    x = plain(sample.input)
    if not all(near(c, d, tolerance).all() for c, d in values) or not x.dim():
        return False
    if x.dim() > a.dim():
        a, b = a.unsqueeze(dim), b.unsqueeze(dim)
    if (a.lt(0) | a.ge(x.size(dim))).any() or not near(x.gather(dim, a), x.gather(dim, b), tolerance).all():
        return False
    return not (a.sort(dim).values.diff(dim=dim) == 0).any()  # no element was taken twice
