# SPDX-License-Identifier: Apache-2.0
"""What a process shares its cores with: other processes that are busy, or a control group that bounds its CPU time.

Each is a context for the processes that are started in it.
"""
import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

PERIOD_US = 100000
BUSY = """
import os
parent = os.getppid()
while os.getppid() == parent:  # ends with the bench, whatever ends that
    for _ in range(100000): pass
"""


@contextmanager
def two_cores():
    """This process and those that it starts on the first two cores that it may use."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:2])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def busy(count):
    with ExitStack() as stack:
        for _ in range(count):
            process = subprocess.Popen([sys.executable, "-c", BUSY])
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


def own_groups(root=Path("/")):
    """Folders of this process's control groups that may bound CPU time, version 1 first: there it has the controller if it is mounted."""
    mounts = [line.split() for line in (root / "proc/self/mountinfo").read_text().splitlines()]
    found = []
    for line in (root / "proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        for words in mounts:
            kind, _, options = words[words.index("-") + 1:][:3]
            if (kind == "cgroup2" and not controllers) or (kind == "cgroup" and controllers and "cpu" in options.split(",")):
                below = os.path.relpath(path, words[3])
                if not below.startswith(".."):
                    found.append((bool(controllers), root / words[4].lstrip("/") / below))
    return [folder for _, folder in sorted(found, key=lambda pair: not pair[0])]


def set_quota(group, cpus):
    """Raises OSError where the group has no such bound."""
    if (group / "cpu.cfs_quota_us").exists():
        (group / "cpu.cfs_period_us").write_text(f"{PERIOD_US}\n")
        (group / "cpu.cfs_quota_us").write_text(f"{int(cpus * PERIOD_US)}\n")
        return
    if not (group / "cpu.max").exists():  # the groups in the outer one do not have the controller yet
        (group.parent / "cgroup.subtree_control").write_text("+cpu")
    with open(group / "cpu.max", "r+") as file:  # does not make one: a bound that is none
        file.write(f"{int(cpus * PERIOD_US)} {PERIOD_US}\n")


@contextmanager
def quota(cpus):
    """Yields None, or why the machine does not allow it."""
    why = "there is no control group with the controller cpu"
    for outer in own_groups():
        group = outer / f"anymps-bench-{os.getpid()}"
        try:
            group.mkdir()
        except OSError as error:
            why = f"control groups cannot be made: {error.strerror}"
            continue
        try:
            set_quota(group, cpus)
            (group / "cgroup.procs").write_text(f"{os.getpid()}\n")
        except OSError as error:
            why = f"the quota of a control group cannot be set: {error.strerror}"
            group.rmdir()
            continue
        try:
            yield None
        finally:
            (outer / "cgroup.procs").write_text(f"{os.getpid()}\n")
            group.rmdir()
        return
    yield why
