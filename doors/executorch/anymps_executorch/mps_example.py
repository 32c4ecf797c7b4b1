# SPDX-License-Identifier: Apache-2.0
"""Upstream's example script for MPS with upstream's options, over this package."""

import argparse
import os
import shutil
import sys
import time

from .files import write_file


def parse_arguments(arguments=None):
    from .models import names

    parser = argparse.ArgumentParser(
        prog="mps_example", description="Exports an example model to an ExecuTorch program that runs on MPSBackend."
    )
    add = parser.add_argument
    switch = argparse.BooleanOptionalAction
    add("-m", "--model_name", required=True, help=f"the model, one of: {', '.join(names())}")
    add("--use_fp16", default=True, action=switch, help="computes in float16 what the model computes in float32")
    add(
        "--use_partitioner",
        default=True,
        action=switch,
        help="lowers what the MPS schema can express; without it, the whole graph or nothing",
    )
    add("--bench_pytorch", default=False, action=switch, help="times the module in PyTorch and its program")
    add("-b", "--bundled", action="store_true", help="adds inputs and expected outputs to the file")
    add("-c", "--check_correctness", action="store_true", help="compares the program with the module")
    add("--generate_etrecord", action="store_true", help="writes etrecord.bin, which links profiles to the module")
    add("--checkpoint", help="checkpoint of the llama model")
    add("--params", help="parameters of the llama model")
    add("--output_dir", default=".", help="where the files go (default: here)")
    add("--seed", type=int, default=0, help="of weights and inputs (default: 0)")
    return parser.parse_args(arguments)


def write(args, lowered):
    """Writes the program under both names; returns the first."""
    dtype = "float16" if args.use_fp16 else "float32"
    suffix = "_bundled.pte" if args.bundled else ".pte"
    path = os.path.join(args.output_dir, f"{args.model_name}_mps_{dtype}{suffix}")
    alias = os.path.join(args.output_dir, f"{args.model_name}_mps{suffix}")
    os.makedirs(args.output_dir, exist_ok=True)
    write_file(path, lowered.bundle() if args.bundled else lowered.buffer())
    if os.path.lexists(alias):
        os.remove(alias)
    try:
        os.symlink(os.path.basename(path), alias)
    except OSError:
        shutil.copyfile(path, alias)
    print(f"wrote {path} ({os.path.getsize(path)} bytes), also as {alias}")
    return path


def bench(example, path, runs=10):
    """Times the module in PyTorch, and the program with the runner if it is built."""
    import torch

    from . import runner

    with torch.no_grad():
        example.module(*example.inputs)
        start = time.perf_counter()
        for _ in range(runs):
            example.module(*example.inputs)
        print(f"PyTorch on the CPU: {(time.perf_counter() - start) / runs * 1e3:.2f} ms a run")
    milliseconds = runner.average_milliseconds(path, runs)
    print(
        f"{runner.NAME}: {milliseconds:.2f} ms a run"
        if milliseconds is not None
        else f"{runner.NAME} is not built here: the program was not timed"
    )


def main(arguments=None):
    args = parse_arguments(arguments)
    from . import checking, models
    from .etrecord import Recorder
    from .lowering import Method, lower

    options = models.llama_options(args.checkpoint, args.params) if args.model_name in ("llama2", "llama") else {}
    try:
        example = models.example(args.model_name, args.seed, **options)
    except models.NotAvailable as error:
        sys.exit(str(error))
    for note in example.notes:
        print(f"{args.model_name}: {note}")
    method = Method(example.module, example.inputs)
    recorder = Recorder() if args.generate_etrecord else None
    lowered = lower(method, fp16=args.use_fp16, on_edge=recorder)
    report = lowered.reports["forward"]
    print(report)
    if not args.use_partitioner and (report.outside or len(report.delegates) != 1):
        sys.exit(f"the whole graph cannot be lowered: outside are {', '.join(report.outside) or 'parts of it'}")
    path = write(args, lowered)
    if recorder:
        record_path = os.path.join(args.output_dir, "etrecord.bin")
        recorder.write(record_path, lowered)
        print(f"wrote {record_path}")
    if args.bench_pytorch:
        bench(example, path)
    if args.check_correctness:
        worst = max(checking.differences(lowered), default=0.0)
        limit = checking.tolerance(lowered, args.use_fp16)
        print(f"greatest difference from the module: {worst:.3g} (allowed: {limit:g})")
        if not worst <= limit:
            hint = checking.OVERFLOW.format("--no-use_fp16") if args.use_fp16 and checking.overflows(lowered) else ""
            sys.exit(f"the program does not compute what the module does\n{hint}".strip())


if __name__ == "__main__":
    main()
