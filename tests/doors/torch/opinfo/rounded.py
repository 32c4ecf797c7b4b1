# SPDX-License-Identifier: Apache-2.0
"""Steps without an error of their own: each ATen op is computed in f64 and rounded once to the type it should have."""
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

WIDEST = {torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64,
          torch.complex32: torch.complex128, torch.complex64: torch.complex128}


def widened(value):
    if isinstance(value, torch.Tensor):
        return value.to(WIDEST.get(value.dtype, value.dtype))
    return WIDEST.get(value, value) if isinstance(value, torch.dtype) else value


class RoundedSteps(TorchDispatchMode):
    """What rounding alone makes of a chain of ops: an implementation may differ from it only by its own errors."""

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        aliases = any(a.alias_info for a in (*op._schema.arguments, *op._schema.returns))
        if aliases or torch.Tag.nondeterministic_seeded in op.tags:
            return op(*args, **kwargs)  # a view, a tensor that is written, random numbers
        exact = op(*pytree.tree_map(widened, args), **pytree.tree_map(widened, kwargs))
        try:
            made = op(*args, **kwargs)
        except NotImplementedError:  # the CPU has no such kernel: the narrow type of the arguments is what comes out
            narrow = [t.dtype for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor) and t.dtype in WIDEST]
            if len(set(narrow)) != 1:
                raise
            return pytree.tree_map(lambda t: t.to(narrow[0]) if isinstance(t, torch.Tensor) and t.dtype == WIDEST[narrow[0]] else t, exact)
        for narrow, wide in zip(pytree.tree_leaves(made), pytree.tree_leaves(exact)):
            if isinstance(narrow, torch.Tensor) and narrow.dtype in WIDEST and narrow.shape == wide.shape:
                narrow.copy_(wide)
        return made
