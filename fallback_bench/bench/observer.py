# SPDX-License-Identifier: Apache-2.0
"""Whether a call really fell back, as seen from outside.

AnyMPS tells it. Elsewhere it is PyTorch's own warning, which comes for every call while torch.set_warn_always() is on.
"""

import re
import warnings
from dataclasses import dataclass, field

import torch
from torch.utils._pytree import tree_leaves

from .environment import has_door

MESSAGE = re.compile(r"The operator '(?:aten::)?([\w.:]+)' is not currently supported on the MPS backend")


@dataclass
class Seen:
    ops: dict = field(default_factory=dict)  # how often each op fell back
    bytes_copied: int = 0
    result: object = None


def _bytes(value):
    return sum(leaf.nbytes for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor))


class Warned:
    """Counts PyTorch's warnings of a fallback while it is entered."""

    def __enter__(self):
        self.ops = {}
        self._always = torch.is_warn_always_enabled()
        self._catch = warnings.catch_warnings()
        self._catch.__enter__()
        torch.set_warn_always(True)
        warnings.simplefilter("always")
        show = warnings.showwarning

        def count(message, *rest, **named):
            found = MESSAGE.search(str(message))
            if found:
                self.ops[found[1]] = self.ops.get(found[1], 0) + 1
            else:
                show(message, *rest, **named)

        warnings.showwarning = count
        return self

    def __exit__(self, *error):
        torch.set_warn_always(self._always)
        self._catch.__exit__(*error)


def by_warnings(call):
    with Warned() as warned:
        result = call()
    copied = _bytes((call.args, call.kwargs)) + _bytes(result) if warned.ops else 0
    return Seen(warned.ops, copied, result)


def by_door(call):
    import torch_anymps

    def copied():
        return sum(size for direction, (_, size) in torch_anymps.transfers().items() if direction != "within")

    torch_anymps.fallbacks(reset=True)
    before = copied()
    result = call()
    ops = {entry["op"].removeprefix("aten::"): entry["count"] for entry in torch_anymps.fallbacks()}
    return Seen(ops, copied() - before, result)


def observe(call):
    """Calls once and says what fell back."""
    return (by_door if has_door() else by_warnings)(call)
