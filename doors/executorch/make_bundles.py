#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the test bundles (.pte with inputs and expected outputs), the same bytes each time.

    make_bundles.py kinds [NAME ...]       one for each node kind of the schema   -> tests/data/executorch/kinds/
    make_bundles.py small [NAME ...]       small networks, float32 and float16    -> tests/data/executorch/small/
    make_bundles.py programs [NAME ...]    forms of programs                      -> tests/data/executorch/programs/
    make_bundles.py models [NAME ...]      the wheel's example models             -> .models/executorch/
    make_bundles.py --check                the committed ones are what this script makes

Each bundle is computed again from its bytes and compared with torch before it is written. `--out DIR` writes elsewhere.
A table of what was made goes to DIR/bundles.json.
"""

import argparse
import hashlib
import json
import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from anymps_executorch.environment import ROOT, has_exporter, venv_python  # noqa: E402

DATA = ROOT / "tests" / "data" / "executorch"
MODELS = ROOT / ".models" / "executorch"
COMMITTED = ("kinds", "small", "programs")


def jobs(which):
    """(file name, function that gives a Made) of a set."""
    from anymps_executorch.bundles import making

    return getattr(making, f"{which}_jobs")()


def make(which, names, folder):
    """Makes the bundles of a set whose names match; returns what failed."""
    folder.mkdir(parents=True, exist_ok=True)
    table_path = folder / "bundles.json"
    table = json.loads(table_path.read_text()) if table_path.exists() else {}
    failed = []
    for file_name, build in jobs(which):
        stem = file_name.removesuffix(".pte")
        if names and stem not in names and stem.rsplit("_", 1)[0] not in names:
            continue
        start = time.perf_counter()
        try:
            made = build()
        except Exception as error:  # noqa: BLE001  (the next ones are made all the same)
            print(f"{file_name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            failed.append(file_name)
            continue
        (folder / file_name).write_bytes(made.data)
        table[stem] = made.row()
        seconds = time.perf_counter() - start
        print(
            f"{file_name}: {len(made.data)} bytes, {len(made.delegates)} delegates, difference {made.difference:.2g},"
            f" {seconds:.1f} s" + (f", outside: {' '.join(made.outside)}" if made.outside else ""),
            flush=True,
        )
    table_path.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")
    return failed


def check():
    """Makes the committed sets again and compares; returns what differs."""
    bad = []
    with tempfile.TemporaryDirectory() as scratch:
        for which in COMMITTED:
            folder = pathlib.Path(scratch) / which
            bad += make(which, [], folder)
            names = {p.name for p in folder.iterdir()} | {p.name for p in (DATA / which).iterdir()}
            bad += [f"{which}/{n}" for n in sorted(names) if digest(folder / n) != digest(DATA / which / n)]
    return bad


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", nargs="?", choices=[*COMMITTED, "models"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    if not args.check and not args.set:
        parser.error("which set?")
    if not has_exporter():
        python = venv_python()
        if not python.exists() or os.environ.get("ANYMPS_EXECUTORCH_STARTED"):
            sys.exit("make_bundles.py needs executorch 1.4.1. Install it with: scripts/env executorch")
        os.environ["ANYMPS_EXECUTORCH_STARTED"] = "1"
        os.execv(python, [str(python), __file__, *sys.argv[1:]])
    import torch

    torch.set_num_threads(1)  # sums in the same order on every machine
    if args.check:
        failed = check()
    else:
        folder = args.out or (MODELS if args.set == "models" else DATA / args.set)
        failed = make(args.set, args.names, folder)
    if failed:
        sys.exit(f"not made, or different: {', '.join(failed)}")


if __name__ == "__main__":
    main()
