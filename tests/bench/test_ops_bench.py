# SPDX-License-Identifier: Apache-2.0
"""scripts/bench ops: its limits, its table, and that every case runs."""
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "bench" / "ops"), str(ROOT / "bench" / "models"), str(ROOT / "build" / "python")]

import report  # noqa: E402
import run_ops  # noqa: E402

PROBED = {"caches": {"L1": 1000, "L2": 10000, "L3": 100000}, "limits": [
    {"name": name, "threads": threads, "unit": unit, "per_second": rate * threads}
    for threads in (1, 2)
    for name, unit, rate in [("sse4 f32", "flops", 1e10), ("avx2 f32", "flops", 4e10), ("avx512 f32", "flops", 8e10), ("avx512 i8", "flops", 32e10),
                             *((f"{level} {kind}", "bytes", gbs * 1e9) for level, gbs in (("L1", 100), ("L2", 50), ("L3", 20), ("memory", 10))
                               for kind in ("read", "copy"))]]}


def test_the_longer_of_two_times_is_the_limit():
    limits = run_ops.Limits(PROBED, 1)
    assert limits.seconds("f32", 8e10, 500) == (1.0, "computing")
    assert limits.seconds("f32", 0, 1000) == (1000 / 100e9, "L1")
    assert limits.seconds("f32", 1, 5000) == (5000 / 50e9, "L2")
    assert limits.seconds("f32", 1, 50000) == (50000 / 20e9, "L3")
    assert limits.seconds("f32", 1, 1e9) == (0.1, "memory")


def test_more_threads_have_more_caches_of_their_own():
    limits = run_ops.Limits(PROBED, 2)
    assert [limits.level(n) for n in (2000, 20000, 100000, 100001)] == ["L1", "L2", "L3", "memory"]
    assert limits.seconds("f32", 16e10, 1)[0] == 1.0


def test_the_peak_is_that_of_the_sets_in_use():
    assert run_ops.Limits(PROBED, 1).peak("i8") == 32e10
    assert run_ops.Limits(PROBED, 1).peak("bf16") == 8e10  # no instructions of its own here
    assert run_ops.Limits(PROBED, 1, "avx2").peak("f32") == 4e10
    assert run_ops.Limits(PROBED, 1, "sse4").peak("i8") == 1e10


def test_of_two_probes_the_better_figures_count():
    lower = {**PROBED, "limits": [{**row, "per_second": row["per_second"] / (2 if row["name"] == "L1 read" else 0.5)} for row in PROBED["limits"]]}
    got = {(row["name"], row["threads"]): row["per_second"] for row in run_ops.better(PROBED, lower)["limits"]}
    assert got["L1 read", 1] == 100e9 and got["L2 read", 2] == 200e9


class Cores:
    def __init__(self, quiet):
        self.states, self.waits = list(quiet), 0

    def quiet(self, one):
        return one(), self.states.pop(0)

    def wait(self):
        self.waits += 1


def test_rounds_that_others_spoil_are_taken_again():
    times = iter([9, 7, 5, 8, 6, 4, 3])

    def one():
        return [{"kernel": "k", "detail": "", "min_ns": next(times)}]
    cores = Cores([True, False, True, True, True, True, True])
    kernels, quiet = run_ops.quiet_best(one, cores)
    assert quiet and kernels[0]["min_ns"] == 4 and cores.waits == 1
    times = iter(range(100, 0, -1))
    cores = Cores([False] * 100)
    assert run_ops.quiet_best(one, cores)[1] is False and len(cores.states) == 100 - run_ops.ROUNDS - run_ops.AGAIN


def test_patience_is_one_for_the_whole_run():
    class Busy:
        def wait(self, patience):
            now[0] += patience
            return False
    now = [0.0]
    cores = run_ops.Cores(Busy(), patience=12, clock=lambda: now[0])
    for _ in range(5):
        cores.wait()
    assert now[0] == 12 and cores.left == 0


def test_table():
    row = {"case": "add 1M", "threads": 1, "kernel": "cpu:simd add", "us": 200.0, "flops": 1e6, "bytes": 12e5, "quiet": False}
    rows = [run_ops.with_limit(row, run_ops.Limits(PROBED, 1))]
    assert rows[0]["bound"] == "memory" and rows[0]["limit_us"] == 120.0 and rows[0]["share"] == 0.6
    table = run_ops.markdown(rows, PROBED, report.machine(ROOT))
    assert "| add 1M | 1 | cpu:simd add | ~200.0 | 5.0 | 6.0 | 120.0 | memory | 0.60 |" in table
    assert "| avx512 f32 | 80 GFLOP/s | 160 GFLOP/s |" in table and "| L1 read | 100 GB/s | 200 GB/s |" in table


@pytest.mark.parametrize("name", list(run_ops.CASES))
def test_every_case_runs(name):
    anymps = pytest.importorskip("anymps")
    model, feeds = run_ops.compiled(name, 1)
    with anymps.profile() as profile:
        model.run(feeds)
    kernels = profile.json()["kernels"]
    assert kernels and all("reference" not in kernel["kernel"] for kernel in kernels)
    assert sum(kernel["bytes"] for kernel in kernels) > 0


def test_the_probe_measures_this_machine():
    program = ROOT / "build" / "bin" / "bench_ops"
    if not program.exists():
        pytest.skip("bench_ops is not built")
    run = subprocess.run([program, "1"], capture_output=True, text=True, check=True)
    probed = json.loads(run.stdout)
    rates = {row["name"]: row["per_second"] for row in probed["limits"]}
    assert rates["L1 read"] > 1e9 and rates["memory copy"] > 1e8 and all(rate > 0 for rate in rates.values())
    if "avx2 f32" in rates:
        assert rates["avx2 f32"] > 1e9
