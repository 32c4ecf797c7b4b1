#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far kernels are from what the machine can do; writes ops.json and ops.md.

Called by `scripts/bench ops [options]`. A probe (roofline.cc) measures multiply-adds of each instruction set and bytes from
each level of the memory. Then ops run in graphs of their own: the profiler says how long a kernel takes, how many operations
that are and how many bytes it must move at least. The limit is the longer of the two times that the machine needs for these.
A run of everything writes bench/results; one of a part of it writes build/bench.
"""
import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / "models"), str(ROOT / "build" / "python")]

from options import numbers, shown, start, write_results  # noqa: E402
from quiet import MOST, Watch  # noqa: E402
from report import describe  # noqa: E402

ROUNDS = 5
ROUND_S = 0.05
AGAIN = 5  # rounds that others have spoiled, for each case
PATIENCE_S = 5  # for free cores, before a round that is taken again
PATIENCE_OF_ALL_S = 300
PEAKS = {"f32": " f32", "bf16": " bf16", "i8": " i8"}
SETS = ["sse4", "avx2", "avx512"]


def constant(g, *shape, dtype="f32"):
    import numpy as np

    rng = np.random.default_rng(len(shape))
    if dtype in ("i8", "u8"):
        return g.constant(rng.integers(0, 100, shape).astype(np.int8 if dtype == "i8" else np.uint8))
    return g.constant(rng.standard_normal(shape).astype(np.float32) * 0.1, dtype=dtype)


def matmul(m, k, n, dtype="f32"):
    return lambda g, ops: ops.matmul(g.input("x", dtype, (m, k)), constant(g, k, n, dtype=dtype))


def batched(b, m, k, n):
    return lambda g, ops: ops.matmul(g.input("a", "f32", (b, m, k)), g.input("b", "f32", (b, k, n)))


def integers(m, k, n):
    return lambda g, ops: ops.matmul_integer(g.input("x", "u8", (m, k)), constant(g, k, n, dtype="i8"))


def conv(channels, out, size, kernel, stride=1, groups=1):
    def build(g, ops):
        x = g.input("x", "f32", (1, size, size, channels))
        return ops.conv(x, constant(g, out, channels // groups, kernel, kernel), strides=(stride, stride), pads=[kernel // 2] * 4,
                        groups=groups, layout="channels_last")
    return build


def unary(op, *shape, **attrs):
    return lambda g, ops: getattr(ops, op)(g.input("x", "f32", shape), **attrs)


def binary(op, first, second):
    return lambda g, ops: getattr(ops, op)(g.input("x", "f32", first), g.input("y", "f32", second))


def reduced(op, shape, axis):
    return lambda g, ops: getattr(ops, op)(g.input("x", "f32", shape), g.constant([axis], dtype="i64"))


def layer_norm(rows, size):
    return lambda g, ops: ops.layer_norm(g.input("x", "f32", (rows, size)), constant(g, size), constant(g, size))


def transposed(shape, perm):  # an output that is a view would be copied by the plan, which is no kernel
    return lambda g, ops: ops.relu(ops.transpose(g.input("x", "f32", shape), perm=perm))


def resized(mode):
    return lambda g, ops: ops.resize(g.input("x", "f32", (1, 32, 64, 64)), sizes=g.constant([1, 32, 128, 128], dtype="i64"), mode=mode)


def attention(heads, length, size):
    shape = (1, heads, length, size)
    return lambda g, ops: ops.sdpa(*(g.input(name, "f32", shape) for name in "qkv"))


# Name -> the peak it is measured by, and the graph.
CASES = {
    "matmul 1x768x3072": ("f32", matmul(1, 768, 3072)),
    "matmul 8x768x3072": ("f32", matmul(8, 768, 3072)),
    "matmul 128x384x384": ("f32", matmul(128, 384, 384)),
    "matmul 128x768x3072": ("f32", matmul(128, 768, 3072)),
    "matmul 1024x1024x1024": ("f32", matmul(1024, 1024, 1024)),
    "matmul 197x64x197, 12 of them": ("f32", batched(12, 197, 64, 197)),
    "matmul bf16 128x768x3072": ("bf16", matmul(128, 768, 3072, "bf16")),
    "matmul u8 x i8 128x768x3072": ("i8", integers(128, 768, 3072)),
    "conv 3x3 64 to 64, 56x56": ("f32", conv(64, 64, 56, 3)),
    "conv 3x3 256 to 256, 14x14": ("f32", conv(256, 256, 14, 3)),
    "conv 3x3 512 to 512, 7x7": ("f32", conv(512, 512, 7, 3)),
    "conv 3x3 stride 2, 128 to 128, 56x56": ("f32", conv(128, 128, 56, 3, stride=2)),
    "conv 7x7 stride 2, 3 to 64, 224x224": ("f32", conv(3, 64, 224, 7, stride=2)),
    "conv 1x1 256 to 64, 56x56": ("f32", conv(256, 64, 56, 1)),
    "conv 1x1 96 to 24, 56x56": ("f32", conv(96, 24, 56, 1)),
    "conv 3x3 in 32 groups, 128 to 128, 56x56": ("f32", conv(128, 128, 56, 3, groups=32)),
    "depthwise 3x3, 96 channels, 56x56": ("f32", conv(96, 96, 56, 3, groups=96)),
    "depthwise 5x5, 240 channels, 14x14": ("f32", conv(240, 240, 14, 5, groups=240)),
    "softmax 1536x128": ("f32", unary("softmax", 1536, 128)),
    "softmax 12x512x512": ("f32", unary("softmax", 12, 512, 512)),
    "layer_norm 128x768": ("f32", layer_norm(128, 768)),
    "softmax 20000x4": ("f32", unary("softmax", 20000, 4)),
    "softmax 1000x77": ("f32", unary("softmax", 1000, 77)),
    "layer_norm 4096x32": ("f32", layer_norm(4096, 32)),
    "add 1M": ("f32", binary("add", (1024, 1024), (1024, 1024))),
    "add 16M": ("f32", binary("add", (4096, 4096), (4096, 4096))),
    "mul 64K": ("f32", binary("mul", (256, 256), (256, 256))),
    "add a row, 1M": ("f32", binary("add", (1024, 1024), (1024,))),
    "exp 64K": ("f32", unary("exp", 256, 256)),
    "gelu 1M": ("f32", unary("gelu", 1024, 1024)),
    "sigmoid 1M": ("f32", unary("sigmoid", 1024, 1024)),
    "mish 256K": ("f32", unary("mish", 512, 512)),
    "f32 to i64, 256K": ("f32", unary("cast", 512, 512, dtype="i64")),
    "reduce_sum of rows, 1M": ("f32", reduced("reduce_sum", (1024, 1024), 1)),
    "reduce_sum of columns, 1M": ("f32", reduced("reduce_sum", (1024, 1024), 0)),
    "reduce_max of rows, 1M": ("f32", reduced("reduce_max", (1024, 1024), 1)),
    "reduce_max of the middle, 16x64x100": ("f32", reduced("reduce_max", (16, 64, 100), 1)),
    "reduce_log_sum_exp of the middle, 8x196x384": ("f32", reduced("reduce_log_sum_exp", (8, 196, 384), 1)),
    "arg_max of the middle, 21x128x128": ("f32", unary("arg_max", 1, 21, 16384, axis=1)),
    "arg_max of rows, 20000x7": ("f32", unary("arg_max", 20000, 7, axis=1)),
    "top_k 8 of 512, 256 rows": ("f32", lambda g, ops: ops.top_k(g.input("x", "f32", (256, 512)), k=8)[0]),
    "space_to_depth 2, 3x320x320": ("f32", unary("space_to_depth", 1, 3, 320, 320, block=2)),
    "depth_to_space 2, 64x80x80": ("f32", unary("depth_to_space", 1, 64, 80, 80, block=2)),
    "transpose 1024x1024": ("f32", transposed((1024, 1024), (1, 0))),
    "transpose 128x12x64 to 12x128x64": ("f32", transposed((128, 12, 64), (1, 0, 2))),
    "resize nearest 64 to 128": ("f32", resized("nearest")),
    "resize linear 64 to 128": ("f32", resized("linear")),
    "max_pool 3x3 stride 2, 64 channels, 112x112": (
        "f32", lambda g, ops: ops.max_pool(g.input("x", "f32", (1, 112, 112, 64)), kernel=[3, 3], strides=[2, 2], pads=[1] * 4,
                                           layout="channels_last")),
    "max_pool 3 stride 2, 4x64x500": ("f32", unary("max_pool", 4, 64, 500, kernel=[3], strides=[2])),
    "attention 12 heads, 128x64": ("f32", attention(12, 128, 64)),
    "attention 12 heads, 512x64": ("f32", attention(12, 512, 64)),
}


class Cores:
    """The watch over our cores. Waits as long as its patience lasts, which is one for the whole run."""

    def __init__(self, watch=None, patience=PATIENCE_OF_ALL_S, clock=time.monotonic):
        self.watch, self.left, self.clock = watch or Watch(), patience, clock

    def wait(self):
        begin = self.clock()
        free = self.watch.wait(min(PATIENCE_S, self.left))
        self.left = max(0, self.left - (self.clock() - begin))
        return free

    def quiet(self, one):
        """What `one` gives, and whether others let it run undisturbed."""
        self.watch.start()
        given = one()
        return given, self.watch.foreign() <= MOST


def probe(threads):
    run = subprocess.run([ROOT / "build" / "bin" / "bench_ops", ",".join(map(str, threads))], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def better(one, other):
    """Two probes as one: what a machine has done once it can do."""
    best = {(row["name"], row["threads"]): row["per_second"] for row in other["limits"]}
    return {**one, "limits": [{**row, "per_second": max(row["per_second"], best[row["name"], row["threads"]])} for row in one["limits"]]}


class Limits:
    """The probe's figures for one number of threads."""

    def __init__(self, probed, threads, isa=""):
        self.caches = probed["caches"]
        self.threads = threads
        self.rates = {row["name"]: row["per_second"] for row in probed["limits"] if row["threads"] == threads}
        self.sets = SETS[:SETS.index(isa) + 1] if isa in SETS else SETS

    def peak(self, kind):
        """Operations a second: the fastest of the instruction sets that may be used. Types without instructions of their own are
        computed in f32."""
        found = [self.rates[name + PEAKS[kind]] for name in self.sets if name + PEAKS[kind] in self.rates]
        return max(found) if found else self.peak("f32") if kind != "f32" else None

    def level(self, count):
        """Where so many bytes lie that are used again and again."""
        for level, share in (("L1", self.threads), ("L2", self.threads), ("L3", 1)):
            if count <= self.caches[level] * share:
                return level
        return "memory"

    def bandwidth(self, count):
        level = self.level(count)
        return max(self.rates[f"{level} read"], self.rates[f"{level} copy"])

    def seconds(self, kind, flops, count):
        """The least time, and which of the two takes it."""
        peak = self.peak(kind)
        computing = flops / peak if peak else 0
        moving = count / self.bandwidth(count)
        return max(computing, moving), "computing" if computing >= moving else self.level(count)


def compiled(name, threads):
    import anymps
    import numpy as np

    graph = anymps.Graph()
    graph.outputs(CASES[name][1](graph, anymps.ops))
    rng = np.random.default_rng(0)
    feeds = []
    for value in graph.input_values:
        data = rng.integers(0, 100, value.shape).astype(np.uint8) if value.dtype == "u8" else rng.standard_normal(value.shape, np.float32)
        feeds.append(anymps.tensor(data, None if value.dtype == "u8" else value.dtype))
    return anymps.compile(graph, threads=threads), feeds


def times_of(kernels):
    """The kernel that takes most, and the nanoseconds of all of one run, each at its best."""
    most = max(kernels, key=lambda k: k["min_ns"])
    return most["kernel"] + (f" {most['detail']}" if most["detail"] else ""), sum(k["min_ns"] for k in kernels)


def quiet_best(one, cores):
    """The best of some rounds of `one()`, each the kernels of a profile, and whether enough of them were quiet."""
    best, quiet, taken = None, 0, 0
    while quiet < ROUNDS and taken < ROUNDS + AGAIN:
        kernels, undisturbed = cores.quiet(one)
        taken, quiet = taken + 1, quiet + undisturbed
        if not undisturbed:
            cores.wait()
        if best is None or times_of(kernels)[1] < times_of(best)[1]:
            best = kernels
    return best, quiet == ROUNDS


def measure(name, threads, cores):
    import anymps

    model, feeds = compiled(name, threads)
    results = model.run(feeds)
    start = time.perf_counter()
    model.run(feeds, results)
    calls = max(3, min(1000, int(ROUND_S / max(time.perf_counter() - start, 1e-7))))

    def one():
        with anymps.profile() as profile:
            for _ in range(calls):
                model.run(feeds, results)
        return profile.json()["kernels"]
    kernels, quiet = quiet_best(one, cores)
    kernel, ns = times_of(kernels)
    return {"case": name, "threads": threads, "kernel": kernel, "us": round(ns / 1e3, 2), "flops": sum(k["flops"] for k in kernels),
            "bytes": sum(k["bytes"] for k in kernels), "quiet": quiet}


def with_limit(row, limits):
    """A measurement beside what the machine needs for it at least."""
    seconds, by = limits.seconds(CASES[row["case"]][0], row["flops"], row["bytes"])
    us = row["us"]
    return {**row, "gflops": round(row["flops"] / us / 1e3, 1), "gbs": round(row["bytes"] / us / 1e3, 1), "limit_us": round(seconds * 1e6, 2),
            "bound": by, "share": round(seconds * 1e6 / us, 3)}


def amount(row):
    return f"{row['per_second'] / 1e9:.0f} {'GFLOP/s' if row['unit'] == 'flops' else 'GB/s'}"


def markdown(rows, probed, about):
    threads = list(dict.fromkeys(row["threads"] for row in probed["limits"]))
    limits = {(row["name"], row["threads"]): row for row in probed["limits"]}
    out = ["# Kernels beside what the machine can do", "", f"{describe(about)}, load average at the start {about['load_average']}.", "",
           "Written by `scripts/bench ops`. First the machine: multiply-adds by instruction set, and bytes read, or read and written, by where "
           "they lie (caches of " + ", ".join(f"{size / 1024:.0f} KiB" for size in probed["caches"].values()) + "; the last may be shared with "
           "others).", "", "| | " + " | ".join(f"{n} thread{'s' if n > 1 else ''}" for n in threads) + " |", "|---|" + "--:|" * len(threads)]
    for name in dict.fromkeys(row["name"] for row in probed["limits"]):
        out.append(f"| {name} | " + " | ".join(amount(limits[name, n]) for n in threads) + " |")
    out += ["", "Then ops: the best time of all kernels of one run, with the one that takes most. `limit` is the time that the machine needs "
            "for the operations or for the bytes, whichever takes longer, and says which; the last column is the limit's share of the time "
            "(1: nothing is left to gain; above 1: the kernel does with fewer operations than the op has by its definition, or what was "
            "written last is still in a nearer cache; below 0.5: worth a look). Each op runs again and again on the same memory, so small ones find it in the caches. `~`: others used the cores.", "",
            "| op | threads | kernel | µs | GFLOP/s | GB/s | limit µs | by | share |", "|---|--:|---|--:|--:|--:|--:|---|--:|"]
    for row in rows:
        out.append(f"| {row['case']} | {row['threads']} | {row['kernel']} | {'' if row['quiet'] else '~'}{row['us']:.1f} | {row['gflops']:.1f} | "
                   f"{row['gbs']:.1f} | {row['limit_us']:.1f} | {row['bound']} | {row['share']:.2f} |")
    return "\n".join(out) + "\n"


def parse_args():
    parser = argparse.ArgumentParser(prog="scripts/bench ops", description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=lambda v: v.split(","), help="parts of names, with commas (default: all)")
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--out", type=Path, help="folder of the results")
    args = parser.parse_args()
    args.names = [n for n in CASES if not args.cases or any(part in n for part in args.cases)]
    if not args.names:
        parser.error(f"no case has {' or '.join(args.cases)} in its name; there are {', '.join(CASES)}")
    whole = args.names == list(CASES) and args.threads == [1, 2]
    args.out = args.out or ROOT / ("bench/results" if whole else "build/bench")
    return args


def main():
    args = parse_args()
    about, _ = start("ops")
    cores, begin, rows = Cores(), time.monotonic(), []
    if not cores.wait():
        print("note: others use the cores: the limits may be too low")
    probed = probe(args.threads)
    for threads in args.threads:
        for name in args.names:
            rows.append(measure(name, threads, cores))
            print(f"{name}, threads {threads}: {rows[-1]['us']:.1f} us, {rows[-1]['kernel']}", flush=True)
    probed = better(probed, probe(args.threads))
    isa = os.environ.get("ANYMPS_ISA", "")
    rows = [with_limit(row, Limits(probed, row["threads"], isa)) for row in rows]
    write_results(args.out, "ops", rows, {**about, "limits": probed}, markdown(rows, probed, about))
    print(f"wrote {shown(args.out)}/ops.json and ops.md in {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
