# SPDX-License-Identifier: Apache-2.0
"""Training steps and inferences of PyTorch models, call by call, through AnyMPS and torch CPU: writes replay.json and replay.md.

The calls were recorded by record.py. Both sides run in one process and in turns (replay.cc); one process per number of threads."""
import argparse
import ctypes
import gzip
import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(__file__).resolve().parent / "data"
MODELS = ["resnet18", "mobilenet_v2", "transformer"]
RUNTIMES = ["anymps", "torch"]


class Replay:
    """A recording on both sides."""

    def __init__(self, lib, model):
        self.lib, self.model = lib, model
        text = gzip.decompress((DATA / f"{model}.txt.gz").read_bytes()).decode()
        self.check(lib.replay_open(text.encode()))
        self.runs = []  # (op, phase) of each call
        for line in text.splitlines():
            words = line.split(" ", 2)
            if words[0] == "run":
                self.runs.append([])
            elif words[0] == "phase":
                phase = words[1]
            elif words[0] == "call":
                self.runs[-1].append((words[1].removeprefix("aten::").removesuffix("."), phase))

    def check(self, result):
        if result < 0:
            raise RuntimeError(f"{self.model}: {self.lib.bench_error().decode()}")
        return result

    def verify(self):
        """Runs every call on both sides from equal numbers; raises if a result differs."""
        for run in range(len(self.runs)):
            self.check(self.lib.replay_verify(run))

    def report(self):
        """What the engine had to do beside its kernels since the recording was opened."""
        return json.loads(self.lib.replay_report().decode())

    def run(self, run, runtime):
        """Nanoseconds of each call."""
        times = (ctypes.c_double * len(self.runs[run]))()
        self.check(self.lib.replay_run(run, RUNTIMES.index(runtime), times))
        return list(times)


def load(library, replay, threads):
    import torch  # noqa: F401 - its libraries are those that replay.cc uses
    lib = ctypes.CDLL(str(replay))
    for name in ("replay_load", "replay_open", "replay_verify", "replay_run"):
        getattr(lib, name).restype = ctypes.c_double
    lib.bench_error.restype = lib.replay_report.restype = ctypes.c_char_p
    if lib.replay_load(str(library).encode(), threads) < 0:
        raise RuntimeError(lib.bench_error().decode())
    return lib


def reference_calls(report):
    return {row["op"]: row["reference"] for row in report if row["reference"]}


def measure(replay, rounds):
    """Rows of phases, and of the ops in them."""
    rows, ops = [], []
    for run, calls in enumerate(replay.runs):
        times = {runtime: [] for runtime in RUNTIMES}
        for turn in range(rounds + 1):
            for runtime in RUNTIMES:
                taken = replay.run(run, runtime)
                if turn:  # the first is a warm-up
                    times[runtime].append(taken)
        for runtime, turns in times.items():
            phases, by_op = defaultdict(list), defaultdict(list)
            for taken in turns:
                sums, op_sums = defaultdict(float), defaultdict(float)
                for (op, phase), ns in zip(calls, taken):
                    sums[phase] += ns / 1e6
                    op_sums[phase, op] += ns / 1e6
                for phase, ms in sums.items():
                    phases[phase].append(ms)
                for key, ms in op_sums.items():
                    by_op[key].append(ms)
            about = {"model": replay.model, "runtime": runtime}
            rows += [{**about, "phase": p, "median_ms": statistics.median(t), "min_ms": min(t)} for p, t in phases.items()]
            ops += [{**about, "phase": p, "op": op, "calls": sum(c == (op, p) for c in calls), "median_ms": statistics.median(t), "min_ms": min(t)}
                    for (p, op), t in by_op.items() if max(t) > 0]
    return rows, ops


def work(args):
    lib = load(ROOT / "build/lib/libanymps.so", ROOT / "build/bench/eager/libreplay.so", args.worker)
    rows, ops, slow = [], [], {}
    for model in args.models.split(","):
        replay = Replay(lib, model)
        replay.verify()
        slow |= {f"{model}: {op}": count for op, count in reference_calls(replay.report()).items()}
        for to, found in zip((rows, ops), measure(replay, args.rounds)):
            to += [{"threads": args.worker, **row} for row in found]
    json.dump({"rows": rows, "ops": ops, "reference": slow}, sys.stdout)


def pairs(rows, *keys):
    """(key, anymps' row, torch's row), in the order of the rows."""
    found = defaultdict(dict)
    for row in rows:
        found[tuple(row[key] for key in keys)][row["runtime"]] = row
    return [(key, by["anymps"], by["torch"]) for key, by in found.items()]


def table(result):
    lines = [f"Recorded calls of PyTorch models, milliseconds (median of the turns; in brackets the least); {result['machine']['cpu']}.", "",
             "| model | threads | phase | AnyMPS | torch | torch / AnyMPS |", "|---|--:|---|--:|--:|--:|"]
    for (model, threads, phase), ours, theirs in pairs(result["rows"], "model", "threads", "phase"):
        lines.append(f"| {model} | {threads} | {phase} | {ours['median_ms']:.2f} ({ours['min_ms']:.2f}) | "
                     f"{theirs['median_ms']:.2f} ({theirs['min_ms']:.2f}) | {theirs['median_ms'] / ours['median_ms']:.2f} |")
    lines += ["", "Ops that take a percent of their model's time or more, by what they lose (1 thread, or the fewest):", "",
              "| model | phase | op | calls | AnyMPS | torch | torch / AnyMPS |", "|---|---|---|--:|--:|--:|--:|"]
    fewest = min(row["threads"] for row in result["ops"])
    found = pairs([row for row in result["ops"] if row["threads"] == fewest], "model", "phase", "op")
    whole = defaultdict(float)
    for (model, _, _), _, theirs in found:
        whole[model] += theirs["median_ms"]
    found = [row for row in found if row[1]["median_ms"] > whole[row[0][0]] / 100 or row[2]["median_ms"] > whole[row[0][0]] / 100]
    for (model, phase, op), ours, theirs in sorted(found, key=lambda row: row[2]["median_ms"] - row[1]["median_ms"]):
        lines.append(f"| {model} | {phase} | {op} | {ours['calls']} | {ours['median_ms']:.2f} | {theirs['median_ms']:.2f} | "
                     f"{theirs['median_ms'] / ours['median_ms']:.2f} |")
    lines += ["", "Calls of the reference kernel: " + (", ".join(f"{k} {v}" for k, v in result["reference"].items()) or "none") + "."]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--rounds", type=int, default=7, help="turns of each runtime (default 7)")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return work(args)
    sys.path.insert(0, str(ROOT / "bench" / "models"))
    from report import machine, save
    result = {"machine": machine(ROOT), "rows": [], "ops": [], "reference": {}}
    for threads in args.threads.split(","):
        command = [sys.executable, __file__, "--worker", threads, "--models", args.models, "--rounds", str(args.rounds)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": threads})
        if done.returncode:
            sys.exit("bench: a worker failed")
        got = json.loads(done.stdout)
        result["rows"] += got["rows"]
        result["ops"] += got["ops"]
        result["reference"] |= got["reference"]
    whole = args.models == ",".join(MODELS)
    out = args.out or ROOT / ("bench/results" if whole else "build/bench")
    text = table(result)
    save(out, "replay", {key: result[key] for key in ("machine", "rows", "ops", "reference")}, text)
    print(text)


if __name__ == "__main__":
    main()
