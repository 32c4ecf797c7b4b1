# SPDX-License-Identifier: Apache-2.0
"""`anymps export-pte`: any torch.nn.Module as a program (.pte) that runs on MPSBackend, with a report."""

import argparse
import importlib
import importlib.util
import json
import os
import re
import sys

from .environment import ensure_executorch

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
    precision.add_argument("--fp16", dest="fp16", action="store_true", default=True, help="float16 (the default)")
    precision.add_argument("--fp32", dest="fp16", action="store_false", help="float32 as the module has it")
    add("--bundled", action="store_true", help="adds the inputs and the module's outputs, for the runner to verify")
    add("--inputs", nargs="+", metavar="SHAPE", help="shapes and dtypes of the inputs")
    add("--dynamic", nargs="+", metavar="EXTENT", default=[], help="extents that stay open")
    add("--segments", action="store_true", help="delegates in segments of the file (extended header), not inlined")
    add("--seed", type=int, default=0, help="of weights and inputs (default: 0)")
    add("--report", metavar="FILE", help="the report as JSON")
    add("--no-check", dest="check", action="store_false", help="no comparison with the module")
    return parser.parse_args(arguments)


class UsageError(ValueError):
    """What the caller asked for cannot be done; the message says what to write instead."""


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
    from .lowering import Method, lower

    torch.manual_seed(args.seed)
    module, inputs, shapes = make_module(load_factory(args.factory))
    if args.inputs:
        inputs = tuple(make_input(text) for text in args.inputs)
    if inputs is None:
        raise UsageError(f"{args.factory} gives no example inputs: name their shapes with --inputs")
    shapes = dynamic_shapes(args.dynamic, module, inputs) or shapes
    path = args.output or args.factory.rpartition(":")[2] + ".pte"
    lowered = lower(Method(module, inputs, shapes), fp16=args.fp16, extract_delegate_segments=args.segments)
    report = lowered.reports["forward"]
    print(report)
    with open(path, "wb") as out:
        out.write(lowered.bundle() if args.bundled else lowered.buffer())
    print(f"wrote {path} ({os.path.getsize(path)} bytes, {'float16' if args.fp16 else 'float32'})")
    worst = verified = None
    if args.check:
        worst = max(checking.differences(lowered), default=0.0)
        limit = checking.tolerance(lowered, args.fp16)
        print(f"greatest difference from the module: {worst:.3g} (allowed: {limit:g}; relative above 1)")
        if args.bundled and (verified := runner.verifies(path)):
            print(f"{runner.NAME}: {verified[1]}")
    if args.report:
        with open(args.report, "w", encoding="utf-8") as out:
            json.dump(as_json(args, path, lowered.reports, worst, verified and verified[0]), out, indent=2)
            out.write("\n")
    if worst is not None and not worst <= limit:
        print("the program does not compute what the module does", file=sys.stderr)
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


if __name__ == "__main__":
    sys.exit(main())
