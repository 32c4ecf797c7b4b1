# SPDX-License-Identifier: Apache-2.0
"""`anymps export-pte`: any torch.nn.Module as a program (.pte) that runs on MPSBackend, with a report."""

import argparse
import contextlib
import importlib
import importlib.util
import json
import os
import re
import sys
import traceback

from .environment import ensure_executorch
from .files import write_file

DESCRIPTION = """\
Exports a torch module to an ExecuTorch program lowered to MPSBackend, and reports what is in delegates, what is not
and why, the nodes of each kind, and how far the program is from the module."""

DETAILS = """\
MODULE:FACTORY names a Python module (or a file, path/to/model.py:FACTORY) and in it
  - a function without arguments that returns a torch.nn.Module, or (module, example_inputs), or
    (module, example_inputs, dynamic_shapes), the last as torch.export takes it;
  - a class derived from torch.nn.Module with a constructor without arguments; or
  - a torch.nn.Module itself.

--inputs are needed when FACTORY gives none: one a positional argument of forward(), as shape:dtype, such as
  1x3x224x224:f32   2x5:i64<100   :f32      (no extents: a tensor without dims; <100: integers from 0 to 99)
dtypes: f32 (default) f16 bf16 i8 i16 i32 i64 u8 bool. The elements are seeded.

--dynamic INPUT.AXIS=NAME:MIN..MAX leaves an extent open, such as 0.0=batch:1..8. INPUT is the number of an input
or the name of forward()'s argument. Equal names are equal extents.

examples:
  anymps export-pte my_module:factory -o model.pte
  anymps export-pte net.py:Net --inputs 1x3x64x64 --dynamic 0.0=batch:1..4 --fp32 --bundled"""

DTYPES = {
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "bool": "bool",
}


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(
        prog="anymps export-pte",
        description=DESCRIPTION,
        epilog=DETAILS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("factory", metavar="MODULE:FACTORY", help="where the module comes from")
    add("-o", "--output", metavar="FILE", help="the program's file (default: FACTORY.pte)")
    precision = parser.add_mutually_exclusive_group()
    halves = {"dest": "fp16", "action": "store_true", "default": True, "help": "float16 (the default)"}
    precision.add_argument("--fp16", "--use_fp16", **halves)
    floats = {"dest": "fp16", "action": "store_false", "help": "float32 as the module has it"}
    precision.add_argument("--fp32", "--no-use_fp16", **floats)
    add("--bundled", action="store_true", help="adds the inputs and the module's outputs, for the runner to verify")
    add("--inputs", nargs="+", metavar="SHAPE", help="shapes and dtypes of the inputs")
    add("--dynamic", nargs="+", metavar="EXTENT", default=[], help="extents that stay open")
    add("--segments", action="store_true", help="delegates in segments of the file (extended header), not inlined")
    add("--seed", type=int, default=0, help="of weights and inputs (default: 0)")
    add("--report", metavar="FILE", help="the report as JSON")
    add("--etrecord", metavar="FILE", help="an ETRecord, with which the Inspector links profiles to the module")
    add("--no-check", dest="check", action="store_false", help="no comparison with the module")
    add("--traceback", action="store_true", help="where in Python a failure comes from")
    return parser.parse_args(arguments)


class UsageError(ValueError):
    """What the caller asked for cannot be done; the message says what to write instead."""


class Failure(RuntimeError):
    """The module, torch or the wheel failed; the message says in what, and what to do."""


@contextlib.contextmanager
def doing(what, advice):
    try:
        yield
    except (UsageError, Failure):
        raise
    except Exception as error:
        lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
        said = " ".join(lines[:3]) or "no message"
        raise Failure(f"{what}: {type(error).__name__}: {said}\n{advice}") from error


def load_factory(name):
    """The object that MODULE:FACTORY names."""
    place, colon, attribute = name.rpartition(":")
    if not colon or not place or not attribute:
        raise UsageError(f"{name!r} is not MODULE:FACTORY")
    if place.endswith(".py"):
        spec = importlib.util.spec_from_file_location("exported_module", place)
        if not os.path.exists(place):
            raise UsageError(f"there is no file {place}")
        module = importlib.util.module_from_spec(spec)
        sys.modules["exported_module"] = module
        spec.loader.exec_module(module)
    else:
        sys.path.insert(0, os.getcwd())
        try:
            module = importlib.import_module(place)
        except ModuleNotFoundError as error:
            if error.name != place.split(".")[0]:
                raise
            raise UsageError(f"there is no module {place} here or on PYTHONPATH") from error
    if not hasattr(module, attribute):
        raise UsageError(f"{place} has no {attribute}")
    return getattr(module, attribute)


def make_module(factory):
    """(module, inputs or None, dynamic shapes or None) of what the factory gives."""
    import torch

    made = factory if isinstance(factory, torch.nn.Module) else factory()
    parts = made if isinstance(made, tuple) else (made,)
    if not isinstance(parts[0], torch.nn.Module) or len(parts) > 3:
        raise UsageError(
            "FACTORY must give a torch.nn.Module, (module, example_inputs) or (module, example_inputs, dynamic_shapes),"
            f" not {type(made).__name__}"
        )
    module, inputs, dynamic = (*parts, None, None)[:3]
    return module, tuple(inputs) if inputs is not None else None, dynamic


INPUT = re.compile(r"(?P<shape>(\d+(x\d+)*)?)(:(?P<dtype>[a-z0-9]+))?(<(?P<limit>\d+))?")


def make_input(text):
    """A seeded tensor of a specification like 1x3x224x224:f32."""
    import torch

    match = INPUT.fullmatch(text)
    name = match and (match["dtype"] or "f32")
    if not match or name not in DTYPES or not text:
        raise UsageError(f"{text!r} is no shape:dtype such as 1x3x224x224:f32 (dtypes: {' '.join(DTYPES)})")
    shape = [int(s) for s in match["shape"].split("x")] if match["shape"] else []
    dtype = getattr(torch, DTYPES[name])
    if dtype.is_floating_point:
        return torch.randn(shape).to(dtype)
    limit = int(match["limit"]) if match["limit"] else 2 if dtype == torch.bool else 10
    return torch.randint(0, limit, shape).to(dtype)


EXTENT = re.compile(r"(?P<input>\w+)\.(?P<axis>\d+)=(?P<name>\w+):(?P<low>\d+)\.\.(?P<high>\d+)")


def dynamic_shapes(specifications, module, inputs):
    """torch.export's dynamic_shapes of specifications like 0.0=batch:1..8."""
    import inspect

    import torch

    if not specifications:
        return None
    arguments = [p.name for p in inspect.signature(module.forward).parameters.values()][: len(inputs)]
    shapes = [{} if isinstance(v, torch.Tensor) else None for v in inputs]
    dims = {}
    for text in specifications:
        match = EXTENT.fullmatch(text)
        if not match:
            raise UsageError(f"{text!r} is no INPUT.AXIS=NAME:MIN..MAX such as 0.0=batch:1..8")
        which, axis, name = match["input"], int(match["axis"]), match["name"]
        index = int(which) if which.isdigit() else arguments.index(which) if which in arguments else len(inputs)
        if index >= len(inputs) or shapes[index] is None or axis >= inputs[index].dim():
            raise UsageError(f"{text!r}: there is no input {which} with an axis {axis}")
        if name not in dims:
            dims[name] = torch.export.Dim(name, min=int(match["low"]), max=int(match["high"]))
        shapes[index][axis] = dims[name]
    return tuple(shapes)


def text_of(value):
    """An input in a message: f32[2, 5], 7."""
    import torch

    if not isinstance(value, torch.Tensor):
        return repr(value)
    names = {name: short for short, name in DTYPES.items()}
    dtype = str(value.dtype).removeprefix("torch.")
    return f"{names.get(dtype, dtype)}{list(value.shape)}"


def check_module(module, inputs):
    """Runs the module once: what it cannot do itself is told in its own words, not in those of a tracer."""
    import torch
    from torch.utils._pytree import tree_leaves

    from .lowering import clone, evaluating, run_fresh

    given = ", ".join(text_of(v) for v in tree_leaves(inputs)) or "nothing"
    advice = "--inputs names other shapes and dtypes, or let FACTORY return example inputs"
    with doing(f"the module does not run with {given}", advice), torch.no_grad():
        outputs = tree_leaves(run_fresh(evaluating(module), clone(inputs)))
    for value in outputs:
        if value is not None and not isinstance(value, (torch.Tensor, bool, int, float)):
            raise Failure(
                f"forward() gives a {type(value).__name__}, which no program can\n"
                "Return tensors, numbers or None, in tuples, lists and dicts"
            )
    if not any(isinstance(value, torch.Tensor) for value in outputs):
        raise Failure(
            "forward() gives no tensor, and a program without one has nothing to compute\n"
            "Return what it computes; what it writes into an input must be returned, too"
        )


def as_json(args, path, reports, worst, verified):
    return {
        "file": path,
        "fp16": args.fp16,
        "difference": worst,
        "runner": verified,
        "methods": {
            name: {
                "calls": r.total,
                "delegated": r.delegated,
                "delegates": [dict(k) for k in r.delegates],
                "outside": {t: {"count": n, "reason": why} for t, (n, why) in r.outside.items()},
            }
            for name, r in reports.items()
        },
    }


def export(args):
    """Exports as the arguments say; returns the exit status."""
    import torch

    from . import checking, runner
    from .etrecord import Recorder
    from .lowering import Method, lower, trace

    torch.manual_seed(args.seed)
    with doing(f"{args.factory} fails", "It must work when it is called without arguments"):
        module, inputs, shapes = make_module(load_factory(args.factory))
    if args.inputs:
        inputs = tuple(make_input(text) for text in args.inputs)
    if inputs is None:
        raise UsageError(f"{args.factory} gives no example inputs: name their shapes with --inputs")
    shapes = dynamic_shapes(args.dynamic, module, inputs) or shapes
    path = args.output or args.factory.rpartition(":")[2] + ".pte"
    check_module(module, inputs)
    method = Method(module, inputs, shapes)
    advice = "Its guide is https://docs.pytorch.org/docs/stable/export.html; --traceback shows where"
    with doing("torch.export cannot trace the module", advice):
        method.exported = trace(method)
    advice = "--traceback shows where; leave out or rewrite what it names"
    with doing("the module cannot be lowered", advice):
        recorder = Recorder() if args.etrecord else None
        lowered = lower(method, fp16=args.fp16, on_edge=recorder, extract_delegate_segments=args.segments)
        data = lowered.bundle() if args.bundled else lowered.buffer()
    report = lowered.reports["forward"]
    print(report)
    if changed := lowered.changed_inputs():
        print(f"forward() changes inputs {changed}: the program gives them before its outputs")
    write_file(path, data)
    print(f"wrote {path} ({len(data)} bytes, {'float16' if args.fp16 else 'float32'})")
    if recorder:
        recorder.write(args.etrecord, lowered)
    worst = verified = None
    if args.check:
        with doing("the program cannot be compared with the module", "--no-check leaves that out"):
            worst = max(checking.differences(lowered), default=0.0)
        limit = checking.tolerance(lowered, args.fp16)
        print(f"greatest difference from the module: {worst:.3g} (allowed: {limit:g}; relative above 1)")
        if args.bundled and (verified := runner.verifies(path)):
            print(f"{runner.NAME}: {verified[1]}")
    if args.report:
        report = as_json(args, path, lowered.reports, worst, verified and verified[0])
        write_file(args.report, (json.dumps(report, indent=2) + "\n").encode())
    if worst is not None and not worst <= limit:
        print("the program does not compute what the module does", file=sys.stderr)
        if args.fp16 and checking.overflows(lowered):
            print(checking.OVERFLOW.format("--fp32"), file=sys.stderr)
        return 1
    return 0 if verified is None or verified[0] else 1


def main(arguments=None):
    args = parse_arguments(arguments)
    ensure_executorch("anymps_executorch.export_pte")
    try:
        return export(args)
    except UsageError as error:
        print(f"anymps export-pte: {error}", file=sys.stderr)
        return 2
    except (Failure, OSError) as error:
        if args.traceback:
            traceback.print_exception(error)
        print(f"anymps export-pte: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
