# SPDX-License-Identifier: Apache-2.0
"""Arguments of an op of which only the name is known: from its ATen schema, else from the samples that PyTorch tests it with.

The samples are those of the OpInfo database. They are calls of Python's functions: such a function is called once on the CPU,
and the ATen op that is looked for is caught, with its arguments, on the way.
"""

import difflib
import itertools
import re

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .op_wrappers import WRAPPERS, Call, Make, find_op, wrapped

SHAPES = ((64, 64), (256, 256))
# What a required argument that is not a tensor may be, by its type.
GUESSES = {"int": 1, "number": 0.5, "float": 0.5, "bool": False, "List[int]": [1]}
BY_NAME = {"dim": 0, "k": 1, "n": 1}


class Parts(TorchDispatchMode):
    """Records the ATen ops that calls are made of, with their arguments."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        self.calls.append((op, args, kwargs or {}))
        return op(*args, **(kwargs or {}))


def base_name(op):
    return op._schema.name.removeprefix("aten::")


def parts(call):
    """The base names of what has no kernel if this op has none: its own, or, where PyTorch composes it, those of its parts."""
    with Parts() as seen:
        call()
    names = {base_name(op) for op, _, _ in seen.calls if op._schema.name.startswith("aten::")}
    own = base_name(call.op)
    return {own} if own in names else names | {own}


def works(call):
    try:
        call()
        return True
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return False


def _from_schema(op, shape, dtype):
    args, kwargs, make = [], {}, Make(dtype)
    for argument in op._schema.arguments:
        if argument.has_default_value():
            continue
        kind = str(argument.type)
        if kind == "Tensor":
            value = make(*shape)
        elif kind.startswith("Optional"):
            value = None
        elif argument.name in BY_NAME and kind == "int":
            value = BY_NAME[argument.name]
        elif kind in GUESSES:
            value = GUESSES[kind]
        else:
            return None
        if argument.kwarg_only:
            kwargs[argument.name] = value
        else:
            args.append(value)
    return Call(op, tuple(args), kwargs, "x".join(map(str, shape)) or "scalar")


def _size(call):
    return sum(leaf.numel() for leaf in tree_leaves((call.args, call.kwargs)) if isinstance(leaf, torch.Tensor))


def _words(name):
    return set(re.split(r"[._]+", name.lower())) - {"", "ex", "forward", "helper", "nn", "functional", "with"}


def _likely(name):
    """The entries of the database whose names are most like an op's."""
    from torch.testing._internal.common_methods_invocations import op_db

    def likeness(entry):
        names = {entry.name, entry.aten_name}
        return max(10 * len(_words(name) & _words(n)) + difflib.SequenceMatcher(None, name, n).ratio() for n in names)

    return sorted(op_db, key=likeness, reverse=True)[:6]


def _from_database(op, dtype, most=2):
    """The largest samples in which the op occurs."""
    found = {}
    for entry in _likely(base_name(op)):
        try:
            samples = list(itertools.islice(entry.sample_inputs("cpu", getattr(torch, dtype)), 24))
        except Exception:  # a generator of samples fails in its own way for a dtype that it has none for
            continue
        for sample in samples:
            with torch.no_grad(), Parts() as seen:
                try:
                    entry.op(sample.input, *sample.args, **sample.kwargs)
                except Exception:  # the same holds for a sample
                    continue
            for caught, args, kwargs in seen.calls:
                if base_name(caught) == base_name(op):
                    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
                    shape = "x".join(map(str, tensors[0].shape)) if tensors else ""
                    found.setdefault(shape or "scalar", Call(caught, args, kwargs, shape or "scalar"))
        if found:
            break
    return sorted(found.values(), key=_size)[-most:]


def calls(name, shapes, dtype):
    """The calls to measure: (shape, call or the error that there is instead)."""
    op = find_op(name)
    base = base_name(op)
    has_wrapper = base in WRAPPERS
    chosen = [tuple(shape) for shape in shapes] or (WRAPPERS[base][1] if has_wrapper else SHAPES)
    made = []
    for shape in chosen:
        text = "x".join(map(str, shape)) or "scalar"
        try:
            call = wrapped(name, shape, dtype) if has_wrapper else _from_schema(op, shape, dtype)
        except (RuntimeError, ValueError) as error:
            made.append((text, error))
            continue
        if call is not None and (has_wrapper or works(call)):
            made.append((text, call))
    if has_wrapper or made:
        return made
    found = _from_database(op, dtype)
    if found:
        return [(call.shape, call) for call in found]
    return [("", ValueError(f"no arguments of {dtype} found for {name}: its schema and PyTorch's samples give none; write a wrapper"))]
