#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs AnyMPS and its peers side by side on the reference models and writes models.json, models.md and models.svg.

Called by `scripts/bench models [options]`. A run of everything writes bench/results; one of a part of it writes
build/bench, so that a quick look never replaces the published numbers.
"""
import argparse
import json
import sys
import tempfile
import time

from measure import KINDS, MODELS, QUANTIZED, Disagreement, measure_case
from options import add_common, finish, names, numbers, shown, start
from report import PEER, markdown, rows_of, svg
from worker import ROOT, RUNTIMES, WorkerError

IDLE_LIMIT = 0.05


def parse_args():
    models = [m.name for m in MODELS]
    known = models + [m.name for m in QUANTIZED + KINDS]
    parser = argparse.ArgumentParser(prog="scripts/bench models", description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=names("model", known), default=models,
                        help=f"names, with commas (default: those of f32, {', '.join(models)})")
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    add_common(parser, RUNTIMES, rounds=15)
    args = parser.parse_args()
    whole = args.models == models and args.runtimes == RUNTIMES and args.threads == [1, 2] and args.rounds >= 10
    return finish(parser, args, whole)


def show(row):
    ratio = f"  ratio {row['ratio']:.2f} ({row['ratio_p10']:.2f} to {row['ratio_p90']:.2f})" if "ratio" in row else ""
    print(f"    {row['runtime']:<12} {row['median_ms']:8.2f} ms  min {row['min_ms']:8.2f}  p90 {row['p90_ms']:8.2f}"
          f"  peak {row['peak_rss_mb']:6.0f} MB  load {row['load_ms']:5.0f} ms{ratio}", flush=True)
    if row["idle_cpu"] > IDLE_LIMIT:
        print(f"    note: {row['runtime']} used {row['idle_cpu']:.0%} of a core while others were measured", flush=True)


def write_results(out, rows, about):
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"machine": about, "peer": PEER, "rows": rows}, indent=1, ensure_ascii=False)
    (out / "models.json").write_text(text + "\n")
    (out / "models.md").write_text(markdown(rows, about))
    (out / "models.svg").write_text(svg(rows, about))


def main():
    args = parse_args()
    about, log = start("models")
    cases = [(m, t) for m in MODELS + QUANTIZED + KINDS if m.name in args.models for t in args.threads]
    rows, begin = [], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="anymps-bench-") as folder:
        for number, (model, threads) in enumerate(cases, 1):
            print(f"[{number}/{len(cases)}] {model.name}, batch {model.batch}, threads {threads}", flush=True)
            path = ROOT / ".models" / f"{model.name}.onnx"
            left_out = {} if model in QUANTIZED else None
            try:
                results = measure_case(model, path, threads, args.runtimes, args.rounds, folder, log, model.allowed, left_out=left_out)
            except (WorkerError, Disagreement) as error:
                sys.exit(f"scripts/bench models: {model.name}, {threads} threads: {error}\nNothing was written.")
            for runtime, why in (left_out or {}).items():
                print(f"    {runtime} is left out: {why}")
            new = rows_of(model, threads, results)
            for row in new:
                show(row)
            rows += new
    write_results(args.out, rows, about)
    print(f"wrote {shown(args.out)}/models.json, models.md and models.svg in {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
