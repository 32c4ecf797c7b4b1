# SPDX-License-Identifier: Apache-2.0
"""scripts/bench executorch: the figures and what the table says is short; the peer's worker."""
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench" / "models"))
spec = importlib.util.spec_from_file_location("executorch_bench", ROOT / "bench" / "executorch" / "run.py")
bench = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bench)

from measure import Disagreement, Result  # noqa: E402
from worker import Worker, WorkerError  # noqa: E402

ABOUT = {"cpu": "CPU", "isa": ["avx2"], "cores": 2, "memory_gib": 8, "date": "2026-01-01", "commit": "abc", "load_average": 0.1}


def results(times, loads):
    made = {}
    for runtime in bench.RUNTIMES:
        made[runtime] = Result(runtime, "1", rounds=[[t] for t in times[runtime]])
        made[runtime].fresh = {"baseline_rss_mb": 10, "load_ms": loads[runtime], "first_run_ms": 1,
                               "first_output_ms": loads[runtime] + 1, "peak_rss_mb": 50}
    return made


def rows(ours=(2.0, 4.0), load=5.0):
    times = {"anymps": ours, "delegate": (2.0, 4.0), "xnnpack": (4.0, 4.0)}
    return bench.rows_of("vit", 2, results(times, {"anymps": load, "delegate": 9.0, "xnnpack": 10.0}))


def test_ratios_are_taken_within_a_round():
    row, = [r for r in rows() if r["runtime"] == "anymps"]
    assert row["ratio"] == 0.75 and row["ratio_p10"] == 0.55 and row["ratio_p90"] == 0.95
    assert bench.mean_ratio(rows(), "anymps") == pytest.approx(0.75)


def test_the_table_names_what_is_short():
    assert bench.short_of(rows()) == []
    assert "Short of XNNPACK: nothing." in bench.markdown(rows(), ABOUT)
    words = bench.short_of(rows(ours=(8.0, 8.0), load=30.0))
    assert words == ["vit with 2 threads takes 2.00 times as long", "loading vit with 2 threads takes 30 ms against 10 ms",
                     "the first output of vit with 2 threads takes 31 ms against 11 ms"]
    assert "; ".join(words) in bench.markdown(rows(ours=(8.0, 8.0), load=30.0), ABOUT)
    assert bench.svg(rows(), ABOUT).startswith("<svg")


def test_results_that_differ_stop_the_run(tmp_path, monkeypatch):
    outputs = {"anymps": [np.zeros(3)], "delegate": [np.ones(3)], "xnnpack": [np.ones(3)]}
    monkeypatch.setattr(bench, "outputs_of", lambda worker, folder: outputs[worker.runtime])
    workers = [type("W", (), {"runtime": r}) for r in bench.RUNTIMES]
    with pytest.raises(Disagreement, match="anymps differs from xnnpack by 1"):
        bench.compare(workers, {r: Result(r, "1") for r in bench.RUNTIMES}, tmp_path)


@pytest.mark.skipif(not bench.STOCK.exists(), reason="build/bin/executorch_stock_worker is not built")
def test_the_stock_worker_answers_errors(tmp_path):
    with Worker("executorch", tmp_path / "log", [bench.STOCK]) as worker:
        assert worker.version
        with pytest.raises(WorkerError, match="load a model first"):
            worker.run(1)
        with pytest.raises(WorkerError, match="unknown command 'fly'"):
            worker.ask("fly")
        with pytest.raises(WorkerError, match="is no .npy file"):
            worker.ask("input x /nowhere.npy")
        with pytest.raises(WorkerError, match="Error::"):
            worker.ask("load /nowhere.pte 1")
