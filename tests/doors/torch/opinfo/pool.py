# SPDX-License-Identifier: Apache-2.0
"""Runs units in worker processes. A crash or a hang is the result of the case that was running, and of no other.

Workers are forked from a process that has imported torch and op_db and has computed nothing, so that a new one costs
milliseconds and every one meets the device for the first time.
"""
import ctypes
import multiprocessing
import multiprocessing.connection
import os
import signal
import time
import warnings

UNITS_PER_WORKER = 200  # then a fresh one: what one op leaves behind should not reach all the others


def work(connection, limit_samples):
    """Gets (op, dtype, kinds); sends each kind when it begins and its answer when it ends, then None."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # end with the parent
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    warnings.simplefilter("ignore")
    from . import cases, samples
    from .run_case import run_case
    while (unit := connection.recv()) is not None:
        op, made = cases.OPS[unit.op], None
        for kind in unit.kinds:
            connection.send((kind, None))
            start = time.monotonic()
            try:
                made = made or samples.make(op, cases.dtype_of(unit.dtype), limit_samples)
            except Exception as error:  # op_db needs a package that is not here, or a machine that this is not
                answer = {"outcome": "skipped", "reason": f"no samples: {error}", "missing": "", "notes": []}
            else:
                answer = run_case(op, unit.dtype, cases.dtype_of(unit.dtype), kind, made)
            connection.send((kind, {**answer, "seconds": round(time.monotonic() - start, 3)}))
        connection.send(None)


class Worker:
    def __init__(self, limit_samples):
        self.limit_samples, self.process = limit_samples, None
        self.start()

    def start(self):
        context = multiprocessing.get_context("fork")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, self.limit_samples), daemon=True)
        self.process.start()
        theirs.close()
        self.units = 0

    def stop(self):
        self.process.kill()
        self.process.join()
        self.connection.close()

    def give(self, unit):
        self.unit, self.left, self.since = unit, list(unit.kinds), time.monotonic()
        self.units += 1
        self.connection.send(unit)


def run_all(units, jobs, limit, limit_samples, progress):
    """{(op, dtype, kind): answer} of all units; `limit` is in seconds a case."""
    results, waiting = {}, list(reversed(units))
    workers = [Worker(limit_samples) for _ in range(max(1, min(jobs, len(waiting))))]
    busy = []

    def next_unit(worker):
        if not waiting:
            worker.stop()
            if worker in busy:
                busy.remove(worker)
            return
        if worker.units >= UNITS_PER_WORKER:
            worker.stop()
            worker.start()
        if worker not in busy:
            busy.append(worker)
        worker.give(waiting.pop())

    def failed(worker, outcome, reason, seconds):
        """The case in hand has failed; the rest of its unit goes to a new worker."""
        unit, kind = worker.unit, worker.left.pop(0)
        results[unit.op, unit.dtype, kind] = {"outcome": outcome, "reason": reason, "missing": "", "notes": [], "seconds": seconds}
        if worker.left:
            waiting.append(type(unit)(unit.op, unit.dtype, tuple(worker.left)))
        worker.stop()
        worker.start()
        next_unit(worker)

    for worker in workers:
        next_unit(worker)
    while busy:
        ready = multiprocessing.connection.wait([w.connection for w in busy], timeout=1)
        for worker in list(busy):
            if worker.connection in ready:
                try:
                    message = worker.connection.recv()
                except (EOFError, ConnectionError):
                    worker.process.join()
                    failed(worker, "crash", how_it_ended(worker.process.exitcode), 0.0)
                    continue
                if message is None:
                    next_unit(worker)
                elif message[1] is None:
                    worker.since = time.monotonic()
                else:
                    results[worker.unit.op, worker.unit.dtype, worker.left.pop(0)] = message[1]
                    progress(len(results), len(waiting))
            elif worker.left and time.monotonic() - worker.since > limit:
                failed(worker, "timeout", f"no result after {limit} s", float(limit))
    return results


def how_it_ended(code):
    try:
        return f"the process ended with {signal.Signals(-code).name}" if code < 0 else f"the process ended with {code}"
    except ValueError:
        return f"the process ended with {code}"
