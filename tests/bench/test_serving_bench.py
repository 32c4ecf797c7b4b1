# SPDX-License-Identifier: Apache-2.0
"""scripts/bench serving: what it reads of perf_analyzer, the figures, what the table says is short, the plot."""
import importlib.util
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench" / "models"))
spec = importlib.util.spec_from_file_location("serving_results", ROOT / "bench" / "serving" / "results.py")
bench = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bench)

ABOUT = {"cpu": "CPU", "isa": ["avx2"], "cores": 2, "memory_gib": 8, "date": "2026-01-01", "commit": "abc", "load_average": 0.1, "instances": 1, "threads": 2}


def turns(per_s, p50=1.0):
    return [{"per_s": float(v), "p50_ms": p50, "p90_ms": 2.0, "p99_ms": 3.0} for v in per_s]


def rows(server=(200, 300), backend=(150, 150), p50=1.0):
    return bench.rows_of("mlp", "http", 8, {"anymps": turns(server, p50), "triton": turns(backend), "python": turns((100, 100))})


def test_reads_the_report_of_perf_analyzer(tmp_path):
    (tmp_path / "r.csv").write_text("Concurrency,Inferences/Second,Client Send,p50 latency,p90 latency,p95 latency,p99 latency\n"
                                    "8,4622.5,12,400,5630,8000,12020\n")
    assert bench.read_csv(tmp_path / "r.csv") == {"per_s": 4622.5, "p50_ms": 0.4, "p90_ms": 5.63, "p99_ms": 12.02}


def test_ratios_are_taken_within_a_round():
    row = rows()[0]
    assert (row["ratio"], row["ratio_p10"], row["ratio_p90"]) == (2.5, 2.1, 2.9)
    assert bench.mean_ratio(rows(), "triton") == pytest.approx(1.5)


def test_the_table_names_what_is_short():
    table = bench.markdown(rows(), ABOUT, "versions", {"anymps": 40.0})
    assert "Short of the peer: nothing." in table and "| mlp | http | 8 | **AnyMPS server** | 250 | 2.50 (2.10–2.90) |" in table
    words = bench.short_of(rows(server=(50, 50), p50=2.0))
    assert words == ["AnyMPS server, mlp, http, 8 at once: 0.50 of its throughput",
                     "AnyMPS server, mlp, http, 8 at once: median latency 2.00 ms against 1.00 ms"]


def test_plot_has_a_bar_for_each_server():
    found = [e.text for e in ET.fromstring(bench.svg(rows(), ABOUT)).iter("{http://www.w3.org/2000/svg}text")]
    assert {"250/s", "150/s", "100/s", "mlp, http, 8 at once"} <= set(found)
