# SPDX-License-Identifier: Apache-2.0
"""report/aggregate.py on results that are made up, so that each number is known."""

import json
import re
from xml.etree import ElementTree

import pytest
from mps_fallback_bench import results

RUN = {"torch": "2.15.0", "os": "Linux", "device": "AnyMPS, on the CPU", "transfer": "copies, 25 GB/s, 10 µs each", "timer": "python"}


def row(op, mps, cpu=10.0, demand=1, shape="4x4", dtype="float32", native=None, fell_back=True, **more):
    made = {"op": op, "shape": shape, "dtype": dtype, "status": "ok", "fell_back": fell_back, "samples": 12, "bytes_copied": 64}
    made |= {"cpu_median_us": cpu, "cpu_iqr_us": 0.1, "mps_median_us": mps, "mps_iqr_us": 0.5, "demand": demand, **RUN, **more}
    if native:
        made |= {"native_median_us": native, "native_iqr_us": 0.1}
    return results.derive(made)


def save(folder, **files):
    for op, rows in files.items():
        results.write(folder / f"{op}.csv", rows)


@pytest.fixture
def report(run, folder):
    save(
        folder / "results",
        isin=[
            row("isin", 20.0, demand=10, native=5.0, links=["https://github.com/pytorch/pytorch/issues/1#issuecomment-2"]),
            row("isin", 80.0, demand=10, native=20.0, shape="8x8", dtype="int64"),
        ],
        mode=[row("mode", 90.0), {"op": "mode", "shape": "2", "dtype": "bool", "status": "RuntimeError: a | <b>", **RUN}],
        tan=[row("tan", 9.0, fell_back=False)],
        sin=[row("sin", 30.0, demand=3, native=30.0)],
    )

    def start(options="", ok=True):
        said = run(f"python report/aggregate.py --results_dir results --out report/summary.md {options}", ok)
        return said, {path.name: path.read_text() for path in (folder / "report").glob("summary*.*") if path.suffix != ".j2"}

    return start


def test_the_order_and_the_numbers(report):
    _, files = report()
    made = json.loads(files["summary.json"])
    # Penalties 2 and 8: their geometric mean is 4.
    assert [(r["op"], pytest.approx(r["pain"])) for r in made["top"]] == [("isin", 40.0), ("mode", 9.0), ("sin", 9.0)]
    assert made["top"][0]["penalty"] == pytest.approx(4) and made["top"][0]["worth"] == pytest.approx(4)
    assert made["top"][1]["worth"] is None and made["native"] == ["tan"]
    assert made["counts"] == {"ops": 4, "cases": 5, "fell_back": 4, "failed": 1}
    assert made["run"]["transfer"].startswith("copies") and [p["op"] for p in made["problems"]] == ["mode"]
    assert set(made["dtypes"]) == {"float32", "int64"}


def test_the_pages(report):
    _, files = report()
    text, page = files["summary.md"], files["summary.html"]
    assert "| 1 | `isin` | 10 | 4 |" in text and "[1](https://github.com/pytorch/pytorch/issues/1#issuecomment-2)" in text
    assert "## int64" in text and "copies, 25 GB/s" in text and "a \\| <b>" in text
    assert page.count("<svg") == 2 and "a | &lt;b&gt;" in page and "copies, 25 GB/s" in page
    assert not re.findall(r'(?:src|href)="(?!https://github.com)[^"]*"', page)  # nothing is loaded
    for name in ("summary_pain.svg", "summary_times.svg"):
        ElementTree.fromstring(files[name])
        assert f"({name})" in text


def test_two_runs(report, folder):
    save(folder / "before", isin=[row("isin", 10.0, demand=10), row("isin", 81.0, demand=10, shape="8x8", dtype="int64")],
         mode=[row("mode", 180.0)], sin=[row("sin", 30.2, demand=3)])  # fmt: skip
    _, files = report("--compare before")
    compared = json.loads(files["summary.json"])["comparison"]
    assert [(c["op"], pytest.approx(c["change"])) for c in compared["changes"]] == [("isin", 2.0), ("mode", 0.5)]
    assert -1 <= compared["spearman_top_10"] <= 1
    assert "regression, × 2" in files["summary.md"] and "better, × 0.5" in files["summary.md"]
    assert "regression" in files["summary.html"]


def test_nothing_to_report(run, folder):
    assert "there are no results in nowhere" in run("python report/aggregate.py --results_dir nowhere", ok=False)
