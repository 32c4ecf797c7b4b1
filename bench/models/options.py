# SPDX-License-Identifier: Apache-2.0
"""What the command lines of the benchmarks over worker_protocol.md share: options, the log, the note on a busy machine."""
import argparse
import json
from pathlib import Path

from report import machine
from worker import BUILDS, ROOT


def names(kind, known):
    def parse(value):
        got = value.split(",")
        unknown = [n for n in got if n not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"no {kind} {', '.join(unknown)}; there are {', '.join(known)}")
        return got
    return parse


def numbers(value):
    got = [int(n) for n in value.split(",")]
    if min(got) < 1:
        raise argparse.ArgumentTypeError(f"{min(got)} is not at least 1")
    return got


def add_common(parser, runtimes, rounds):
    """The options that all have; `finish` looks at them."""
    parser.add_argument("--runtimes", type=names("runtime", runtimes), default=runtimes, help="names, with commas")
    parser.add_argument("--rounds", type=int, default=rounds, help=f"turns of each runtime (default {rounds})")
    parser.add_argument("--before", type=Path, metavar="BUILD", help="another build of AnyMPS, measured in the same run")
    parser.add_argument("--out", type=Path, help="folder of the results")


def finish(parser, args, whole):
    """`whole`: the run is one of everything, whose results are published."""
    if args.rounds < 1:
        parser.error("--rounds must be at least 1")
    if args.before:
        BUILDS["before"] = args.before.resolve()
        args.runtimes = [*args.runtimes, "before"]
    args.out = args.out or ROOT / ("bench/results" if whole and not args.before else "build/bench")
    return args


def start(name):
    """The machine, with a note where it is busy, and an empty log."""
    about = machine(ROOT)
    if about["load_average"] > 0.5:
        print(f"note: the machine is busy (load average {about['load_average']}): times will be longer and ratios less certain")
    log = ROOT / "build" / "logs" / f"bench-{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("")
    return about, log


def shown(path):
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def write_results(out, name, rows, about, markdown):
    """NAME.json and NAME.md."""
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(json.dumps({"machine": about, "rows": rows}, indent=1, ensure_ascii=False) + "\n")
    (out / f"{name}.md").write_text(markdown)
