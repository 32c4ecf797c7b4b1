# SPDX-License-Identifier: Apache-2.0
"""What is right, where the CPU's own f64 is not good enough to say it, and how far a right answer may be from it."""
import mpmath
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from .compare import OF_A_SIZE, WORST, leaves, plain
from .samples import SampleInput

# Functions that torch computes in f64 with coefficients of f32 (j0 at -5.42 has 5 right digits).
BY_DIGITS = {
    "special_bessel_j0": lambda x: mpmath.besselj(0, x), "special_bessel_j1": lambda x: mpmath.besselj(1, x),
    "special_bessel_y0": lambda x: mpmath.bessely(0, x) if x > 0 else mpmath.nan,
    "special_bessel_y1": lambda x: mpmath.bessely(1, x) if x > 0 else mpmath.nan,
}
STEPS = 8  # that an op may round its numbers in, one behind the other


class ByDigits(TorchDispatchMode):
    """Computes these functions with 30 digits wherever they are called, in gradients too."""

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        function = BY_DIGITS.get(op.overloadpacket.__name__)
        if function is None or not args[0].is_floating_point():
            return op(*args, **(kwargs or {}))
        with mpmath.workdps(30):
            numbers = [float(function(mpmath.mpf(x))) for x in args[0].double().flatten().tolist()]
        return torch.tensor(numbers, dtype=torch.float64).reshape(args[0].shape).to(args[0].dtype)


def nudged(sample, dtype, seed, wide=True):
    """The sample with each number of its type moved by half the distance to the next one, up or down, in f64; or to the next."""
    generator = torch.Generator().manual_seed(seed)
    share, kind = torch.finfo(dtype).eps / (2 if wide else 1), torch.complex128 if dtype.is_complex else torch.float64

    def move(value):
        if not isinstance(value, torch.Tensor) or value.dtype != dtype:
            return value
        signs = torch.randint(0, 2, value.shape, generator=generator) * 2 - 1
        moved = value.detach().to(kind) * (1 + share * signs)
        return (moved if wide else moved.to(dtype)).requires_grad_(value.requires_grad)
    fields = pytree.tree_map(move, (sample.input, sample.args, sample.kwargs))
    return SampleInput(fields[0], args=fields[1], kwargs=fields[2], output_process_fn_grad=sample.output_process_fn_grad,
                       broadcasts_input=sample.broadcasts_input)


def within_rounding(ours, exact, moved, narrow, dtype, worst=None):
    """Whether ours is as near as rounding lets a result be: what the exact result moves by when its inputs are rounded in
    another way (`moved`: some such results) bounds the error of each tensor; below WORST times the steps that may round, or
    as far as the CPU comes for such inputs (`narrow`)."""
    eps = torch.finfo(dtype).eps
    if len(leaves(ours)) != len(leaves(exact)):
        return False
    for number, (a, e) in enumerate(zip(leaves(ours), leaves(exact))):
        if not isinstance(a, torch.Tensor) or not (a.is_floating_point() or a.is_complex()):
            if not isinstance(a, torch.Tensor) or not torch.equal(plain(a), plain(e)):
                return False
            continue
        if any(leaves(n)[number].dtype != a.dtype for n in narrow):
            return False
        wide = torch.complex128 if a.is_complex() else torch.float64
        a, e = plain(a).to(wide), plain(e).to(wide)
        if a.shape != e.shape or not (torch.isfinite(a) == torch.isfinite(e)).all():
            return False
        size = 1 + e.abs()
        sane = torch.isfinite(e)
        spread, error = (max([((plain(leaves(o)[number]).to(wide) - e).abs() / size)[sane].amax().item() for o in others if sane.any()],
                             default=0.0) for others in (moved, narrow))
        steps = max(STEPS * (spread + eps / 2), OF_A_SIZE * error)
        bound = max(min(steps, worst or WORST[dtype in (torch.float16, torch.bfloat16)]), spread)
        if ((a - e).abs()[sane] > bound * size[sane]).any():
            return False
    return True
