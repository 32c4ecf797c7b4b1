# SPDX-License-Identifier: Apache-2.0
"""Runs the ONNX standard's backend suite (2,033 tests on a CPU) and prints passed, failed and skipped for each op.

    PYTHONPATH=build/python python -m tests.conformance.onnx_backend [-k PATTERN] [--list-failed] [--json FILE]

The package is built by `ninja -C build anymps_python`; Python is that of the environment `peers`. A test is refused
(the engine said that it cannot), wrong (its output differs), crashed (the process ended, or took too long), or
unpassable (the standard's own flaw: see cases.py). Tests run in worker processes, so that a crash ends one test and not
the run.

    --backend onnxruntime   the same with ONNX Runtime
    --write                 runs both and writes docs/generated/onnx_conformance.md
    --verify                fails unless that page says what this run says
"""
import argparse
import json
import multiprocessing
import multiprocessing.connection
import os
import re
import sys
import time
import unittest

from . import cases, report
from .backends import BACKENDS

ROOT = cases.ROOT


def run_one(case, backend):
    """(status, reason): passed, skipped, refused, wrong, unpassable."""
    known_flaw = cases.UNPASSABLE.get(case.name, (None, ""))
    try:
        case.func(unittest.TestCase())
        if known_flaw == cases.RANDOM:  # the few elements were the same this time
            return "unpassable", known_flaw[1]
        return "passed", ""
    except unittest.SkipTest as skip:
        return "skipped", str(skip)
    except BaseException as error:  # also SystemExit: whatever a test does is its result
        if isinstance(error, KeyboardInterrupt):
            raise
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:600]
        if backend.stage != "compare":
            return "refused", reason
        failure, why = known_flaw
        return ("unpassable", why) if failure and failure in reason else ("wrong", reason)


def work(connection, tests, backend):
    """A worker: gets names, answers (name, status, reason, seconds). What tests print goes nowhere."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    os.environ.setdefault("ANYMPS_NUM_THREADS", "1")
    while (name := connection.recv()) is not None:
        start = time.monotonic()
        backend.stage = "prepare"
        connection.send((*run_one(tests[name], backend), time.monotonic() - start))


class Worker:
    def __init__(self, tests, backend):
        self.tests, self.backend, self.name = tests, backend, None
        self.start()

    def start(self):
        context = multiprocessing.get_context("fork")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, self.tests, self.backend), daemon=True)
        self.process.start()
        theirs.close()

    def give(self, name):
        self.name, self.since = name, time.monotonic()
        self.connection.send(name)

    def restart(self):
        self.process.kill()
        self.process.join()
        self.connection.close()
        self.start()


def run_all(tests, backend, jobs, limit, progress):
    """{name: (status, reason, seconds)} of all the tests."""
    results, waiting = {}, sorted(tests, reverse=True)
    workers = [Worker(tests, backend) for _ in range(max(1, min(jobs, len(waiting))))]
    for worker in workers:
        worker.give(waiting.pop())
    busy = list(workers)
    while busy:
        ready = multiprocessing.connection.wait([w.connection for w in busy], timeout=1)
        for worker in list(busy):
            if worker.connection in ready:
                try:
                    results[worker.name] = worker.connection.recv()
                except (EOFError, ConnectionError):
                    worker.process.join()
                    results[worker.name] = ("crashed", f"the process ended with {worker.process.exitcode}", 0.0)
                    worker.restart()
            elif time.monotonic() - worker.since > limit:
                results[worker.name] = ("crashed", f"no result after {limit} s", float(limit))
                worker.restart()
            else:
                continue
            progress(len(results), len(tests))
            if waiting:
                worker.give(waiting.pop())
            else:
                worker.connection.send(None)
                worker.process.join(timeout=10)
                worker.process.kill()
                busy.remove(worker)
    return results


def run_backend(name, args):
    backend = BACKENDS[name]
    tests = cases.load(backend)
    if args.k:
        words = re.compile(args.k, re.I)
        tests = {n: c for n, c in tests.items() if words.search(n) or words.fullmatch(c.op)}
        if not tests:
            sys.exit(f"no test matches {args.k!r}")
    show = sys.stderr.isatty()

    def progress(done, total):
        if show and (done % 20 == 0 or done == total):
            print(f"\r{name}: {done} of {total}", end="\n" if done == total else "", file=sys.stderr, flush=True)
    start = time.monotonic()
    results = run_all(tests, backend, args.jobs, args.limit, progress)
    return report.Report(name, tests, results, time.monotonic() - start)


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.onnx_backend", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", metavar="PATTERN", help="only tests whose name matches, or whose op is that")
    parser.add_argument("--backend", choices=sorted(BACKENDS), default="anymps")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument("--limit", type=int, default=60, help="seconds a test may take")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--list-failed", action="store_true", help="each test that did not pass, with the reason")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--verify", action="store_true")
    args = parser.parse_args()

    result = run_backend(args.backend, args)
    result.print(list_failed=args.list_failed or bool(args.k))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as out:
            json.dump(result.json(), out, indent=1)
    status = 0
    if args.verify:
        status = report.verify(result, report.PAGE.read_text(encoding="utf-8") if report.PAGE.exists() else "")
        if status:
            print(f"make {report.PAGE.relative_to(ROOT)} anew: python -m tests.conformance.onnx_backend --write")
    elif args.write:
        peer = run_backend("onnxruntime", args)
        report.PAGE.write_text(report.page(result, peer), encoding="utf-8")
        print(f"written: {report.PAGE.relative_to(ROOT)}")
    # The line that scripts/test reads: a test that is refused is open work, a wrong output or a crash is a failure.
    bad = result.count("wrong") + result.count("crashed") + (status != 0)
    passed = result.count("passed")
    print(f"onnx conformance: {passed} {bad} {len(result.rows) - passed - bad + (status != 0)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
