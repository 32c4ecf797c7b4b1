# SPDX-License-Identifier: Apache-2.0
"""Runs torch's own op database on the device 'mps' and compares with the CPU.

    python -m tests.doors.torch.opinfo [--ops REGEX] [--dtypes f32,f16] [--forward | --gradients] [--fallback]

A case is an op (with its variant) in one dtype, forward or gradient; it passes when all samples agree. Cases run in
worker processes, so that a crash or a hang ends one case and not the run. Without --forward, --gradients or --variants
both directions run. --json keeps the results; --from reads such files instead of running, so that a run can be made
in shards:

    python -m tests.doors.torch.opinfo --json off.json && python -m tests.doors.torch.opinfo --fallback --json on.json
    python -m tests.doors.torch.opinfo --from off.json on.json --markdown > docs/generated/torch_conformance.md

    --update    with --ops and --markdown: the page, with the cases of these ops anew
    --missing   which ATen op is missing first, and in how many cases
    --sample    the part that CI runs (f32 of all ops with few samples, a part of the other dtypes)
    --verify    fails on a wrong number or a crash that the page does not name, and on a case that it calls passed
"""
import argparse
import json
import sys
import time

from . import DTYPES, FAILURES, PAGE, VARIANTS, environment, report


def parse():
    parser = argparse.ArgumentParser(prog="python -m tests.doors.torch.opinfo", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", metavar="REGEX", help="only ops whose whole name matches")
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--forward", action="store_true")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--variants", action="store_true", help="non-contiguous samples, out= and in-place, in f32")
    parser.add_argument("--fallback", action="store_true", help="let the CPU compute what is missing")
    parser.add_argument("--shard", default="0/1", metavar="I/N")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=int, default=120, help="seconds a case may take")
    parser.add_argument("--limit-samples", type=int, default=0, metavar="N")
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--from", dest="files", nargs="+", metavar="FILE")
    parser.add_argument("--markdown", action="store_true", help="prints the page")
    parser.add_argument("--update", action="store_true", help="cases that do not run are what the page says of them")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--list", action="store_true", help="prints each case that does not pass, with the reason")
    args = parser.parse_args()
    args.dtypes = args.dtypes.split(",")
    if unknown := set(args.dtypes) - set(DTYPES):
        parser.error(f"unknown dtypes {sorted(unknown)}; there are {' '.join(DTYPES)}")
    args.shard = tuple(int(n) for n in args.shard.split("/"))
    args.kinds = ["forward"] * args.forward + ["gradient"] * args.gradients + list(VARIANTS) * args.variants
    args.kinds = args.kinds or ["forward", "gradient"]
    if args.sample and not args.limit_samples:
        args.limit_samples = 6
    return args


def run(args):
    """{"fallback", "torch", "results": {(op, dtype, kind): answer}}."""
    environment(args.fallback)
    import torch
    if not torch.backends.mps.is_available():
        sys.exit("torch.backends.mps.is_available() is False: install the door (pip install ./doors/torch)")
    torch.set_num_threads(1)
    from . import cases, pool
    units, absent = cases.select(args.ops, args.dtypes, args.kinds, args.shard)
    if args.sample:
        units = cases.sampled(units)
    if not units:
        sys.exit(f"no case matches {args.ops!r}")

    def progress(done, waiting):
        if sys.stderr.isatty() and done % 20 == 0:
            print(f"\r{done} cases done, {waiting} units to go ", end="", file=sys.stderr, flush=True)
    results = pool.run_all(units, args.jobs, args.limit, args.limit_samples, progress)
    for key, answer in results.items():
        answer["xfail"] = cases.expected_to_fail(*key)
    if args.update:
        everything, _ = cases.select(None, list(DTYPES), ["forward", "gradient"])
        keys = [(unit.op, unit.dtype, kind) for unit in everything for kind in unit.kinds]
        known = report.as_printed(PAGE.read_text(encoding="utf-8"), keys, lambda key: cases.expected_to_fail(*key))
        results = {**known, **results}
    for key in absent:
        results[key] = {"outcome": "skipped", "reason": report.ABSENT, "missing": "", "notes": [], "seconds": 0, "xfail": False}
    return {"fallback": args.fallback, "torch": torch.__version__, "results": results}


def save(found, path):
    rows = [{"op": op, "dtype": dtype, "kind": kind, **answer} for (op, dtype, kind), answer in sorted(found["results"].items())]
    with open(path, "w", encoding="utf-8") as out:
        json.dump({**found, "results": rows}, out, indent=0)


def load(paths):
    """The results of several files as (fallback off, fallback on, torch's version)."""
    merged, version = {False: {}, True: {}}, ""
    for path in paths:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        version = found["torch"]
        merged[found["fallback"]].update({(r.pop("op"), r.pop("dtype"), r.pop("kind")): r for r in found["results"]})
    return merged[False], merged[True], version


def main():
    args, start = parse(), time.monotonic()
    if args.files:
        off, on, version = load(args.files)
    else:
        found = run(args)
        off, on, version = ({}, found["results"], found["torch"]) if args.fallback else (found["results"], {}, found["torch"])
        if args.json:
            save(found, args.json)
    if args.markdown:
        print(report.page(off, on, version), end="")
        return 0
    results = off or on
    if args.list:
        for key, answer in sorted(results.items()):
            if answer["outcome"] in FAILURES:
                print(f"{report.outcome_of(answer):8} {' '.join(key)}: {answer['reason']}")
    print(*report.summary(results), sep="\n")
    if args.missing:
        print("\ncases   first missing op", *report.missing(results), sep="\n")
    passed = sum(a["outcome"] == "pass" for a in results.values())
    skipped = sum(a["outcome"] == "skipped" for a in results.values())
    bad = []
    if args.verify:
        bad = report.verify(results, PAGE.read_text(encoding="utf-8") if PAGE.exists() else "")
        print(*(f"error: {line}" for line in bad), sep="\n")
    print(f"{time.monotonic() - start:.0f} s")
    print(f"torch conformance: {passed} {len(bad)} {len(results) - passed - skipped - len(bad)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
