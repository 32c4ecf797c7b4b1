#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs AnyMPS and ExecuTorch with XNNPACK side by side on the same exported models; writes executorch.json, .md and .svg.

Called by `scripts/bench executorch [options]`, which exports the models before (export_models.py). `anymps` is the engine
that mps_executor_runner uses, on the program lowered to MPSBackend; `delegate` is the same program in the stock ExecuTorch
runtime with our delegate; `xnnpack` is the model lowered to XNNPACK in that runtime. A run of everything writes
bench/results; one of a part of it writes build/bench.
"""
import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "models"))

import report  # noqa: E402
from chart import bar_chart  # noqa: E402
from measure import RUNS_FOR_PEAK, Disagreement, Result, difference, measure_rounds  # noqa: E402
from worker import Worker, WorkerError  # noqa: E402

MODELS = ["mobilenet_v2", "mobilenet_v3", "resnet18", "resnet50", "mobilebert", "vit"]
EXPORTED = ROOT / ".models" / "executorch_bench"
STOCK = ROOT / "build" / "bin" / "executorch_stock_worker"
PEER = "xnnpack"
FRESH_PROCESSES = 7
RUNTIMES = {
    "anymps": ([ROOT / "build" / "bin" / "anymps", "bench", "--worker"], "mps.pte"),
    "delegate": ([STOCK, ROOT / "build" / "lib" / "libanymps_executorch_backend.so"], "mps.pte"),
    "xnnpack": ([STOCK], "xnnpack.pte"),
}
TITLES = {"anymps": "AnyMPS", "delegate": "ExecuTorch + our MPSBackend", "xnnpack": "ExecuTorch + XNNPACK",
          "before": "AnyMPS before"}
COLOURS = {"anymps": "#1f6fb2", "delegate": "#6fa8d6", "xnnpack": "#b9bec6", "before": "#d99a3d"}
# Largest difference relative to the largest element of the output, from the peer's.
MAX_REL_DIFF = 1e-3


def parse_args():
    parser = argparse.ArgumentParser(prog="scripts/bench executorch", description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=lambda v: v.split(","), default=MODELS, help="names, with commas")
    parser.add_argument("--threads", type=lambda v: [int(t) for t in v.split(",")], default=[1, 2])
    parser.add_argument("--rounds", type=int, default=15, help="turns of each runtime (default 15)")
    parser.add_argument("--before", type=Path, metavar="BUILD", help="another build of AnyMPS, measured in the same run")
    parser.add_argument("--out", type=Path, help="folder of the results")
    args = parser.parse_args()
    unknown = [m for m in args.models if m not in MODELS]
    if unknown:
        parser.error(f"no model {', '.join(unknown)}; there are {', '.join(MODELS)}")
    if args.rounds < 1 or min(args.threads) < 1:
        parser.error("--rounds and --threads must be at least 1")
    if args.before:
        RUNTIMES["before"] = ([args.before.resolve() / "bin" / "anymps", "bench", "--worker"], "mps.pte")
    whole = args.models == MODELS and args.threads == [1, 2] and args.rounds >= 10 and not args.before
    args.out = args.out or ROOT / ("bench/results" if whole else "build/bench")
    return args


def start(runtime, log):
    return Worker(runtime, log, RUNTIMES[runtime][0])


def prepare(worker, model, threads):
    """Returns load_ms. Inputs are input0, input1, … in AnyMPS; the others take them by their order."""
    folder = EXPORTED / model
    inputs = {path.stem: path for path in sorted(folder.glob("input*.npy"))}
    return worker.prepare(folder / RUNTIMES[worker.runtime][1], threads, inputs)


def outputs_of(worker, folder):
    folder = Path(folder) / worker.runtime
    folder.mkdir(exist_ok=True)
    names = worker.ask(f"output {folder}")["outputs"]
    files = [folder / ("".join(c if c.isalnum() and c.isascii() or c in "_.-" else "_" for c in name) + ".npy") for name in names]
    return [np.load(file) for file in files]


def compare(workers, results, folder):
    outputs = {w.runtime: outputs_of(w, folder) for w in workers}
    for runtime, arrays in outputs.items():
        if len(arrays) != len(outputs[PEER]):
            raise Disagreement(f"{runtime} has {len(arrays)} outputs, {PEER} has {len(outputs[PEER])}")
        for ours, theirs in zip(arrays, outputs[PEER]):
            diff, rel = difference(ours, theirs)
            result = results[runtime]
            result.max_abs_diff, result.max_rel_diff = max(result.max_abs_diff, diff), max(result.max_rel_diff, rel)
        if not results[runtime].max_rel_diff <= MAX_REL_DIFF:
            raise Disagreement(f"{runtime} differs from {PEER} by {results[runtime].max_rel_diff:.3g} of the largest element "
                               f"(allowed {MAX_REL_DIFF:g})")


def measure_fresh(model, threads, log):
    """Load time, first run and memory of processes that do nothing else, the runtimes in turns."""
    rows = {runtime: [] for runtime in RUNTIMES}
    for _ in range(FRESH_PROCESSES):
        for runtime in RUNTIMES:
            with start(runtime, log) as worker:
                row = {"baseline_rss_mb": worker.memory_mb("VmRSS")}
                row["load_ms"] = prepare(worker, model, threads)
                row["first_run_ms"] = worker.run(1)[0]
                # What is put off from loading to the first run shows here.
                row["first_output_ms"] = row["load_ms"] + row["first_run_ms"]
                worker.run(RUNS_FOR_PEAK - 1)
                row["peak_rss_mb"] = worker.memory_mb("VmHWM")
                rows[runtime].append(row)
    return {runtime: {key: statistics.median(r[key] for r in own) for key in own[0]} for runtime, own in rows.items()}


def measure_case(model, threads, rounds, folder, log):
    results = {}
    with ExitStack() as stack:
        workers = [stack.enter_context(start(runtime, log)) for runtime in RUNTIMES]
        for worker in workers:
            results[worker.runtime] = Result(worker.runtime, worker.version)
            prepare(worker, model, threads)
            worker.run(1)
        compare(workers, results, folder)
        measure_rounds(workers, results, rounds)
        compare(workers, results, folder)
    for runtime, fresh in measure_fresh(model, threads, log).items():
        results[runtime].fresh = fresh
    return results


def rows_of(model, threads, results):
    rows = []
    for runtime, result in results.items():
        ms = [t for r in result.rounds for t in r]
        rows.append({"model": model, "threads": threads, "runtime": runtime, "median_ms": round(statistics.median(ms), 3),
                     "min_ms": round(min(ms), 3), "p90_ms": round(report.percentile(ms, 0.9), 3), "runs": len(ms),
                     "rounds": len(result.rounds), **{k: round(v, 1) for k, v in result.fresh.items()},
                     "max_rel_diff": float(f"{result.max_rel_diff:.3g}"), "idle_cpu": round(result.idle_cpu, 3),
                     **report.ratio_fields(result, results[PEER])})
    return rows


def mean_ratio(rows, runtime, threads=None):
    ratios = [r["ratio"] for r in rows if r["runtime"] == runtime and threads in (None, r["threads"])]
    return math.exp(statistics.fmean(math.log(r) for r in ratios))


def short_of(rows):
    """What is slower than the peer, in words."""
    peers = {(r["model"], r["threads"]): r for r in rows if r["runtime"] == PEER}
    words = []
    for row in rows:
        if row["runtime"] != "anymps":
            continue
        peer = peers[row["model"], row["threads"]]
        if row["ratio"] > 1:
            words.append(f"{row['model']} with {row['threads']} thread{'s' if row['threads'] > 1 else ''} takes {row['ratio']:.2f} "
                         "times as long")
        if row["load_ms"] > peer["load_ms"]:
            words.append(f"loading {row['model']} with {row['threads']} thread{'s' if row['threads'] > 1 else ''} takes "
                         f"{row['load_ms']:.0f} ms against {peer['load_ms']:.0f} ms")
        if row["first_output_ms"] > peer["first_output_ms"]:
            words.append(f"the first output of {row['model']} with {row['threads']} thread{'s' if row['threads'] > 1 else ''} takes "
                         f"{row['first_output_ms']:.0f} ms against {peer['first_output_ms']:.0f} ms")
    return words


def markdown(rows, about):
    short = short_of(rows)
    speedups = ", ".join(f"{1 / mean_ratio(rows, 'anymps', t):.2f}x with {t} thread{'s' if t > 1 else ''}"
                         for t in sorted({r["threads"] for r in rows}))
    out = ["# ExecuTorch programs", "",
           f"{about['cpu']} ({'/'.join(about['isa'])}), {about['cores']} cores, {about['memory_gib']} GiB, {about['date']}, commit "
           f"{about['commit']}, load average at the start {about['load_average']}. Batch 1, f32, sequence 128 for mobilebert.", "",
           "Written by `scripts/bench executorch`: the same torch module, exported once to MPSBackend and once to XNNPACK with "
           "executorch 1.4.1, run in turns by AnyMPS and by the C++ runtime of the executorch 1.5.1 wheel. `ratio` is the time relative to "
           "XNNPACK in the same round (median, 10th to 90th percentile of the rounds; below 1 is faster). Load time and peak memory are "
           "of fresh processes, medians; `load` is from the file's path to a method that is ready to run, `first output` is that and the first "
           "run, so that what a runtime puts off shows.", "",
           f"AnyMPS beside XNNPACK in geometric mean: {speedups}; with our delegate in ExecuTorch "
           f"{1 / mean_ratio(rows, 'delegate'):.2f}x over all.", "",
           "Short of XNNPACK: " + ("; ".join(short) + "." if short else "nothing."), "",
           "| model | threads | runtime | median ms | min | p90 | ratio | load ms | first output ms | peak RSS MB | of which before loading | max rel. difference |",
           "|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for row in rows:
        name = f"**{TITLES[row['runtime']]}**" if row["runtime"] == "anymps" else TITLES[row["runtime"]]
        out.append(f"| {row['model']} | {row['threads']} | {name} | {row['median_ms']:.2f} | {row['min_ms']:.2f} | {row['p90_ms']:.2f} | "
                   f"{row['ratio']:.2f} ({row['ratio_p10']:.2f}–{row['ratio_p90']:.2f}) | {row['load_ms']:.1f} | {row['first_output_ms']:.1f} | "
                   f"{row['peak_rss_mb']:.0f} | {row['baseline_rss_mb']:.0f} | {row['max_rel_diff']:.1e} |")
    return "\n".join(out) + "\n"


def svg(rows, about):
    latency, load = [], []
    for title, case in report.cases_of(rows).items():
        unit = case[PEER]
        latency.append((title, [(r, case[r]["ratio"], f"{case[r]['median_ms']:.1f} ms") for r in RUNTIMES]))
        load.append((title, [(r, case[r]["load_ms"] / unit["load_ms"], f"{case[r]['load_ms']:.0f} ms") for r in RUNTIMES]))
    panels = [("Latency relative to XNNPACK (shorter is faster; median in ms)", latency, 1.0),
              ("Load time relative to XNNPACK (shorter is faster)", load, 1.0)]
    return bar_chart("ExecuTorch programs: AnyMPS beside XNNPACK", f"{about['cpu']}, {about['cores']} cores; batch 1, f32; {about['date']}",
                     panels, {r: (TITLES[r], COLOURS[r]) for r in RUNTIMES})


def show(row):
    print(f"    {row['runtime']:<9} {row['median_ms']:8.2f} ms  min {row['min_ms']:8.2f}  p90 {row['p90_ms']:8.2f}  peak "
          f"{row['peak_rss_mb']:5.0f} MB  load {row['load_ms']:5.1f} ms  first output {row['first_output_ms']:5.1f} ms  ratio {row['ratio']:.2f} ({row['ratio_p10']:.2f} to "
          f"{row['ratio_p90']:.2f})", flush=True)


def main():
    args = parse_args()
    about = report.machine(ROOT)
    if about["load_average"] > 0.5:
        print(f"note: the machine is busy (load average {about['load_average']}): times will be longer and ratios less certain")
    log = ROOT / "build" / "logs" / "bench-executorch.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("")
    rows, begin = [], time.monotonic()
    cases = [(m, t) for m in args.models for t in args.threads]
    with tempfile.TemporaryDirectory(prefix="anymps-bench-") as folder:
        for number, (model, threads) in enumerate(cases, 1):
            print(f"[{number}/{len(cases)}] {model}, {threads} thread{'s' if threads > 1 else ''}", flush=True)
            try:
                results = measure_case(model, threads, args.rounds, folder, log)
            except (WorkerError, Disagreement) as error:
                sys.exit(f"scripts/bench executorch: {model}, {threads} threads: {error}\nNothing was written.")
            new = rows_of(model, threads, results)
            for row in new:
                show(row)
            rows += new
    args.out.mkdir(parents=True, exist_ok=True)
    data = {"machine": about, "peer": PEER, "rows": rows}
    (args.out / "executorch.json").write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    (args.out / "executorch.md").write_text(markdown(rows, about))
    (args.out / "executorch.svg").write_text(svg(rows, about))
    where = args.out.relative_to(ROOT) if args.out.is_relative_to(ROOT) else args.out
    print(f"wrote {where}/executorch.json, .md and .svg in {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
