# SPDX-License-Identifier: Apache-2.0
"""Measures every op of a list, each in processes of its own, into results/OP.csv. Run again, it goes on where it was stopped."""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from . import environment, results, targets


class Progress:
    """One line that moves on a terminal; elsewhere a line per op."""

    def __init__(self, total):
        self.total, self.done, self.start = total, 0, time.monotonic()
        self.moves = sys.stderr.isatty()

    def eta(self):
        if not self.done:
            return "-:--"
        left = (time.monotonic() - self.start) / self.done * (self.total - self.done)
        return f"{int(left) // 60}:{int(left) % 60:02d}"

    def show(self, op):
        if self.moves:
            filled = 30 * self.done // max(self.total, 1)
            bar = "#" * filled + "." * (30 - filled)
            print(f"\r\033[K[{bar}] {self.done}/{self.total}  ETA {self.eta()}  {op}", end="", file=sys.stderr, flush=True)

    def finish(self, op, text):
        self.done += 1
        if self.moves:
            print("\r\033[K", end="", file=sys.stderr)
        print(f"[{self.done}/{self.total}] {op}: {text}" + ("" if self.moves else f" (ETA {self.eta()})"), file=sys.stderr, flush=True)


def run_worker(target, mode, options):
    """The rows that the process of an op wrote; the last one says what ended it, if something did."""
    env = {**os.environ, "PYTORCH_ENABLE_MPS_FALLBACK": "1" if mode == "fallback" else "0"}
    if environment.has_door():
        env["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    command = [sys.executable, "-m", "mps_fallback_bench.worker", mode, str(options.seconds), options.timer]
    process = subprocess.Popen(
        command, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    ended = None
    try:
        out, errors = process.communicate(json.dumps(target.asdict()), timeout=options.timeout)
        if process.returncode:
            last = errors.strip().splitlines()[-1:] or [""]
            ended = f"the process ended with status {process.returncode}: {last[0]}"[:300]
    except subprocess.TimeoutExpired:
        process.kill()
        out, _ = process.communicate()
        ended = f"not done after {options.timeout:g} s"
    except BaseException:
        process.kill()
        process.wait()
        raise
    rows = [json.loads(line) for line in out.splitlines() if line.startswith("{") and line.endswith("}")]
    return rows + ([{"op": target.op, "status": ended}] if ended else [])


def measure(target, common, options):
    rows = run_worker(target, "fallback", options)
    native = {}
    if any(row.get("fell_back") for row in rows) and environment.has_door():
        # Only here is there a kernel to compare with: on a Mac, what falls back has none.
        native = {(row.get("shape"), row.get("dtype")): row for row in run_worker(target, "native", options)}
    for row in rows:
        found = native.get((row.get("shape"), row.get("dtype")), {})
        row |= {name: found[name] for name in ("native_median_us", "native_iqr_us") if name in found}
        results.derive(row)
    return [{**common, **row} for row in rows]


def summary(rows):
    good = [row for row in rows if row["status"] == "ok"]
    bad = [row["status"] for row in rows if row["status"] != "ok"]
    fell = sum(row["fell_back"] for row in good)
    worst = max((row["penalty"] for row in good), default=0)
    text = f"{len(good)} measured, {fell} fell back, penalty up to {worst:.2f}" if good else "nothing measured"
    return text + (f"; {len(bad)} failed: {bad[0]}" if bad else "")


def arguments():
    parser = argparse.ArgumentParser(prog="bench_all.sh", description=__doc__)
    parser.add_argument("--targets", default="ops/targets.yaml", help="default: %(default)s, or else the seed list")
    parser.add_argument("--results_dir", default="results")
    parser.add_argument("--ops", nargs="+", metavar="OP", help="only these of the list")
    parser.add_argument("--seconds", type=float, default=1.0, help="at most about so long per case (default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=300, help="seconds after which an op is given up")
    parser.add_argument("--timer", choices=("python", "native"), default="python", help="native: the C++ timer of AnyMPS")
    parser.add_argument("--fresh", action="store_true", help="measure anew what is measured already")
    options = parser.parse_args()
    if options.targets == parser.get_default("targets") and not Path(options.targets).exists():
        options.targets = "ops/targets.seed.yaml"
    return options


def main():
    options = arguments()
    if sys.platform != "darwin" and not environment.has_door():
        sys.exit("there is no device mps: this is not a Mac, and torch_anymps is not installed (pip install ../doors/torch)")
    try:
        chosen, problems = targets.load(options.targets)
    except targets.Wrong as error:
        sys.exit(str(error))
    for problem in problems:
        print(problem, file=sys.stderr)
    if options.ops:
        missing = sorted(set(options.ops) - {target.op for target in chosen})
        problems += [f"{options.targets}: {op} is not in the list" for op in missing]
        chosen = [target for target in chosen if target.op in options.ops]

    folder = Path(options.results_dir)
    run = {**environment.describe(), "timer": options.timer}
    todo = []
    for target in chosen:
        key = hashlib.sha256(json.dumps([target.asdict(), run, options.seconds], sort_keys=True).encode()).hexdigest()[:12]
        if options.fresh or results.key_of(folder / f"{target.op}.csv") != key:
            todo.append((target, {**run, "demand": target.demand, "links": target.links, "key": key}))
    if len(todo) < len(chosen):
        print(f"{len(chosen) - len(todo)} of {len(chosen)} ops are in {folder} already; --fresh measures them anew", file=sys.stderr)
    # What is wrong with the list is a result too.
    (folder / "_targets.csv").unlink(missing_ok=True)
    if problems:
        results.write(folder / "_targets.csv", [{**run, "status": problem} for problem in problems])

    progress = Progress(len(todo))
    for target, common in todo:
        progress.show(target.op)
        rows = measure(target, common, options)
        results.write(folder / f"{target.op}.csv", rows)
        progress.finish(target.op, summary(rows))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nstopped; the same command goes on from here")
