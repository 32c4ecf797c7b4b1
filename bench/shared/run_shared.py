#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs AnyMPS and its peers with two threads on two cores that others use as well; writes shared.json and shared.md.

Called by `scripts/bench shared [options]`. Threads that meet after every layer wait for the one whose core is taken, so here
the mean and the worst runs count, not the median. Beside the reference models: six of other kinds out of wheels, above a
millisecond, which both peers can run. A run of everything writes bench/results; one of a part of it writes build/bench.
"""
import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / "models"), str(ROOT / "models")]

import loads  # noqa: E402
import wheel_cases  # noqa: E402
from measure import MAX_REL_DIFF, MODELS, Disagreement, measure_case  # noqa: E402
from options import add_common, finish, names, shown, start, write_results  # noqa: E402
from report import TITLES, better_peer, describe, percentile, versions_of  # noqa: E402
from run_wheels import model_of  # noqa: E402
from worker import RUNTIMES, WorkerError  # noqa: E402

THREADS = 2
TURN_S = 0.5  # a scheduler's turns are milliseconds long: many of them
QUOTA = 1.5
LOADS = {"none": ("free cores", lambda: loads.busy(0)), "one": ("one busy process", lambda: loads.busy(1)),
         "two": ("two busy processes", lambda: loads.busy(2)), "quota": (f"a quota of {QUOTA} CPUs", lambda: loads.quota(QUOTA))}
WHEELS = ["nudenet/320n",  # finds things in pictures
          "rapidocr_onnxruntime/ch_PP-OCRv4_rec_infer",  # reads a line of text
          "magika/model",  # tells kinds of files by their bytes
          "silero_vad/silero_vad_16k_sequence",  # an LSTM over sound
          "onnx_asr/nemo80_conv",  # spectra of sound
          "speechmos/plcmos_models/plcmos_v2"]  # convolutions and a recurrent layer
NAMES = [m.name for m in MODELS] + WHEELS


def p99(ms):
    return percentile(ms, 0.99)


FIGURES = {"mean": statistics.mean, "p99": p99}


def parse_args():
    parser = argparse.ArgumentParser(prog="scripts/bench shared", description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=names("model", NAMES), default=NAMES, help="names, with commas")
    parser.add_argument("--loads", type=names("load", LOADS), default=list(LOADS), help=f"names, with commas: {', '.join(LOADS)}")
    add_common(parser, RUNTIMES, rounds=15)
    args = parser.parse_args()
    whole = args.models == NAMES and args.loads == list(LOADS) and args.runtimes == RUNTIMES and args.rounds >= 10
    return finish(parser, args, whole)


def find(name):
    """The model, its file, and how far results may differ."""
    if name in WHEELS:
        return model_of(name), wheel_cases.model_path(name), max(MAX_REL_DIFF, wheel_cases.CASES[name].tolerance)
    return next(m for m in MODELS if m.name == name), ROOT / ".models" / f"{name}.onnx", MAX_REL_DIFF


def rows_of_case(model, load_name, results):
    """Mean and 99th percentile over all runs, each relative to the peer that is better in it."""
    best = {key: better_peer(results, figure) for key, figure in FIGURES.items()}
    rows = []
    for runtime, result in results.items():
        ms = result.runs()
        row = {"model": model, "load": load_name, "threads": THREADS, "runtime": runtime, "version": result.version, "runs": len(ms),
               "rounds": len(result.rounds), "median_ms": round(statistics.median(ms), 3)}
        for key, figure in FIGURES.items():
            row[f"{key}_ms"] = round(figure(ms), 3)
            if best[key]:
                row[f"{key}_peer"] = best[key]
                row[f"{key}_ratio"] = round(figure(ms) / figure(results[best[key]].runs()), 3)
        rows.append(row)
    return rows


def markdown(rows, impossible, about):
    runtimes = list(dict.fromkeys(r["runtime"] for r in rows))
    cells = {(r["model"], r["load"], r["runtime"]): r for r in rows}
    out = ["# Shared cores", "",
           f"{versions_of(rows)}. {describe(about)}, load average at the start {about['load_average']}. {THREADS} threads on two cores, "
           "batch 1, sequence 128 for the encoders, f32.", "",
           "Written by `scripts/bench shared`: the runtimes take turns in one run, each in a process of its own, while other processes are "
           "busy on the same cores or a control group bounds the CPU time. Mean / 99th percentile in ms; `ratio` is AnyMPS's relative to "
           "the peer that is better in that figure (below 1 is faster)."]
    out += ["", *(f"Not measured: {LOADS[name][0]}: {why}." for name, why in impossible.items())] if impossible else []
    for name in dict.fromkeys(r["load"] for r in rows):
        out += ["", f"## With {LOADS[name][0]}", "", "| model | " + " | ".join(TITLES[r] for r in runtimes) + " | ratio |",
                "|---|" + "--:|" * (len(runtimes) + 1)]
        for model in dict.fromkeys(r["model"] for r in rows if r["load"] == name):
            line = [f"{cells[model, name, r]['mean_ms']:.2f} / {cells[model, name, r]['p99_ms']:.2f}" for r in runtimes]
            ours = cells.get((model, name, "anymps"), {})
            line.append(f"{ours['mean_ratio']:.2f} / {ours['p99_ratio']:.2f}" if "mean_ratio" in ours else "")
            out.append(f"| {model} | " + " | ".join(line) + " |")
    return "\n".join(out) + "\n"


def main():
    args = parse_args()
    about, log = start("shared")
    rows, impossible, begin = [], {}, time.monotonic()
    cases = [(model, name) for model in args.models for name in args.loads]
    with loads.two_cores(), tempfile.TemporaryDirectory(prefix="anymps-bench-") as folder:
        for number, (name, load_name) in enumerate(cases, 1):
            if load_name in impossible:
                continue
            (title, context), (model, path, allowed) = LOADS[load_name], find(name)
            print(f"[{number}/{len(cases)}] {name}, {title}: ", end="", flush=True)
            try:
                with context() as why:
                    if why:
                        impossible[load_name] = why
                        print(f"not measured: {why}")
                        continue
                    results = measure_case(model, path, THREADS, args.runtimes, args.rounds, folder, log, allowed, fresh=False, turn=TURN_S)
            except (WorkerError, Disagreement) as error:
                sys.exit(f"scripts/bench shared: {name}, {title}: {error}")
            rows += rows_of_case(name, load_name, results)
            print(", ".join(f"{TITLES[r['runtime']]} {r['mean_ms']:.2f} / {r['p99_ms']:.2f}" for r in rows[-len(results):]), "ms", flush=True)
            write_results(args.out, "shared", rows, {**about, "not_measured": impossible}, markdown(rows, impossible, about))
    print(f"wrote {shown(args.out)}/shared.json and shared.md in {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
