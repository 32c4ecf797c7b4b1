# SPDX-License-Identifier: Apache-2.0
"""Sample inputs: made once on the CPU, then carried to the device with their strides, offsets and conjugate bits."""
import dataclasses

import torch
from torch.testing._internal.opinfo.core import SampleInput
from torch.utils import _pytree as pytree

STAYS_ON_CPU = {"tensor_split": "args"}  # its indices are read by the host


def make(op, dtype, limit):
    """The op's samples; with a limit as many, evenly spread from the first to the last."""
    conjugated = dtype.is_complex and op.test_conjugated_samples
    found = list(op.sample_inputs("cpu", dtype, requires_grad=dtype.is_floating_point or dtype.is_complex,
                                  include_conjugated_inputs=conjugated, set_seed=True))
    if limit and len(found) > limit:
        found = [found[i * (len(found) - 1) // max(limit - 1, 1)] for i in range(limit)]
    return found


def move_storage(t, device):
    """A tensor on the device over a copy of t's whole storage: gaps, broadcasts and offsets are the same there."""
    flat = torch.empty(0, dtype=t.dtype).set_(t.untyped_storage(), 0, (t.untyped_storage().nbytes() // t.element_size(),), (1,))
    return flat.clone().to(device).as_strided(t.size(), t.stride(), t.storage_offset())


def move_tensor(t, device, dtype):
    if t.is_conj():
        return move_tensor(t.detach().conj(), device, dtype).conj().requires_grad_(t.requires_grad)
    if t.is_neg():
        return torch._neg_view(move_tensor(torch._neg_view(t.detach()), device, dtype)).requires_grad_(t.requires_grad)
    source = t.detach()
    if dtype is not None and (t.is_floating_point() or t.is_complex()):
        source = source.to(dtype)
    if source.layout != torch.strided or source.is_nested or source.is_contiguous() and not source.storage_offset():
        moved = source.clone().to(device)
    else:
        moved = move_storage(source, device)
    return moved.requires_grad_(t.requires_grad and (moved.is_floating_point() or moved.is_complex()))


class Mover:
    """One sample on one device. A tensor that appears twice appears twice there too."""

    def __init__(self, device, widened=None):
        self.device, self.widened, self.moved = device, widened or {}, {}

    def __call__(self, value):
        if isinstance(value, torch.Tensor):
            if id(value) not in self.moved:
                self.moved[id(value)] = (move_tensor(value, self.device, self.widened.get(value.dtype)), value)
            return self.moved[id(value)][0]
        if isinstance(value, torch.dtype):
            return self.widened.get(value, value)
        if isinstance(value, torch.device) or value == "cpu":
            return torch.device(self.device)
        if isinstance(value, torch.Generator):
            return torch.Generator(self.device).manual_seed(value.initial_seed())
        if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
            return type(value)(self(v) for v in value)
        if isinstance(value, dict):
            return {k: self(v) for k, v in value.items()}
        if self.widened and dataclasses.is_dataclass(value):  # options: a dtype in them is for narrow numbers
            return dataclasses.replace(value, **{f.name: None for f in dataclasses.fields(value)
                                                 if isinstance(getattr(value, f.name), torch.dtype)})
        return value


def to_device(op, sample, device, widened=None):
    """The sample there; `widened` says which dtypes become which."""
    move = Mover(device, widened)
    fields = {"input": sample.input, "args": sample.args, "kwargs": sample.kwargs}
    stays = STAYS_ON_CPU.get(op.name)
    moved = {k: Mover("cpu")(v) if k == stays else move(v) for k, v in fields.items()}
    return SampleInput(moved["input"], args=moved["args"], kwargs=moved["kwargs"],
                       output_process_fn_grad=sample.output_process_fn_grad, broadcasts_input=sample.broadcasts_input)


def names_device(sample):
    """Whether anything in a sample for 'mps' says so; a factory without `device` computes on the CPU."""
    return any(isinstance(v, torch.device) or isinstance(v, torch.Tensor) and v.is_mps
               for v in pytree.tree_leaves((sample.input, sample.args, sample.kwargs)))
