# SPDX-License-Identifier: Apache-2.0
"""scripts/bench shared: its figures, its table, and the loads under which it measures."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "bench" / "shared"), str(ROOT / "bench" / "models"), str(ROOT / "models")]

import loads  # noqa: E402
import measure  # noqa: E402
import report  # noqa: E402
import run_shared  # noqa: E402
import run_wheels  # noqa: E402


def rows(load="one"):
    """ONNX Runtime has the better mean, OpenVINO the better 99th percentile."""
    times = {"anymps": [[3.0] * 100], "onnxruntime": [[1.0] * 98, [20.0] * 2], "openvino": [[2.0] * 100]}
    return run_shared.rows_of_case("m", load, {name: measure.Result(name, "1.0", rounds) for name, rounds in times.items()})


def test_each_figure_is_relative_to_the_peer_that_is_better_in_it():
    ours = rows()[0]
    assert (ours["mean_ms"], ours["mean_peer"], ours["mean_ratio"]) == (3.0, "onnxruntime", 2.174)
    assert (ours["p99_ms"], ours["p99_peer"], ours["p99_ratio"]) == (3.0, "openvino", 1.5)
    alone = run_shared.rows_of_case("m", "one", {"anymps": measure.Result("anymps", "1.0", [[1.0]])})[0]
    assert "mean_ratio" not in alone


def test_table_has_a_part_for_each_load_and_says_what_was_not_possible():
    table = run_shared.markdown(rows("none") + rows("two"), {"quota": "no such group"}, report.machine(ROOT))
    assert "Not measured: a quota of 1.5 CPUs: no such group.\n" in table
    assert "## With free cores\n" in table and "## With two busy processes\n" in table and "## With one" not in table
    assert table.count("| m | 3.00 / 3.00 | 1.38 / 20.00 | 2.00 / 2.00 | 2.17 / 1.50 |") == 2


def test_models_are_known():
    assert set(run_shared.WHEELS) <= set(run_wheels.NAMES) and len(set(run_shared.NAMES)) == 10


def children():
    listing = subprocess.run(["ps", "-ww", "-o", "args=", "--ppid", str(os.getpid())], capture_output=True, text=True).stdout
    return listing.count("while os.getppid() == parent")


def test_busy_processes_end_with_the_load():
    with pytest.raises(KeyboardInterrupt), loads.busy(2):
        assert children() == 2
        raise KeyboardInterrupt
    assert children() == 0


def test_two_cores_and_then_all_again():
    before = os.sched_getaffinity(0)
    with loads.two_cores():
        assert os.sched_getaffinity(0) == set(sorted(before)[:2])
    assert os.sched_getaffinity(0) == before


def mount(kind, top, point, options):
    return f"30 23 0:26 {top} {point} rw shared:9 - {kind} {kind} {options}\n"


@pytest.mark.parametrize("own, mounts, folders", [
    ("0::/a\n", mount("cgroup2", "/", "/cg", "rw"), ["cg/a"]),
    ("0::/\n", mount("cgroup2", "/", "/cg", "rw"), ["cg"]),
    ("0::/a/b\n", mount("cgroup2", "/a", "/cg", "rw"), ["cg/b"]),
    ("0::/a\n", mount("cgroup2", "/b", "/cg", "rw"), []),
    ("0::/u\n5:cpuset:/s\n4:cpu,cpuacct:/a\n",
     mount("cgroup2", "/", "/cg/unified", "rw") + mount("cgroup", "/", "/cg/cpuset", "rw,cpuset") + mount("cgroup", "/", "/cg/cpu", "rw,cpuacct,cpu"),
     ["cg/cpu/a", "cg/unified/u"]),
])
def test_own_groups(tmp_path, own, mounts, folders):
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(own)
    (tmp_path / "proc/self/mountinfo").write_text(mounts)
    assert loads.own_groups(tmp_path) == [tmp_path / folder for folder in folders]


def test_quota_is_written_as_each_version_has_it(tmp_path):
    (tmp_path / "cpu.max").write_text("max 100000\n")
    loads.set_quota(tmp_path, 1.5)
    assert (tmp_path / "cpu.max").read_text() == "150000 100000\n"
    (tmp_path / "cpu.cfs_quota_us").write_text("-1\n")
    loads.set_quota(tmp_path, 0.5)
    assert (tmp_path / "cpu.cfs_quota_us").read_text() == "50000\n" and (tmp_path / "cpu.cfs_period_us").read_text() == "100000\n"
    (tmp_path / "without").mkdir()
    with pytest.raises(OSError):
        loads.set_quota(tmp_path / "without", 1.5)


def test_quota_says_why_not(monkeypatch, tmp_path):
    monkeypatch.setattr(loads, "own_groups", lambda: [])
    with loads.quota(1.5) as why:
        assert why == "there is no control group with the controller cpu"
    monkeypatch.setattr(loads, "own_groups", lambda: [tmp_path])
    with loads.quota(1.5) as why:
        assert why.startswith("the quota of a control group cannot be set: ")
    assert [path.name for path in tmp_path.iterdir()] == ["cgroup.subtree_control"]
