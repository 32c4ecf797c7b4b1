# SPDX-License-Identifier: Apache-2.0
"""scripts/bench threads: its ratios and speed-ups, its table, and what goes into a pack."""
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "bench" / "threads"), str(ROOT / "bench" / "models")]

import measure  # noqa: E402
import pack  # noqa: E402
import report  # noqa: E402
import run_threads  # noqa: E402


def results(**scales):
    return {name: measure.Result(name, "1.0", [[10 * s, 12 * s], [20 * s, 22 * s]]) for name, s in scales.items()}


def rows():
    made = run_threads.rows_of_case(measure.MODELS[0], 1, results(anymps=1, onnxruntime=2, openvino=1.25))
    made += run_threads.rows_of_case(measure.MODELS[0], 4, results(anymps=0.25, onnxruntime=0.5, openvino=1))
    run_threads.add_speedups(made)
    return made


def test_ratios_are_to_the_better_peer_of_the_case():
    ours = [r for r in rows() if r["runtime"] == "anymps"]
    assert [(r["threads"], r["peer"], r["ratio"], r["speedup"]) for r in ours] == [(1, "openvino", 0.8, 1.0), (4, "onnxruntime", 0.5, 4.0)]
    assert report.better_peer(results(anymps=1)) is None
    assert "ratio" not in run_threads.rows_of_case(measure.MODELS[0], 1, results(anymps=1))[0]


def test_better_peer_in_another_figure():
    spread = {"onnxruntime": measure.Result("onnxruntime", "1", [[1, 1, 9]]), "openvino": measure.Result("openvino", "1", [[2, 2, 2]])}
    assert (report.better_peer(spread), report.better_peer(spread, max)) == ("onnxruntime", "openvino")


def test_table():
    table = run_threads.markdown(rows(), report.machine(ROOT))
    assert "| model | threads | AnyMPS | ONNX Runtime | OpenVINO | ratio |" in table
    assert "| mobilenet_v2 | 1 | 16.00 (10.60–21.40) | 32.00 (21.20–42.80) | 20.00 (13.25–26.75) | 0.80 (0.80–0.80) |" in table
    assert "| mobilenet_v2 | 4 | 4.00 (2.65–5.35), ×4.00 | 8.00 (5.30–10.70), ×4.00 | 16.00 (10.60–21.40), ×1.25 | 0.50 (0.50–0.50) |" in table
    only = [r for r in rows() if r["threads"] == 4 and r["runtime"] == "anymps"]
    assert only[0].pop("speedup") == 4 and "| 4 | 4.00 (2.65–5.35) | 0.50" in run_threads.markdown(only, report.machine(ROOT))


@pytest.mark.parametrize("name, wanted", [
    ("openvino/__init__.py", True), ("openvino/_pyopenvino.cpython-312-x86_64-linux-gnu.so", True), ("openvino/opset1/ops.py", True),
    ("openvino/libs/libopenvino.so.2641", True), ("openvino/libs/libopenvino_intel_cpu_plugin.so", True),
    ("openvino/libs/libopenvino_onnx_frontend.so.2641", True), ("openvino/libs/libtbb.so.12", True), ("openvino/libs/libhwloc.so.15", True),
    ("openvino-2026.4.1.dist-info/METADATA", True),
    ("openvino/libs/libopenvino_intel_gpu_plugin.so", False), ("openvino/libs/libopenvino_pytorch_frontend.so.2641", False),
    ("openvino/libs/cache.json", False), ("openvino/frontend/pytorch/py_pytorch_frontend.cpython-312-x86_64-linux-gnu.so", False),
    ("openvino/include/openvino/openvino.hpp", False), ("openvino/__init__.pyi", False), ("openvino/tools/ovc/main.py", False),
])
def test_of_openvino_only_what_the_bench_loads(name, wanted):
    assert bool(pack.OPENVINO.fullmatch(name)) == wanted


@pytest.mark.skipif(not (ROOT / "build" / "bin" / "anymps").exists(), reason="build/bin/anymps is not built")
def test_a_pack_runs_where_it_lies(tmp_path, monkeypatch):
    """Without OpenVINO, which is fetched; uncompressed, which is quicker. The command takes its libraries out of the pack."""
    monkeypatch.setattr(pack, "add_openvino", lambda tar, python: pack.add_text(tar, "openvino/marker", python))
    plain = tarfile.open
    monkeypatch.setattr(tarfile, "open", lambda out, mode, **options: plain(out, mode.replace("xz", ""), **options))
    pack.pack(tmp_path / "pack.tar", "3.12")
    with plain(tmp_path / "pack.tar") as tar:
        tar.extractall(tmp_path / "there", filter="data")
    there = tmp_path / "there"
    assert (there / "openvino" / "marker").read_text() == "3.12"
    clean = {"PATH": os.environ["PATH"]}
    command = there / "build" / "bin" / "anymps"
    done = subprocess.run([command, "--version"], env={**clean, "LD_DEBUG": "libs"}, capture_output=True, text=True)
    loaded = set(re.findall(r"calling init: (\S*/libanymps\S*)", done.stderr))
    assert done.stdout.startswith("anymps ") and loaded and all(path.startswith(str(there / "build")) for path in loaded), loaded
    done = subprocess.run([sys.executable, "-c", "import sys; sys.path.insert(0, 'bench/threads'); import run_threads, pack; print(pack.origin())"],
                          cwd=there, env=clean, capture_output=True, text=True)
    assert done.stdout.startswith("{'commit': "), done.stderr
