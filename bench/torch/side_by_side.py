# SPDX-License-Identifier: Apache-2.0
"""Of training steps on mps: the share of the time that elementwise calls on many elements take, and those of them that stand side
by side. No more than the last could be put off and run as one: docs/guides/torch.md says why that is not done.

    .venvs/torch/bin/python bench/torch/side_by_side.py
"""
import time

import torch
from run_torch import model_case, models
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

MANY = 1 << 16
ELEMENTWISE = set("""add sub mul div neg abs sqrt rsqrt reciprocal exp log pow tanh sigmoid relu gelu silu clamp hardtanh maximum minimum
    where masked_fill addcmul addcdiv lerp eq ne lt le gt ge sign fill zero copy _to_copy clone threshold_backward hardtanh_backward
    gelu_backward silu_backward sigmoid_backward tanh_backward native_dropout native_dropout_backward""".split())
NOT_COMPUTED = set("detach view _unsafe_view empty_like empty".split())


class Calls(TorchDispatchMode):
    """Those that compute: whether they are elementwise on many elements, and seconds. Calls are done when they return."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        start = time.perf_counter()
        made = op(*args, **(kwargs or {}))
        seconds = time.perf_counter() - start
        name = op._schema.name.removeprefix("aten::")
        if not op.is_view and name not in NOT_COMPUTED:
            most = max((x.numel() for x in tree_leaves((args, kwargs, made)) if isinstance(x, torch.Tensor)), default=0)
            self.seen.append((most >= MANY and name.rstrip("_") in ELEMENTWISE, seconds))
        return made


def shares(step):
    best = None
    for _ in range(2):
        step()
    for _ in range(3):
        with Calls() as calls:
            step()
        seen = calls.seen
        whole = sum(seconds for _, seconds in seen)
        each = sum(seconds for elementwise, seconds in seen if elementwise)
        near = [elementwise and (i > 0 and seen[i - 1][0] or i + 1 < len(seen) and seen[i + 1][0]) for i, (elementwise, _) in enumerate(seen)]
        beside = sum(seconds for (_, seconds), is_near in zip(seen, near) if is_near)
        if best is None or whole < best[0]:
            best = whole, each / whole, beside / whole
    return best


def main():
    plain = "resnet18, AdamW without foreach"
    models.MODELS[plain] = (*models.MODELS["resnet18"][:2], lambda parameters: torch.optim.AdamW(parameters, foreach=False))
    for name in ("resnet18", plain, "mobilenet_v2", "transformer"):
        whole, each, beside = shares(model_case(name, True)("mps", None))
        print(f"{name}, a training step: {whole * 1e3:.0f} ms in calls, elementwise {each:.1%}, side by side {beside:.1%}", flush=True)


if __name__ == "__main__":
    main()
