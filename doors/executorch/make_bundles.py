#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the test bundles (.pte with inputs and expected outputs), the same bytes each time.

    make_bundles.py kinds [NAME ...]      one for each node kind -> tests/data/executorch/kinds/
"""
import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data" / "executorch"


def make_kinds(names, folder):
    import torch

    from anymps_executorch.bundles import kinds
    from anymps_executorch.bundles.making import kind_bundle

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    failed = []
    for kind, case in kinds.KINDS.items():
        if names and kind not in names:
            continue
        for fp16 in (False, True) if case.fp16 else (False,):
            name = f"{kind}_{'f16' if fp16 else 'f32'}.pte"
            try:
                data, counts = kind_bundle(kind, case, fp16)
            except Exception as error:  # noqa: BLE001  (the next kinds are made all the same)
                print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
                failed.append(name)
                continue
            (folder / name).write_bytes(data)
            print(f"{name}: {len(data)} bytes, {dict(counts)}")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", choices=["kinds"])
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    failed = make_kinds(args.names, DATA / "kinds")
    if failed:
        sys.exit(f"not made: {', '.join(failed)}")


if __name__ == "__main__":
    main()
