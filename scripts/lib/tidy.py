#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over the project's own sources within a time budget, and remembers what was clean.

    tidy.py BUILD_DIR --budget SECONDS --jobs N     changed files one by one, then the files that are compiled together
    tidy.py BUILD_DIR --budget SECONDS --each       every file by itself: slower, and nothing is hidden by its neighbours

Twelve files in one unity file take twice as long as one of them, since most of the time goes into headers. Files that
differ from main or from the commit before come first, so that a change is checked even when the budget is short.

A check is clean for the hash of its sources, the project headers they include and .clang-tidy; the hashes are kept in
.cache/tidy. The last line of output is `tidy: PASSED FAILED SKIPPED`, counted in files: clean now or before, with
findings (alone or beside others), not reached.
"""
import argparse
import concurrent.futures
import hashlib
import json
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CACHE = ROOT / ".cache" / "tidy"
# A unity file includes sources: that is what it is for.
UNITY_CHECKS = "--checks=-bugprone-suspicious-include"


@dataclass
class Unit:
    """What one run of clang-tidy reads: a source by itself, or a unity file and the sources in it."""
    file: Path
    members: list
    command: dict
    key: str = ""

    def alone(self):
        """One unit for each member, compiled as the unity file is."""
        def command(member):
            return {**self.command, "file": str(member), "command": self.command["command"].replace(str(self.file), str(member))}
        return [Unit(m, [m], command(m)) for m in self.members]


def git_lines(*args):
    run = subprocess.run(["git", "-C", ROOT, *args], capture_output=True, text=True)
    return run.stdout.splitlines() if run.returncode == 0 else []


def units(build_dir):
    """The compiled files under src/ and doors/, as the build groups them; each file once."""
    found, seen = [], set()
    for entry in json.loads((build_dir / "compile_commands.json").read_text()):
        file = Path(entry["directory"], entry["file"])
        members = [file.resolve()]
        if "/Unity/unity_" in entry["file"]:
            members = [Path(m).resolve() for m in re.findall(r'^#include "(.*)"$', file.read_text(), re.MULTILINE)]
        ours = all(m.is_relative_to(ROOT) and m.relative_to(ROOT).parts[0] in ("src", "doors") for m in members)
        if ours and not seen.issuperset(members):
            seen.update(members)
            found.append(Unit(file, members, entry))
    return found


def project_headers(build_dir):
    """{object file: headers of this project that it was compiled with}, from ninja's own record."""
    deps, current = {}, None
    run = subprocess.run(["ninja", "-C", build_dir, "-t", "deps"], capture_output=True, text=True, check=True)
    for line in run.stdout.splitlines():
        if line and not line[0].isspace():
            current = deps.setdefault(line.split(":", 1)[0], [])
        elif line.strip():
            path = Path(build_dir, line.strip()).resolve()
            if path.is_relative_to(ROOT) and path.suffix in (".h", ".hpp", ".inc"):
                current.append(path)
    return deps


def key_of(unit, deps, settings):
    output = unit.command.get("output") or unit.command["command"].split(" -o ", 1)[1].split()[0]
    digest = hashlib.sha256(settings)
    for part in [*unit.members, *sorted(deps.get(output, []))]:
        digest.update(str(part.relative_to(ROOT)).encode() + b"\0" + part.read_bytes())
    return digest.hexdigest()


def check(unit, database):
    options = [UNITY_CHECKS] if unit.file not in unit.members else []
    run = subprocess.run(["clang-tidy", "--quiet", "-p", database, *options, unit.file], capture_output=True, text=True)
    return run.returncode == 0, run.stdout + (run.stderr if run.returncode else "")


def name_of(unit):
    first = unit.members[0].relative_to(ROOT)
    return str(first) if len(unit.members) == 1 else f"{first} and {len(unit.members) - 1} files beside it"


def plan(groups, each):
    """What to check, in order: the changed files alone, then groups, the largest first; or every file alone."""
    alone = [one for group in groups for one in group.alone()]
    if each:
        return alone
    changed = {ROOT / f for since in ("main", "HEAD~1") for f in git_lines("diff", "--name-only", since)}
    return [one for one in alone if one.file in changed] + sorted(groups, key=lambda group: -len(group.members))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build_dir", type=Path)
    parser.add_argument("--budget", type=float, default=600)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--each", action="store_true")
    args = parser.parse_args()

    CACHE.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    settings = version + (ROOT / ".clang-tidy").read_bytes()
    build_dir = args.build_dir.resolve()
    groups = units(build_dir)
    checks = plan(groups, args.each)
    deps = project_headers(build_dir)
    for unit in checks:
        unit.key = key_of(unit, deps, settings)
    database = build_dir / "tidy"
    database.mkdir(exist_ok=True)
    (database / "compile_commands.json").write_text(json.dumps([unit.command for unit in checks]))

    deadline, clean, failed = time.monotonic() + args.budget, set(), set()

    def job(unit):
        if (CACHE / unit.key).exists():
            return True, None
        return check(unit, database) if time.monotonic() < deadline else None

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for unit, result in zip(checks, pool.map(job, checks)):
            if result is None:
                continue
            good, text = result
            (clean if good else failed).update(unit.members)
            if good:
                (CACHE / unit.key).touch()
            if text is not None:
                print(f"{name_of(unit)}: {'clean' if good else 'findings'}", flush=True)
            if not good:
                print(text.replace(f"{ROOT}/", ""), flush=True)
    total = len({member for group in groups for member in group.members})
    print(f"tidy: {len(clean - failed)} {len(failed)} {total - len(clean | failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
