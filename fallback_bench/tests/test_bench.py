# SPDX-License-Identifier: Apache-2.0
"""Measuring: what is written for an op, what is said of one that fails, and going on after an interruption."""

import csv
import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from mps_fallback_bench import observer, results, samples, timing

BENCH = "bash scripts/bench_all.sh --seconds 0.1"


def rows(folder, op):
    with open(folder / "results" / f"{op}.csv", newline="") as file:
        return list(csv.DictReader(file))


def write_targets(folder, text):
    (folder / "ops" / "targets.yaml").write_text(text)


def test_what_can_go_wrong_is_told_and_the_run_goes_on(run, folder):
    write_targets(folder, """
ops:
  - {op: isin, shapes: [[256]], demand: 7, links: ["https://github.com/pytorch/pytorch/issues/77764"]}
  - {op: isin, demnd: 3}
  - nothing_of_that_name
  - {op: linalg_cholesky_ex, shapes: [[4, 4], [2]], dtypes: [float32, int64]}
  - {op: trace, shapes: [[32, 32]]}
""")  # fmt: skip
    said = run(BENCH)
    assert "targets.yaml:4: unknown field 'demnd'" in said and "[4/4] trace" in said

    (isin,) = rows(folder, "isin")
    assert isin["status"] == "ok" and isin["fell_back"] == "True" and isin["fallback_ops"].startswith("isin")
    assert isin["shape"] == "256" and isin["dtype"] == "float32" and isin["demand"] == "7" and isin["links"].endswith("77764")
    cpu, mps, native = (float(isin[f"{which}_median_us"]) for which in ("cpu", "mps", "native"))
    assert cpu > 0 and native > 0 and float(isin["mps_iqr_us"]) >= 0
    assert float(isin["penalty"]) == pytest.approx(mps / cpu, rel=1e-3)
    assert float(isin["overhead_us"]) == pytest.approx(mps - cpu, rel=1e-2)
    assert float(isin["worth"]) == pytest.approx(mps / native, rel=1e-3)
    assert isin["bytes_copied"] == "0" and "nothing is copied" in isin["transfer"]  # memory is shared

    (unknown,) = rows(folder, "nothing_of_that_name")
    assert "unknown op" in unknown["status"]
    kinds = {(row["dtype"], row["shape"]): row["status"] for row in rows(folder, "linalg_cholesky_ex")}
    assert kinds["float32", "4x4"] == "ok"
    assert all(status != "ok" and status for case, status in kinds.items() if case != ("float32", "4x4"))
    (trace,) = rows(folder, "trace")  # made from its schema
    assert trace["status"] == "ok" and trace["fell_back"] == "True"
    (wrong,) = rows(folder, "_targets")
    assert "unknown field" in wrong["status"]

    before = (folder / "results" / "isin.csv").read_text()
    assert "4 of 4 ops are in results already" in run(BENCH)
    assert (folder / "results" / "isin.csv").read_text() == before
    # Copies that take their time are another run, and it shows.
    run(BENCH + " --ops isin", ANYMPS_TRANSFER="copy", ANYMPS_TRANSFER_LATENCY_US="2000")
    (slow,) = rows(folder, "isin")
    assert slow["bytes_copied"] == str(256 * 4 + 64 * 4 + 256) and "copies" in slow["transfer"]
    assert float(slow["overhead_us"]) > 5000  # two arguments and a result


def test_it_goes_on_where_it_was_stopped(folder):
    write_targets(folder, "ops:\n  - {op: trace, shapes: [[8, 8]]}\n  - {op: mode, shapes: [[64, 64]]}\n")
    command = [sys.executable, "-m", "mps_fallback_bench.run_all", "--seconds", "0.1"]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    first = subprocess.Popen(command, cwd=folder, env=env, stderr=subprocess.PIPE, text=True)
    done = folder / "results" / "trace.csv"
    while not done.exists() and first.poll() is None:
        time.sleep(0.05)
    first.send_signal(signal.SIGINT)
    _, said = first.communicate(timeout=60)
    assert first.returncode and "the same command goes on" in said
    assert done.exists() and not (folder / "results" / "mode.csv").exists()
    kept = done.stat().st_mtime_ns
    again = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert again.returncode == 0 and "1 of 2 ops" in again.stderr, again.stderr
    assert done.stat().st_mtime_ns == kept and (folder / "results" / "mode.csv").exists()


def test_arguments_from_the_schema_and_from_samples():
    ((shape, call),) = samples.calls("special_xlog1py", [[3, 5]], "float32")
    assert shape == "3x5" and [tuple(a.shape) for a in call.args] == [(3, 5), (3, 5)]
    # Its schema does not tell that they must fit each other.
    found = samples.calls("ormqr", [], "float32")
    assert found and all(call.op._schema.name == "aten::ormqr" and torch.is_tensor(call()) for _, call in found)
    ((_, error),) = samples.calls("_cudnn_init_dropout_state", [], "float32")
    assert "write a wrapper" in str(error)


def test_what_a_composed_op_is_made_of():
    ((_, call),) = samples.calls("square", [[4]], "float32")
    assert samples.parts(call) == {"pow", "square"}
    ((_, call),) = samples.calls("isin", [[4]], "float32")
    assert samples.parts(call) == {"isin"}


FELL_BACK = """
import torch, torch_anymps
from mps_fallback_bench import observer, samples
for op in ("trace", "sinc"):
    ((_, call),) = samples.calls(op, [[4, 4]], "float32")
    call = call.to("mps")
    for see in (observer.by_door, observer.by_warnings, observer.by_warnings):
        print(op, see(call).ops)
"""


def test_both_observers_see_the_same(run, folder):
    (folder / "script.py").write_text(FELL_BACK)
    said = run("python script.py 2>/dev/null", PYTORCH_ENABLE_MPS_FALLBACK="1", ANYMPS_DISABLE_OPS="sinc").splitlines()
    assert said == ["trace {}"] * 3 + ["sinc {'sinc.out': 1}"] * 3


def test_the_median_is_measured_until_it_holds_still():
    made = []

    def steady(n):
        made.append(n)
        return n * 1e-4

    times = timing.measure({"cpu": steady}, 10)["cpu"]
    assert times.median_us == pytest.approx(100) and times.iqr_us == pytest.approx(0, abs=1e-6) and times.blocks == timing.FEWEST
    assert made[-1] == 5  # a block of half a millisecond
    jumps = iter(range(10**6))
    scattered = timing.measure({"cpu": lambda n: n * (1e-4 if next(jumps) % 2 else 3e-4)}, 10)["cpu"]
    assert scattered.blocks > 10 * timing.FEWEST


def fastest(op, shape, calls):
    """The shortest of many blocks of either timer, which take turns: what other work on the machine cannot make shorter."""
    ((_, call),) = samples.calls(op, [shape], "float32")
    blocks = {name: make(call, "cpu") for name, make in timing.BLOCKS.items()}
    taken = [{name: block(calls) for name, block in blocks.items()} for _ in range(60)]
    return [min(block[name] for block in taken) for name in ("python", "native")]


def test_the_timers_agree():
    python, native = fastest("linalg_matrix_exp", [48, 48], 4)
    assert python == pytest.approx(native, rel=0.2)  # what Python adds is small beside an op that takes long
    python, native = fastest("trace", [4, 4], 300)
    assert native < python < 30 * native  # and not beside a short one


@pytest.mark.parametrize("op", ["isin", "index_copy", "_upsample_bicubic2d_aa", "_ctc_loss", "scatter_reduce", "_embedding_bag", "cauchy_"])
def test_the_native_timer_takes_all_kinds_of_arguments(op):
    _, call = samples.calls(op, [], "float32")[0]
    assert 0 < timing.native_block(call, "cpu")(2) < 10


def test_the_native_timer_tells_what_is_wrong():
    from torch_anymps.native import time_calls

    with pytest.raises(RuntimeError, match="trace"):
        time_calls(torch.ops.aten.trace.default, (torch.ones(2, 2), 1, 2), {}, 1)
    with pytest.raises(RuntimeError, match="index_copy"):
        time_calls(torch.ops.aten.index_copy.default, (torch.ones(2, 2),), {}, 1)


def test_what_follows_from_the_medians():
    row = results.derive({"cpu_median_us": 2.0, "mps_median_us": 5.0, "native_median_us": 4.0, "fell_back": True})
    assert (row["penalty"], row["overhead_us"], row["worth"]) == (2.5, 3.0, 1.25)
    assert "worth" not in results.derive({"cpu_median_us": 2.0, "mps_median_us": 5.0, "native_median_us": 4.0, "fell_back": False})
    assert results.derive({"status": "failed"}) == {"status": "failed"}
    assert observer.MESSAGE.search("The operator 'aten::mode' is not currently supported on the MPS backend and will fall back")[1] == "mode"
