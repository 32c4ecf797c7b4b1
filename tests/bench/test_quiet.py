# SPDX-License-Identifier: Apache-2.0
"""How the benchmarks know that the cores were theirs alone, and what they do where they were not (bench/models/quiet.py)."""
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench" / "models"))

import measure  # noqa: E402
import quiet  # noqa: E402


class Proc:
    """A folder like /proc with two cores, of which others must not count the third."""

    def __init__(self, folder):
        self.folder = folder
        self.cores, self.processes = [0, 0, 0], {}

    def run(self, core, ticks, pid=None, parent=0):
        self.cores[core] += ticks
        if pid:
            known = self.processes.setdefault(pid, [parent, 0])
            known[1] += ticks
        (self.folder / "stat").write_text("cpu 1 1 1 1 1 1 1 1 0 0\n" + "".join(
            f"cpu{i} {ticks} 0 0 999 7 0 0 0 0 0\n" for i, ticks in enumerate(self.cores)) + "intr 5\n")
        for number, (above, used) in self.processes.items():
            (self.folder / str(number)).mkdir(exist_ok=True)
            (self.folder / str(number) / "stat").write_text(f"{number} (a ) b) S {above} " + "0 " * 9 + f"{used} 0 0 0 20 0 1\n")


@pytest.fixture
def proc(tmp_path):
    made = Proc(tmp_path)
    made.run(0, 100, pid=10, parent=1)
    made.run(0, 50, pid=20, parent=10)
    return made


def test_what_others_use_is_the_rest(proc):
    now = [0.0]
    watch = quiet.Watch(proc.folder, pid=10, cores=[0, 1], clock=lambda: now[0])
    proc.run(0, 40, pid=20)  # a child of ours
    proc.run(1, 30, pid=21, parent=20)  # and one of its
    proc.run(2, 90, pid=99, parent=1)  # on a core that is not ours
    now[0] = 1.0
    assert watch.foreign() == 0
    proc.run(1, 52, pid=99)
    assert watch.foreign() == pytest.approx(50 * quiet.TICK)
    watch.start()
    now[0] = 2.0
    assert watch.foreign() == 0


def test_waits_for_free_cores_but_not_for_ever(monkeypatch):
    busy = iter([1.0, 0.5, 0.0])
    watch = quiet.Watch()
    monkeypatch.setattr(watch, "foreign", lambda: next(busy))
    monkeypatch.setattr(quiet, "PAUSE_S", 0.001)
    assert watch.wait(10)
    monkeypatch.setattr(watch, "foreign", lambda: 1.0)
    start = time.perf_counter()
    assert not watch.wait(0.01) and time.perf_counter() - start < 5


def test_own_processes_are_not_others():
    """A busy child is ours, and stays it when it has ended."""
    watch = quiet.Watch()
    subprocess.run([sys.executable, "-c", "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass"], check=True)
    assert (watch.own_ticks() - watch.own) * quiet.TICK > 0.4


class Others:
    """What others use in each round, one after the other."""

    def __init__(self, shares):
        self.shares, self.waits = list(shares), 0
        self.watch = self
        self.again, self.patience = 3, 0

    def wait(self, patience):
        self.waits += 1

    def start(self):
        pass

    def foreign(self):
        return self.shares.pop(0)


def test_spoiled_rounds_are_taken_again():
    others = Others([0, 0.9, 0, 0.05])
    assert measure.quiet_rounds(lambda number: number, 3, others) == ([0, 2, 3], 0)
    assert others.shares == [] and others.waits >= 2


def test_the_least_spoiled_ones_are_taken_where_nothing_helps():
    others = Others([0.9, 0.8, 0, 0.7, 2.0, 0.2])
    assert measure.quiet_rounds(lambda number: number, 3, others) == ([2, 5, 3], 2)


def test_this_machine_counts():
    watch = quiet.Watch()
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass
    assert watch.all_ticks() - watch.all >= watch.own_ticks() - watch.own - 2 > 10
