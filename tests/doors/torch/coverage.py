# SPDX-License-Identifier: Apache-2.0
"""Which of PyTorch's ops the device computes, told by the door itself beside the list that PyTorch's wheel carries.

    python -m tests.doors.torch.coverage > docs/generated/torch_ops.md

PyTorch's list is native_functions.yaml: each function, and for which devices there is a kernel. Counted are the ones with a
kernel for MPS (upstream's own, on a Mac), and those that have one for the CPU and for CUDA but none for MPS.
"""
import importlib.util
import pathlib
import re

import torch

COMPOSED = ("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")


def upstream():
    """{op: {device keys}} of the ops that PyTorch has kernels for; an op is "add.out"."""
    packed = pathlib.Path(importlib.util.find_spec("torchgen").origin).parent / "packaged"
    text = (packed / "ATen" / "native" / "native_functions.yaml").read_text(encoding="utf-8")
    found = {}
    for entry in re.split(r"^- func: ", text, flags=re.M)[1:]:
        dispatch = re.search(r"^  dispatch:\n((?:    .*\n)+)", entry, re.M)
        lines = re.findall(r"^    ([\w, ]+):", dispatch[1], re.M) if dispatch else []
        found[entry.partition("(")[0].strip()] = {key.strip() for line in lines for key in line.split(",")}
    return found


def base(op):
    return op.partition(".")[0]


def on_a_mac(functions):
    """Base names with a kernel for MPS."""
    return {base(op) for op, keys in functions.items() if "MPS" in keys}


def missing_on_a_mac(functions):
    """Base names that the CPU and CUDA have kernels for, and MPS has not."""
    return {base(op) for op, keys in functions.items() if {"CPU", "CUDA"} <= keys} - on_a_mac(functions)


def by_kernel():
    """Ops with a kernel on this device, by a row or by hand."""
    return {name.removeprefix("aten::") for name in torch._C._dispatch_get_registrations_for_dispatch_key("MPS") if name.startswith("aten::")}


def is_composed(op):
    """Whether PyTorch makes the op of others, on whatever device."""
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{op}", key) for key in COMPOSED)


def rows():
    """{op: body} of the door's table."""
    from torch_anymps import native

    return {op: body for names, _, body in native.rows() for op in names.split()}


def counts(names, functions, kernels):
    """Of these base names: (by a row of the table, by hand, made of others by PyTorch, missing)."""
    told, kept = {base(op) for op in rows()} & names, {base(op) for op in kernels} & names
    composed = {base(op) for op, keys in functions.items() if keys & {"MPS", "CUDA"} and is_composed(op)} & names - kept - told
    return len(told), len(kept - told), len(composed), sorted(names - kept - told - composed)


def page():
    functions, kernels, told = upstream(), by_kernel(), rows()
    lines = ["# Ops of the PyTorch door", "",
             "Every op that the device `mps` has a kernel for, told by the door itself. `python -m tests.doors.torch.coverage` prints this page.", "",
             "| functions with a kernel… | | by a row | by hand | made of others | missing |", "|---|--:|--:|--:|--:|---|"]
    for what, names in (("on a Mac, in PyTorch 2.15", on_a_mac(functions)), ("for CPU and CUDA, but not on a Mac", missing_on_a_mac(functions))):
        row, hand, composed, missing = counts(names, functions, kernels)
        lines.append(f"| {what} | {len(names)} | {row} | {hand} | {composed} | {', '.join(missing)} |")
    mac = on_a_mac(functions)
    lines += ["", "A row says what is computed in [the engine's ops](ops.md) and in what is defined beside it (`doors/torch/csrc/table`). Ops made of",
              "others by PyTorch itself, whatever the device, are not listed.", "",
              "| op | on a Mac | computed as |", "|---|---|---|"]
    for op in sorted(kernels):
        how = f"`{told[op]}`".replace("|", "\\|") if op in told else derived(op, told)
        lines.append(f"| {op} | {'yes' if base(op) in mac else ''} | {how} |")
    return "\n".join(lines) + "\n"


def derived(op, told):
    """An op without a row of its own: the in-place or functional form of one, or code."""
    root = base(op).removesuffix("_")
    forms = sorted(name for name in told if base(name) == root and "." in name)
    return f"as {forms[0]}" if forms else "by hand"


if __name__ == "__main__":
    print(page(), end="")
