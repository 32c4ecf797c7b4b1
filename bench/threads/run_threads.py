#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How the time of the reference models falls with the number of threads, beside the peers; writes threads.json, threads.md.

Called by `scripts/bench threads [options]`. For a machine without this repository: `scripts/bench threads pack` makes one file
with all that this needs, and `run_threads.py run FOLDER` runs it there (pack.py). Numbers of threads above the cores that the
process may use are left out unless they are asked for.
"""
import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "models"))

import pack  # noqa: E402
from measure import MODELS, Disagreement, measure_case  # noqa: E402
from options import add_common, finish, names, numbers, shown, start, write_results  # noqa: E402
from report import TITLES, better_peer, describe, percentile, ratio_fields, rows_of, versions_of  # noqa: E402
from worker import ROOT, RUNTIMES, WorkerError  # noqa: E402

THREADS = [1, 2, 4, 8, 16]


def parse_args():
    models = [m.name for m in MODELS]
    possible = [t for t in THREADS if t <= len(os.sched_getaffinity(0))]
    parser = argparse.ArgumentParser(prog="scripts/bench threads", description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=names("model", models), default=models, help="names, with commas")
    parser.add_argument("--threads", type=numbers, default=possible, help="numbers, with commas (default: 1,2,4,8,16 as far as there are cores)")
    add_common(parser, RUNTIMES, rounds=15)
    args = parser.parse_args()
    whole = args.models == models and args.runtimes == RUNTIMES and args.threads == THREADS and args.rounds >= 10
    return finish(parser, args, whole)


def rows_of_case(model, threads, results):
    """Rows as those of scripts/bench models, with the ratio to the better peer."""
    peer = better_peer(results)
    rows = rows_of(model, threads, results)
    for row in rows:
        result = results[row["runtime"]]
        row["p10_ms"] = round(percentile(result.runs(), 0.1), 3)
        if peer:
            row.update(peer=peer, **ratio_fields(result, results[peer]))
    return rows


def add_speedups(rows):
    """How much faster than the same runtime with one thread."""
    single = {(r["model"], r["runtime"]): r["median_ms"] for r in rows if r["threads"] == 1}
    for row in rows:
        if (row["model"], row["runtime"]) in single:
            row["speedup"] = round(single[row["model"], row["runtime"]] / row["median_ms"], 2)


def markdown(rows, about):
    runtimes = list(dict.fromkeys(r["runtime"] for r in rows))
    cells = {(r["model"], r["threads"], r["runtime"]): r for r in rows}
    out = ["# Threads", "",
           f"{versions_of(rows)}. {describe(about)}, load average at the start {about['load_average']}. Batch 1; sequence 128 for the "
           "encoders; f32.", "",
           "Written by `scripts/bench threads`: the runtimes take turns in one run, each in a process of its own. Median in ms (10th to 90th "
           "percentile), and × the speed-up over the same runtime with one thread. `ratio` is AnyMPS's time relative to the better peer "
           "in the same round (median, 10th to 90th percentile of the rounds; below 1 is faster).", "",
           "| model | threads | " + " | ".join(TITLES[r] for r in runtimes) + " | ratio |",
           "|---|--:|" + "--:|" * (len(runtimes) + 1)]
    for model, threads in dict.fromkeys((r["model"], r["threads"]) for r in rows):
        line = [model, str(threads)]
        for runtime in runtimes:
            row = cells[model, threads, runtime]
            speedup = f", ×{row['speedup']:.2f}" if "speedup" in row and threads > 1 else ""
            line.append(f"{row['median_ms']:.2f} ({row['p10_ms']:.2f}–{row['p90_ms']:.2f}){speedup}")
        ours = cells.get((model, threads, "anymps"), {})
        line.append(f"{ours['ratio']:.2f} ({ours['ratio_p10']:.2f}–{ours['ratio_p90']:.2f})" if "ratio" in ours else "")
        out.append("| " + " | ".join(line) + " |")
    return "\n".join(out) + "\n"


def main():
    if sys.argv[1:2] in (["pack"], ["run"]):
        return pack.main(sys.argv[1:])
    args = parse_args()
    about, log = start("threads")
    about.update(pack.origin())
    cases = [(m, t) for m in MODELS if m.name in args.models for t in args.threads]
    rows, begin = [], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="anymps-bench-") as folder:
        for number, (model, threads) in enumerate(cases, 1):
            print(f"[{number}/{len(cases)}] {model.name}, threads {threads}: ", end="", flush=True)
            try:
                results = measure_case(model, ROOT / ".models" / f"{model.name}.onnx", threads, args.runtimes, args.rounds, folder, log,
                                       fresh=False)
            except (WorkerError, Disagreement) as error:
                sys.exit(f"scripts/bench threads: {model.name}, {threads} threads: {error}")
            rows += rows_of_case(model, threads, results)
            print(", ".join(f"{TITLES[name]} {statistics.median(r.runs()):.2f}" for name, r in results.items()), "ms", flush=True)
            add_speedups(rows)
            write_results(args.out, "threads", rows, about, markdown(rows, about))  # what is there, even when the next one fails
    print(f"wrote {shown(args.out)}/threads.json and threads.md in {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
