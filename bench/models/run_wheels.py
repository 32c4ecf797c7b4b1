#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs AnyMPS and ONNX Runtime side by side on the models out of wheels and writes wheels.json, wheels.md, wheels.svg.

Called by `scripts/bench wheels [options]`. Models and inputs are those of models/wheel_cases.py, at the sizes that users
run them with. A run of everything writes bench/results; one of a part of it writes build/bench.
"""
import argparse
import json
import math
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

from chart import bar_chart
from measure import MAX_REL_DIFF, Disagreement, measure_case
from report import COLOURS, TITLES, machine, rows_of
from worker import ROOT, WorkerError

sys.path.insert(0, str(ROOT / "models"))

import onnxruntime  # noqa: E402
import wheel_cases  # noqa: E402
from wheel_cases import CASES  # noqa: E402

RUNTIMES = ["anymps", "onnxruntime"]
NAMES = [name for name, case in CASES.items() if case.bench is not None]


def parse_args():
    parser = argparse.ArgumentParser(prog="scripts/bench wheels", description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=lambda v: v.split(","), help="parts of names, with commas (default: all)")
    parser.add_argument("--threads", type=lambda v: [int(t) for t in v.split(",")], default=[1])
    parser.add_argument("--rounds", type=int, default=9, help="turns of each runtime (default 9)")
    parser.add_argument("--out", type=Path, help="folder of the results")
    args = parser.parse_args()
    if args.rounds < 1 or min(args.threads) < 1:
        parser.error("--rounds and --threads must be at least 1")
    args.names = [n for n in NAMES if not args.models or any(part in n for part in args.models)]
    if not args.names:
        parser.error(f"no model has {' or '.join(args.models)} in its name; there are {', '.join(NAMES)}")
    whole = args.names == NAMES and args.rounds >= 9
    args.out = args.out or ROOT / ("bench/results" if whole else "build/bench")
    return args


def model_of(name):
    """The model as measure.py takes it: a name for files, and its inputs."""
    case = CASES[name]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(wheel_cases.model_path(name)), options, providers=["CPUExecutionProvider"])
    inputs = wheel_cases.make_inputs(name, session.get_inputs(), case.bench)
    return SimpleNamespace(name=name.replace("/", "_"), batch=1, seq=0, inputs=lambda: inputs)


def shapes(inputs):
    return ", ".join("x".join(map(str, array.shape)) or "1" for array in inputs.values())


def markdown(rows, failed, about):
    ours = {(r["model"], r["threads"]): r for r in rows if r["runtime"] == "anymps"}
    peers = {(r["model"], r["threads"]): r for r in rows if r["runtime"] == "onnxruntime"}
    mean = math.exp(sum(math.log(r["ratio"]) for r in ours.values()) / max(len(ours), 1))
    out = ["# Models out of wheels", "",
           f"{about['cpu']} ({'/'.join(about['isa'])}), {about['cores']} cores, {about['date']}, commit {about['commit']}, load average "
           f"at the start {about['load_average']}.", "",
           "Written by `scripts/bench wheels`: AnyMPS and ONNX Runtime take turns in one run. `ratio` is the time relative to ONNX "
           "Runtime in the same round (median, 10th to 90th percentile; below 1 is faster). Peak RSS is of a fresh process.", "",
           f"{sum(r['ratio'] < 1 for r in ours.values())} of {len(ours)} are faster than with ONNX Runtime; the geometric mean of the "
           f"ratios is {mean:.2f}.", "",
           "| model | inputs | threads | AnyMPS ms | ONNX Runtime ms | ratio | peak MB | ONNX Runtime | max rel. difference |",
           "|---|---|--:|--:|--:|--:|--:|--:|--:|"]
    for key, row in ours.items():
        peer = peers[key]
        out.append(f"| {row['model']} | {row['inputs']} | {row['threads']} | {row['median_ms']:.3f} | {peer['median_ms']:.3f} | {row['ratio']:.2f} "
                   f"({row['ratio_p10']:.2f}–{row['ratio_p90']:.2f}) | {row['peak_rss_mb']:.0f} | {peer['peak_rss_mb']:.0f} | {row['max_rel_diff']:.1e} |")
    if failed:
        out += ["", "Not measured:", "", *(f"- {name}: {why}" for name, why in failed.items())]
    return "\n".join(out) + "\n"


LONGEST = 3.0  # bars end here; their words say the ratio


def label(row):
    """The file's name, or the folder's where the file is just called model."""
    parts = [part for part in row["model"].split("/") if part not in ("model", "float_model")]
    return parts[-1] + (f", {row['threads']} threads" if row["threads"] > 1 else "")


def svg(rows, about):
    groups = [(label(r), [("anymps", min(r["ratio"], LONGEST), f"{r['ratio']:.2f}  ({r['median_ms']:.3g} ms)")])
              for r in rows if r["runtime"] == "anymps"]
    panels = [("Latency relative to ONNX Runtime (the dashed line; shorter is faster)", groups, 1.0)]
    subtitle = f"{about['cpu']}, {about['cores']} cores; {about['date']}"
    return bar_chart("Models out of wheels", subtitle, panels, {"anymps": (TITLES["anymps"], COLOURS["anymps"])})


def main():
    args = parse_args()
    about = machine(ROOT)
    if about["load_average"] > 0.5:
        print(f"note: the machine is busy (load average {about['load_average']}): times will be longer and ratios less certain")
    log = ROOT / "build" / "logs" / "bench-wheels.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("")
    rows, failed, start = [], {}, time.monotonic()
    cases = [(n, t) for n in args.names for t in args.threads]
    for number, (name, threads) in enumerate(cases, 1):
        print(f"[{number}/{len(cases)}] {name}, threads {threads}: ", end="", flush=True)
        model = model_of(name)
        with tempfile.TemporaryDirectory(prefix="anymps-bench-") as folder:
            try:
                results = measure_case(model, wheel_cases.model_path(name), threads, RUNTIMES, args.rounds, folder, log,
                                       max(MAX_REL_DIFF, CASES[name].tolerance))
            except (WorkerError, Disagreement) as error:
                failed[name] = str(error).replace(str(ROOT) + "/", "")[:300]
                print(f"FAILED: {failed[name]}", flush=True)
                continue
        new = [{**row, "model": name, "inputs": shapes(model.inputs())} for row in rows_of(model, threads, results)]
        print(f"{new[0]['median_ms']:.3f} ms, ONNX Runtime {new[1]['median_ms']:.3f} ms, ratio {new[0]['ratio']:.2f} "
              f"({new[0]['ratio_p10']:.2f} to {new[0]['ratio_p90']:.2f})", flush=True)
        rows += new
    if rows:
        args.out.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"machine": about, "rows": rows, "failed": failed}, indent=1, ensure_ascii=False)
        (args.out / "wheels.json").write_text(text + "\n")
        (args.out / "wheels.md").write_text(markdown(rows, failed, about))
        (args.out / "wheels.svg").write_text(svg(rows, about))
        where = args.out.relative_to(ROOT) if args.out.is_relative_to(ROOT) else args.out
        print(f"wrote {where}/wheels.json, wheels.md and wheels.svg in {time.monotonic() - start:.0f} s")
    if failed:
        sys.exit(f"scripts/bench wheels: {len(failed)} of {len(cases)} could not be measured")


if __name__ == "__main__":
    main()
