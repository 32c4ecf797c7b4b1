# SPDX-License-Identifier: Apache-2.0
"""Where AnyMPS spends the time of a model: what `anymps profile` says, added up by op and kernel."""
import json
import subprocess

from worker import BUILDS, WorkerError

RUNS = 10
COMPUTES = 4  # operations for a byte moved: above this a kernel is told by its operations a second, below by its bytes


def profile(path, threads, inputs):
    words = [f"--input={name}={file}" for name, file in inputs.items()]
    run = subprocess.run([BUILDS["anymps"] / "bin" / "anymps", "profile", path, f"--threads={threads}", f"--runs={RUNS}", "--json", *words],
                         capture_output=True, text=True)
    if run.returncode != 0:
        raise WorkerError(f"anymps profile: {run.stderr.strip()}")
    return json.loads(run.stdout)["kernels"]


def added_up(kernels, count=3):
    """The (op, kernel) pairs that take most of the time: their share of it, and what they do in a second."""
    total, sums = sum(k["total_ns"] for k in kernels), {}
    for kernel in kernels:
        one = sums.setdefault((kernel["op"], kernel["kernel"]), {"ns": 0, "flops": 0, "bytes": 0})
        one["ns"] += kernel["total_ns"]
        one["flops"] += kernel["flops"] * kernel["calls"]
        one["bytes"] += kernel["bytes"] * kernel["calls"]
    rows = []
    for (op, kernel), one in sorted(sums.items(), key=lambda item: -item[1]["ns"])[:count]:
        row = {"op": op, "kernel": kernel, "share": round(one["ns"] / max(total, 1), 3)}
        if one["flops"] > COMPUTES * one["bytes"]:
            row["gflops"] = round(one["flops"] / max(one["ns"], 1), 1)
        else:
            row["gbs"] = round(one["bytes"] / max(one["ns"], 1), 1)
        rows.append(row)
    return rows


def most_of(path, threads, inputs):
    return added_up(profile(path, threads, inputs))


def words_of(rows):
    return ", ".join(f"{r['op']} {r['kernel']} {r['share']:.0%} ({r['gflops']:g} GFLOP/s)" if "gflops" in r
                     else f"{r['op']} {r['kernel']} {r['share']:.0%} ({r['gbs']:g} GB/s)" for r in rows)
