#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over the project's own sources within a time budget, and remembers what was clean.

    tidy.py BUILD_DIR --budget SECONDS --jobs N

A file is clean for the hash of its source, the project headers it includes and .clang-tidy; the hashes are kept in
.cache/tidy. Files that differ from main come first, so that a change is checked even when the budget is short.
The last line of output is `tidy: PASSED FAILED SKIPPED` (clean now or before, with findings, not reached).
"""
import argparse
import concurrent.futures
import hashlib
import json
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CACHE = ROOT / ".cache" / "tidy"


def git_lines(*args):
    run = subprocess.run(["git", "-C", ROOT, *args], capture_output=True, text=True)
    return run.stdout.splitlines() if run.returncode == 0 else []


def commands(build_dir):
    """The compile commands of every file by itself: a unity file's command is that of each file it includes."""
    found = []
    for entry in json.loads((build_dir / "compile_commands.json").read_text()):
        members = [entry["file"]]
        if "/Unity/unity_" in entry["file"]:
            members = re.findall(r'^#include "(.*)"$', Path(entry["file"]).read_text(), re.MULTILINE)
        for file in members:
            found.append({**entry, "file": file, "command": entry["command"].replace(entry["file"], file)})
    return found


def sources(entries):
    """The compiled files under src/ and doors/, as {path: object file}."""
    found = {}
    for entry in entries:
        path = Path(entry["directory"], entry["file"]).resolve()
        if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in ("src", "doors"):
            found[path] = entry.get("output") or entry["command"].split(" -o ", 1)[1].split()[0]
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


def key_of(path, headers, settings):
    digest = hashlib.sha256(settings)
    for part in [path, *sorted(headers)]:
        digest.update(str(part.relative_to(ROOT)).encode() + b"\0" + part.read_bytes())
    return digest.hexdigest()


def check(path, database):
    run = subprocess.run(["clang-tidy", "--quiet", "-p", database, path], capture_output=True, text=True)
    return run.returncode == 0, run.stdout + (run.stderr if run.returncode else "")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build_dir", type=Path)
    parser.add_argument("--budget", type=float, default=150)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()

    CACHE.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    settings = version + (ROOT / ".clang-tidy").read_bytes()
    build_dir = args.build_dir.resolve()
    deps = project_headers(build_dir)
    entries = commands(build_dir)
    database = build_dir / "tidy"
    database.mkdir(exist_ok=True)
    (database / "compile_commands.json").write_text(json.dumps(entries))
    changed = set(git_lines("diff", "--name-only", "main")) | set(git_lines("diff", "--name-only", "HEAD~1"))
    keys = {path: key_of(path, deps.get(output, []), settings) for path, output in sources(entries).items()}
    todo = [p for p, key in keys.items() if not (CACHE / key).exists()]
    todo.sort(key=lambda p: (str(p.relative_to(ROOT)) not in changed, p))

    deadline, failed, skipped = time.monotonic() + args.budget, 0, 0

    def job(path):
        return check(path, database) if time.monotonic() < deadline else None

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for path, result in zip(todo, pool.map(job, todo)):
            if result is None:
                skipped += 1
                continue
            clean, text = result
            print(f"{path.relative_to(ROOT)}: {'clean' if clean else 'findings'}", flush=True)
            if clean:
                (CACHE / keys[path]).touch()
            else:
                failed += 1
                print(text.replace(f"{ROOT}/", ""), flush=True)
    print(f"tidy: {len(keys) - failed - skipped} {failed} {skipped}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
