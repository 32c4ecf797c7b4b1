#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the reference models in f32 and in half types side by side and writes halves.json and halves.md.

Called by `scripts/bench halves [options]`. A half type that is slower than f32 would be a reason not to use it: here each
is measured beside f32 on the same machine, and on AVX2, where nothing multiplies halves. Rounds in which other processes used the
cores are taken again. A run of everything writes bench/results; one of a part of it writes build/bench.
"""
import argparse
import os
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager

from measure import MODELS, Disagreement, Result, difference, measure_rounds, outputs_of, save_inputs
from options import finish, names, numbers, shown, start, write_results
from quiet import Quiet
from report import describe, ratio_fields, rows_of
from worker import ROOT, Worker, WorkerError, command_of

TYPES = ["f32", "f16", "bf16"]
SETS = ["best", "avx2"]  # of instructions: what the machine has, or less
PATIENCE_S = 20
# Of the largest value of f32's result: what a type with 11 or 8 digits leaves after the layers of these models.
ALLOWED = {"f32": 0, "f16": 0.05, "bf16": 0.2}


def parse_args():
    models = [m.name for m in MODELS]
    parser = argparse.ArgumentParser(prog="scripts/bench halves", description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=names("model", models), default=models, help=f"names, with commas (default: {', '.join(models)})")
    parser.add_argument("--isa", type=names("set", SETS), default=SETS, help=f"sets of instructions, with commas: {', '.join(SETS)}")
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=10, help="turns of each type (default 10)")
    parser.add_argument("--out", help="folder of the results", type=lambda path: (ROOT / path).resolve())
    parser.set_defaults(before=None)
    args = parser.parse_args()
    return finish(parser, args, args.models == models and args.isa == SETS and args.threads == [1, 2] and args.rounds >= 10)


@contextmanager
def instructions(name):
    """Processes started inside use no more than these."""
    before = os.environ.get("ANYMPS_ISA")
    if name != "best":
        os.environ["ANYMPS_ISA"] = name
    yield
    os.environ.pop("ANYMPS_ISA", None)
    if before is not None:
        os.environ["ANYMPS_ISA"] = before


def path_of(model, kind):
    return ROOT / ".models" / f"{model.name}{'' if kind == 'f32' else '_' + kind}.onnx"


def measure(model, threads, rounds, quiet, folder, log):
    """{type: Result}, after a look that the types agree."""
    inputs = save_inputs(model, folder)
    with ExitStack() as stack:
        workers, outputs = [], {}
        for kind in TYPES:
            worker = stack.enter_context(Worker(kind, log, command_of("anymps")))
            worker.prepare(path_of(model, kind), threads, inputs)
            worker.run(1)
            outputs[kind] = outputs_of(worker, folder)
            workers.append(worker)
        results = {w.runtime: Result(w.runtime, w.version) for w in workers}
        for kind, arrays in outputs.items():
            for name, array in arrays.items():
                results[kind].max_abs_diff, results[kind].max_rel_diff = difference(array, outputs["f32"][name])
            if not results[kind].max_rel_diff <= ALLOWED[kind]:
                raise Disagreement(f"{kind} differs from f32: {results[kind].max_rel_diff:.3g} of the largest value (allowed {ALLOWED[kind]:g})")
        measure_rounds(workers, results, rounds, quiet=quiet)
    return results


def rows_of_case(model, isa, threads, results):
    rows = []
    for row in rows_of(model, threads, results):
        kind = row.pop("runtime")
        rows.append({**row, "type": kind, "isa": isa, "quiet": results[kind].spoiled == 0, **ratio_fields(results[kind], results["f32"])})
    return rows


def markdown(rows, about):
    out = ["# Models in half types", "", f"AnyMPS {rows[0]['version']}. {describe(about)}. Batch 1; sequence 128 for the encoders.", "",
           "Written by `scripts/bench halves`: each model in f32, f16 and bf16, in turns, each in a process of its own. Milliseconds "
           "(median), and beside f32 in the same round (median, 10th to 90th percentile; below 1 is faster). `best` is all that the "
           "processor has; rounds in which other processes used the cores were taken again; where quiet ones could not be had, the ratio has a "
           "`~`. The last columns are the largest differences from f32, relative to its largest value.", "",
           "| model | instructions | threads | f32 | f16 | bf16 | f16 / f32 | bf16 / f32 | f16 off | bf16 off |", "|---|---|--:" + "|--:" * 7 + "|"]
    cases = {}
    for row in rows:
        cases.setdefault((row["model"], row["isa"], row["threads"]), {})[row["type"]] = row
    for (model, isa, threads), case in cases.items():
        halves = [case[kind] for kind in TYPES[1:]]
        cells = [*(f"{case[kind]['median_ms']:.2f}" for kind in TYPES),
                 *(f"{'' if r['quiet'] else '~'}{r['ratio']:.2f} ({r['ratio_p10']:.2f}–{r['ratio_p90']:.2f})" for r in halves),
                 *(f"{r['max_rel_diff']:.1e}" for r in halves)]
        out.append(f"| {model} | {isa} | {threads} | " + " | ".join(cells) + " |")
    return "\n".join(out) + "\n"


def main():
    args = parse_args()
    about, log = start("halves")
    quiet = Quiet(again=args.rounds, patience=PATIENCE_S)
    cases = [(m, i, t) for m in MODELS if m.name in args.models for i in args.isa for t in args.threads]
    rows, begin = [], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="anymps-bench-") as folder:
        for number, (model, isa, threads) in enumerate(cases, 1):
            print(f"[{number}/{len(cases)}] {model.name}, {isa}, threads {threads}: ", end="", flush=True)
            try:
                with instructions(isa):
                    results = measure(model, threads, args.rounds, quiet, folder, log)
            except (WorkerError, Disagreement) as error:
                sys.exit(f"scripts/bench halves: {model.name}, {threads} threads: {error}\nNothing was written.")
            new = rows_of_case(model, isa, threads, results)
            print(", ".join(f"{r['type']} {r['median_ms']:.2f} ms ({r['ratio']:.2f})" for r in new), flush=True)
            rows += new
    write_results(args.out, "halves", rows, about, markdown(rows, about))
    print(f"wrote {shown(args.out)}/halves.json and halves.md in {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
