#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs AnyMPS and its peers side by side on the models out of wheels and writes wheels.json, wheels.md and wheels.svg.

Called by `scripts/bench wheels [options]`. Models and inputs are those of models/wheel_cases.py, at the sizes that users
run them with. Rounds in which other processes used the cores are taken again (quiet.py). A run of everything writes
bench/results; one of a part of it writes build/bench.
"""
import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

from chart import bar_chart
from kernels import most_of, words_of
from measure import MAX_REL_DIFF, Disagreement, measure_case, save_inputs
from options import add_common, finish, numbers, shown, start
from quiet import Quiet
from report import COLOURS, TITLES, better_peer, describe, ratio_fields, rows_of, versions_of
from worker import ROOT, RUNTIMES, WorkerError

sys.path.insert(0, str(ROOT / "models"))

import onnxruntime  # noqa: E402
import wheel_cases  # noqa: E402
from wheel_cases import CASES  # noqa: E402

NAMES = [name for name, case in CASES.items() if case.bench is not None]
THREADS = [1, 2]
PATIENCE_S = 20  # for free cores, before a model or a round that is taken again
SMALL_MS = 1.0  # what is shorter is measured too, but does not count in the mean
BEHIND = 1.1


def parse_args():
    parser = argparse.ArgumentParser(prog="scripts/bench wheels", description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=lambda v: v.split(","), help="parts of names, with commas (default: all)")
    parser.add_argument("--threads", type=numbers, default=THREADS)
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no further case after so many seconds")
    add_common(parser, RUNTIMES, rounds=9)
    args = parser.parse_args()
    args.names = [n for n in NAMES if not args.models or any(part in n for part in args.models)]
    if not args.names:
        parser.error(f"no model has {' or '.join(args.models)} in its name; there are {', '.join(NAMES)}")
    whole = args.names == NAMES and args.rounds >= 9 and args.threads == THREADS and args.runtimes == RUNTIMES and args.seconds == math.inf
    return finish(parser, args, whole)


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


def rows_of_case(name, model, threads, results, kernels):
    """Rows whose ratio is to the peer that is better in this case."""
    best, rows = better_peer(results), []
    for row in rows_of(model, threads, results):
        row = {**row, "model": name, "inputs": shapes(model.inputs()), "quiet": results[row["runtime"]].spoiled == 0}
        if best:
            row.update(ratio_fields(results[row["runtime"]], results[best]), peer=best)
        rows.append({**row, "kernels": kernels} if row["runtime"] == "anymps" else row)
    return rows


def compared(rows, threads):
    """Our rows that can be compared with a peer's, with that peer's median."""
    peers = {(r["model"], r["threads"], r["runtime"]): r for r in rows}
    ours = [r for r in rows if r["runtime"] == "anymps" and r["threads"] == threads and "peer" in r]
    return [(r, peers[r["model"], threads, r["peer"]]["median_ms"]) for r in ours]


def summary(rows):
    """For each number of threads: how much faster than the better peer, and who is behind."""
    out = []
    for threads in dict.fromkeys(r["threads"] for r in rows):
        cases = compared(rows, threads)
        large = [row for row, peer_ms in cases if peer_ms >= SMALL_MS]
        behind = sorted((row for row, _ in cases if row["ratio"] > BEHIND), key=lambda row: -row["ratio"])
        if not cases:
            continue
        mean = math.exp(statistics.mean(-math.log(r["ratio"]) for r in large)) if large else math.nan
        out.append(f"- {threads} thread{'s' if threads > 1 else ''}: {sum(r['ratio'] < 1 for r, _ in cases)} of {len(cases)} are faster than "
                   f"with the better peer. Above {SMALL_MS:g} ms the geometric mean of (better peer / AnyMPS) is {mean:.2f} ({len(large)} models).")
        if behind:
            out.append(f"  More than {BEHIND:g} times the better peer's time: "
                       + ", ".join(f"{r['model']} {r['ratio']:.2f} ({TITLES[r['peer']]}{'' if r['quiet'] else ', not quiet'})" for r in behind) + ".")
    return out


def cell(row):
    return f"{row['median_ms']:.3f}" if row else ""


def markdown(rows, failed, about):
    cases = {}
    for row in rows:
        cases.setdefault((row["model"], row["threads"]), {})[row["runtime"]] = row
    runtimes = list(dict.fromkeys(r["runtime"] for r in rows))
    out = ["# Models out of wheels", "", f"{versions_of(rows)}. {describe(about)}, load average at the start {about['load_average']}.", "",
           "Written by `scripts/bench wheels`: the runtimes take turns in one run, each in a process of its own, in f32. `ratio` is the time "
           "relative to the better peer in the same round (median, 10th to 90th percentile; below 1 is faster). Rounds in which other "
           "processes used the cores were taken again; where quiet ones could not be had, the ratio has a `~`. Peak RSS is of a fresh "
           "process, Python included for the peers. Times in ms: the median, for the load and for the first run too.", "", *summary(rows), "",
           "| model | inputs | threads | " + " | ".join(TITLES[r] for r in runtimes)
           + " | ratio | load | first run | peak MB | most time |", "|---|---|--:|" + "--:|" * (len(runtimes) + 4) + "---|"]
    for (name, threads), case in cases.items():
        ours = case.get("anymps", {})
        others = [case[r] for r in runtimes if r in case and r != "anymps"]

        def beside(key, digits):
            return " / ".join(f"{row.get(key, math.nan):.{digits}f}" for row in (ours, *others) if row)
        ratio = (f"{'' if ours['quiet'] else '~'}{ours['ratio']:.2f} ({ours['ratio_p10']:.2f}–{ours['ratio_p90']:.2f})"
                 if "ratio" in ours else "")
        out.append(f"| {name} | {next(iter(case.values()))['inputs']} | {threads} | " + " | ".join(cell(case.get(r)) for r in runtimes)
                   + f" | {ratio} | {beside('load_ms', 0)} | {beside('first_run_ms', 1)} | {beside('peak_rss_mb', 0)} "
                   f"| {words_of(ours.get('kernels', []))} |")
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
              for r in rows if r["runtime"] == "anymps" and "ratio" in r]
    panels = [("Latency relative to the better of its peers (the dashed line; shorter is faster)", groups, 1.0)]
    subtitle = f"{about['cpu']}, {about['cores']} cores; {about['date']}"
    return bar_chart("Models out of wheels", subtitle, panels, {"anymps": (TITLES["anymps"], COLOURS["anymps"])})


def write(out, rows, failed, about):
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"machine": about, "rows": rows, "failed": failed}, indent=1, ensure_ascii=False)
    (out / "wheels.json").write_text(text + "\n")
    (out / "wheels.md").write_text(markdown(rows, failed, about))
    (out / "wheels.svg").write_text(svg(rows, about))


def short(error):
    return str(error).replace(str(ROOT) + "/", "").splitlines()[0][:300]


def measure(name, threads, args, quiet, log, failed):
    model, path = model_of(name), wheel_cases.model_path(name)
    left_out, kernels = {}, []
    with tempfile.TemporaryDirectory(prefix="anymps-bench-") as folder:
        results = measure_case(model, path, threads, args.runtimes, args.rounds, folder, log, max(MAX_REL_DIFF, CASES[name].tolerance),
                               quiet=quiet, left_out=left_out)
        if "anymps" in results:
            kernels = most_of(path, threads, save_inputs(model, folder))
    for runtime, why in left_out.items():
        failed[f"{name} with {TITLES[runtime]}, threads {threads}"] = short(why)
    return rows_of_case(name, model, threads, results, kernels)


def main():
    args = parse_args()
    about, log = start("wheels")
    quiet = Quiet(again=args.rounds, patience=PATIENCE_S)
    rows, failed, wrong, begin = [], {}, 0, time.monotonic()
    cases = [(n, t) for n in args.names for t in args.threads]
    for number, (name, threads) in enumerate(cases, 1):
        if time.monotonic() - begin > args.seconds:
            failed[f"{name}, threads {threads}"] = f"the {args.seconds:g} seconds were over"
            continue
        print(f"[{number}/{len(cases)}] {name}, threads {threads}: ", end="", flush=True)
        if not quiet.watch.wait(PATIENCE_S):
            print("(others use the cores) ", end="", flush=True)
        try:
            new = measure(name, threads, args, quiet, log, failed)
        except (WorkerError, Disagreement) as error:
            failed[f"{name}, threads {threads}"] = short(error)
            wrong += 1
            print(f"FAILED: {short(error)}", flush=True)
            continue
        print(", ".join(f"{TITLES[r['runtime']]} {r['median_ms']:.3f} ms" for r in new), end="")
        ours = next((r for r in new if r["runtime"] == "anymps" and "ratio" in r), None)
        print(f"; ratio {ours['ratio']:.2f} ({ours['ratio_p10']:.2f} to {ours['ratio_p90']:.2f}){'' if ours['quiet'] else ', not quiet'}"
              if ours else "", flush=True)
        rows += new
        write(args.out, rows, failed, about)
    if rows:
        write(args.out, rows, failed, about)
        print("\n".join(summary(rows)))
        print(f"wrote {shown(args.out)}/wheels.json, wheels.md and wheels.svg in {time.monotonic() - begin:.0f} s")
    if wrong:
        sys.exit(f"scripts/bench wheels: {wrong} of {len(cases)} could not be measured")


if __name__ == "__main__":
    main()
