#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a model over many rows on several machines, or several processes of this one, with Ray.

    ray_batch_inference.py MODEL ROWS.npy [--workers N] [--threads T] [--batch B] [--address HOST:PORT] [--out RESULTS.npy]

Each worker loads the model once and takes one batch after the other; whoever is done first takes the next, so a slow
machine delays nobody. A batch that is lost with its worker is run again by another. Without --address Ray is started here.
"""
import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np
import ray
from ray.exceptions import RayActorError


class Model:
    """A worker: a process with the model, ready to run."""

    def __init__(self, model, threads):
        import anymps
        self.model = anymps.load(model, threads=threads)

    def run(self, rows, first, last):
        """`rows` lies in Ray's shared memory: nothing is copied on the machine that holds it."""
        result = self.model(rows[first:last])
        return first, result[0] if isinstance(result, tuple) else result

    def pid(self):
        return os.getpid()


class Progress:
    """A bar on a terminal; elsewhere a line every tenth."""

    def __init__(self, total):
        self.total, self.done, self.tenth, self.begin = total, 0, 0, time.monotonic()
        self.terminal = sys.stderr.isatty()

    def add(self, rows):
        self.done += rows
        share = self.done / self.total
        speed = self.done / max(time.monotonic() - self.begin, 1e-9)
        text = f"{self.done}/{self.total} rows, {speed:.0f} rows/s, {(self.total - self.done) / speed:.0f} s left"
        if self.terminal:
            print(f"\r[{'#' * int(share * 30):<30}] {text}   ", end="" if self.done < self.total else "\n", file=sys.stderr, flush=True)
        elif int(share * 10) > self.tenth:
            self.tenth = int(share * 10)
            print(f"{share:4.0%}  {text}", file=sys.stderr, flush=True)


class Pool:
    """Workers that are given a batch each and another when they are done."""

    def __init__(self, model, threads, count):
        self.actor = ray.remote(num_cpus=threads, max_restarts=0)(Model)
        self.model, self.threads = model, threads
        self.idle = [self.start() for _ in range(count)]
        self.busy = {}  # the result that will come -> (worker, batch)

    def start(self):
        return self.actor.remote(self.model, self.threads)

    def give(self, rows, batch):
        worker = self.idle.pop()
        self.busy[worker.run.remote(rows, *batch)] = (worker, batch)

    def take(self):
        """The next batch that is done: (first row, result, None), or (_, _, batch) if its worker is gone."""
        (ready,), _ = ray.wait(list(self.busy), num_returns=1)
        worker, batch = self.busy.pop(ready)
        try:
            first, result = ray.get(ready)
        except RayActorError:
            self.idle.append(self.start())
            return None, None, batch
        self.idle.append(worker)
        return first, result, None


def infer(model, rows, workers, threads, batch):
    """The model's first result for all rows, in their order."""
    waiting = [(i, min(i + batch, len(rows))) for i in range(0, len(rows), batch)][::-1]
    shared, pool, progress, out = ray.put(rows), Pool(model, threads, workers), Progress(len(rows)), None
    while waiting or pool.busy:
        while waiting and pool.idle:
            pool.give(shared, waiting.pop())
        first, result, lost = pool.take()
        if lost:
            print(f"a worker was lost; rows {lost[0]} to {lost[1]} are run again", file=sys.stderr)
            waiting.append(lost)
            continue
        if out is None:
            out = np.empty((len(rows), *result.shape[1:]), result.dtype)
        out[first:first + len(result)] = result
        progress.add(len(result))
    return out


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("rows", type=Path, help=".npy; the first axis is the rows")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="of each worker (default 1)")
    parser.add_argument("--batch", type=int, default=32, help="rows that a worker takes at a time (default 32)")
    parser.add_argument("--address", help="of a Ray cluster; without it Ray is started here")
    parser.add_argument("--out", type=Path, default=Path("results.npy"))
    args = parser.parse_args()
    if min(args.workers, args.threads, args.batch) < 1:
        parser.error("--workers, --threads and --batch must be at least 1")
    return args


def main():
    args = parse_args()
    rows = np.load(args.rows)
    if not len(rows):
        sys.exit(f"{args.rows} has no rows")
    options = {} if args.address else {"num_cpus": args.workers * args.threads, "include_dashboard": False}
    ray.init(address=args.address, log_to_driver=False, logging_level="error", **options)
    begin = time.monotonic()
    # The file's bytes go along: workers on other machines need not have it.
    results = infer(args.model.read_bytes(), rows, args.workers, args.threads, args.batch)
    np.save(args.out, results)
    print(f"{len(results)} rows in {time.monotonic() - begin:.1f} s on {args.workers} workers; results {results.shape} in {args.out}")
    ray.shutdown()


if __name__ == "__main__":
    main()
