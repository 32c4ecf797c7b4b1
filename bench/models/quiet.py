# SPDX-License-Identifier: Apache-2.0
"""Whether the cores were the benchmark's alone: what other processes used of them while something was measured.

The time of all processes on the cores that this one may use, less that of this process and those that it has started. What
a hypervisor gave to other guests counts as theirs.
"""
import os
import time
from pathlib import Path

TICK = 1 / os.sysconf("SC_CLK_TCK")
MOST = 0.1  # cores that others may use in a round
PAUSE_S = 0.25


class Watch:
    def __init__(self, proc=Path("/proc"), pid=None, cores=None, clock=time.perf_counter):
        self.proc, self.pid, self.clock = proc, pid or os.getpid(), clock
        self.cores = {f"cpu{core}" for core in (cores or os.sched_getaffinity(0))}
        self.start()

    def all_ticks(self):
        """Ticks in which the cores did something."""
        busy = 0
        for line in (self.proc / "stat").read_text().splitlines():
            name, *fields = line.split()
            if name in self.cores:
                user, nice, system, _, _, irq, softirq, steal = map(int, fields[:8])
                busy += user + nice + system + irq + softirq + steal
        return busy

    def own_ticks(self):
        """Of this process and of those that come of it, with those of them that have ended."""
        parents, used = {}, {}
        for folder in self.proc.glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:  # it has just ended
                continue
            pid = int(folder.name)
            parents[pid], used[pid] = int(fields[1]), sum(map(int, fields[11:15]))

        def is_own(pid):
            while pid in parents and pid != self.pid:
                pid = parents[pid]
            return pid == self.pid
        return sum(ticks for pid, ticks in used.items() if is_own(pid))

    def start(self):
        self.began, self.all, self.own = self.clock(), self.all_ticks(), self.own_ticks()

    def foreign(self):
        """Cores that others have used since `start`, on average. What may be a matter of when ticks are counted is left out."""
        seconds = max(self.clock() - self.began, TICK)
        ticks = self.all_ticks() - self.all - (self.own_ticks() - self.own)
        return max(0.0, (ticks - 2) * TICK / seconds)

    def wait(self, patience):
        """Until the cores are free, for so many seconds at most. Says whether they are."""
        end = self.clock() + patience
        while True:
            self.start()
            time.sleep(PAUSE_S)
            if self.foreign() <= MOST:
                return True
            if self.clock() >= end:
                return False


class Quiet:
    """How measure_rounds takes rounds again that others have spoiled: `again` of them at most, and `patience` seconds of
    waiting before each."""

    def __init__(self, again, patience, watch=None):
        self.again, self.patience, self.watch = again, patience, watch or Watch()
