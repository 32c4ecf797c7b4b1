# SPDX-License-Identifier: Apache-2.0
"""Eager calls beside torch CPU and numpy, in one process and in turns: writes eager.json and eager.md.

AnyMPS and torch are called from C++ (cases.cc), numpy from Python, whose own cost of about 0.1 us is part of its times."""
import argparse
import ctypes
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "models"))
import numpy as np
import torch  # its libraries are those that cases.cc uses
from report import machine, save

MILLION = 1 << 20
TURN_NS = 20e6  # about as long each turn lasts


def numpy_cases():
    rng = np.random.default_rng(0)

    def floats(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    def binary(count):
        a, b, y = floats(count), floats(count), floats(count)
        return lambda: np.add(a, b, out=y)

    def product(dtype):
        a, b = floats(256, 256).astype(dtype), floats(256, 256).astype(dtype)
        return lambda: a @ b

    square, wide, rows = floats(1024, 1024), floats(1024, 2048), floats(1, 1024)

    def strided():
        wide[:, ::2] = square

    def transposed(to=floats(1024, 1024)):
        to[:] = square.T

    def add_row():
        square[17] += rows[0]

    return {"add, 1 element": binary(1), "add, 1 M": binary(MILLION), "copy, 1 M, into a strided view": strided,
            "copy, 1 M, transposed": transposed, "add 1 row into 1 M, in place": add_row,
            **{f"matmul 256^3, {name}": product(dtype) for name, dtype in
               [("f32", np.float32), ("f64", np.float64), ("i64", np.int64), ("c64", np.complex64),
                ("c128", np.complex128)]}}


def timed(fn, calls):
    start = time.perf_counter_ns()
    for _ in range(calls):
        fn()
    return (time.perf_counter_ns() - start) / calls


def load(library, cases, threads):
    lib = ctypes.CDLL(str(cases))
    for name in ("bench_load", "bench_verify", "bench_run"):
        getattr(lib, name).restype = ctypes.c_double
    lib.bench_name.restype = lib.bench_error.restype = ctypes.c_char_p
    count = lib.bench_load(str(library).encode(), threads)
    if count < 0:
        sys.exit(f"bench: {lib.bench_error().decode()}")
    return lib, int(count)


def table(rows, about):
    lines = [f"Eager calls, nanoseconds (median of the turns; in brackets the least); {about['cpu']}, {rows[0]['threads']} thread(s).", "",
             "| case | AnyMPS | torch | numpy | AnyMPS / torch |", "|---|--:|--:|--:|--:|"]
    for case in dict.fromkeys(row["case"] for row in rows):
        by = {row["runtime"]: row for row in rows if row["case"] == case}
        cells = [f"{by[r]['median_ns']:,.0f} ({by[r]['min_ns']:,.0f})" if r in by else "-" for r in ("anymps", "torch", "numpy")]
        lines.append(f"| {case} | {' | '.join(cells)} | {by['anymps']['median_ns'] / by['torch']['median_ns']:.2f} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9, help="turns of each runtime (default 9)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cases", default="", help="only those whose names hold this")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    lib, count = load(ROOT / "build/lib/libanymps.so", ROOT / "build/bench/eager/libeager_cases.so", args.threads)
    torch.set_num_threads(args.threads)
    others, rows = numpy_cases(), []
    for which in range(count):
        name = lib.bench_name(which).decode()
        if args.cases not in name:
            continue
        if lib.bench_verify(which) < 0:
            sys.exit(f"bench: {lib.bench_error().decode()}")
        runtimes = {"anymps": lambda n: lib.bench_run(which, 0, n), "torch": lambda n: lib.bench_run(which, 1, n)}
        if name in others:
            runtimes["numpy"] = lambda n: timed(others[name], n)
        calls = {r: max(1, int(TURN_NS / max(run(3), 1))) for r, run in runtimes.items()}
        times = {r: [] for r in runtimes}
        for _ in range(args.rounds):
            for r, run in runtimes.items():
                times[r].append(run(calls[r]))
        for r, got in times.items():
            rows.append({"case": name, "runtime": r, "threads": args.threads, "median_ns": statistics.median(got), "min_ns": min(got)})
        print(f"{name:40}", *(f"{r} {statistics.median(got):12,.0f} ns" for r, got in times.items()), flush=True)
    about = machine(ROOT)
    out = args.out or ROOT / ("build/bench" if args.cases else "bench/results")
    save(out, "eager", {"machine": about, "rows": rows}, table(rows, about))


if __name__ == "__main__":
    main()
