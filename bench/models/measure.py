# SPDX-License-Identifier: Apache-2.0
"""Measures one case (model, shapes, threads) on all runtimes: latency in interleaved rounds, memory, agreement.

Every runtime waits in its own process. A round gives each its turn, one after the other, so that a disturbance of
the machine hits all of them; ratios are taken within a round. Waiting policies are the runtimes' defaults (their
threads spin briefly after a run), and a pause between turns lets that end before the next one starts.
"""
import statistics
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from quiet import MOST
from worker import BUILDS, Worker, WorkerError

PAUSE_S = 0.05
TURN_S = 0.25
FRESH_PROCESSES = 3
RUNS_FOR_PEAK = 10
# Largest difference from the first peer, relative to its largest value, that still counts as the same result.
MAX_REL_DIFF = 1e-3


@dataclass(frozen=True)
class Model:
    name: str
    batch: int = 1
    seq: int = 0  # 0: an image model
    frames: tuple = ()  # the shape of the input `frames`, of a model that has no other
    allowed: float = MAX_REL_DIFF

    def inputs(self, seed=0):
        rng = np.random.default_rng(seed)
        if self.frames:
            return {"frames": rng.standard_normal(self.frames, np.float32)}
        if not self.seq:
            return {"input": rng.standard_normal((self.batch, 3, 224, 224), np.float32)}
        return {"input_ids": rng.integers(0, 4096, (self.batch, self.seq), np.int64),
                "attention_mask": np.ones((self.batch, self.seq), np.int64)}


MODELS = [Model("mobilenet_v2"), Model("resnet50"), Model("minilm_l6", seq=128), Model("bert_base", seq=128)]
# Those of models/make_quantized.py: what is rounded a step apart at first is some steps apart at the end.
QUANTIZED = [Model("mobilenet_v2_qdq", allowed=0.1), Model("resnet50_qdq", allowed=0.1),
             Model("lstm_dynamic", frames=(100, 1, 64), allowed=0.05), Model("minilm_l6_dynamic", seq=128, allowed=0.1),
             Model("bert_base_dynamic", seq=128, allowed=0.1), Model("bert_base_4bit", seq=1)]
# Those of models/make_kinds.py.
KINDS = [Model("kind_picture", frames=(1, 3, 192, 192)), Model("kind_decoder", frames=(1, 4, 32, 32)),
         Model("kind_clip", frames=(1, 3, 8, 96, 96)), Model("kind_words", frames=(1, 60, 100)),
         Model("kind_speech", frames=(1, 64, 144))]


class Disagreement(RuntimeError):
    pass


@dataclass
class Result:
    runtime: str
    version: str
    rounds: list = field(default_factory=list)  # of lists of ms
    max_abs_diff: float = 0.0
    max_rel_diff: float = 0.0
    idle_cpu: float = 0.0  # share of a core used during the others' turns
    spoiled: int = 0  # rounds during which other processes had the cores, too
    fresh: dict = field(default_factory=dict)

    def runs(self):
        return [ms for r in self.rounds for ms in r]

    def medians(self):
        return [statistics.median(r) for r in self.rounds]


def save_inputs(model, folder):
    paths = {}
    for name, array in model.inputs().items():
        paths[name] = Path(folder) / f"{model.name}.{name}.npy"
        np.save(paths[name], array)
    return paths


def difference(ours, theirs):
    """(max abs, max abs relative to the largest value) between two outputs; infinite where they cannot be compared."""
    if ours.shape != theirs.shape or not np.isfinite(ours).all():
        return float("inf"), float("inf")
    diff = float(np.abs(ours.astype(np.float64) - theirs.astype(np.float64)).max(initial=0.0))
    return diff, diff / max(float(np.abs(theirs).max(initial=0.0)), 1e-30)


def outputs_of(worker, folder):
    folder = Path(folder) / f"out_{worker.runtime}"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.npy"):
        old.unlink()
    worker.ask(f"output {folder}")
    return {p.name: np.load(p) for p in sorted(folder.glob("*.npy"))}


def compare_outputs(workers, results, folder, allowed=MAX_REL_DIFF):
    """All against the first peer; raises Disagreement with the figures when one is off."""
    outputs = {w.runtime: outputs_of(w, folder) for w in workers}
    base = next((r for r in outputs if r != "anymps"), "anymps")
    for runtime, arrays in outputs.items():
        if len(arrays) == len(outputs[base]) == 1:  # OpenVINO may know an output by another of its names
            arrays = dict(zip(outputs[base], arrays.values()))
        if arrays.keys() != outputs[base].keys():
            raise Disagreement(f"{runtime} has outputs {sorted(arrays)}, {base} has {sorted(outputs[base])}")
        for name, array in arrays.items():
            result = results[runtime]
            diff, rel = difference(array, outputs[base][name])
            result.max_abs_diff, result.max_rel_diff = max(result.max_abs_diff, diff), max(result.max_rel_diff, rel)
        if not results[runtime].max_rel_diff <= allowed:
            raise Disagreement(f"{runtime} differs from {base}: max abs {results[runtime].max_abs_diff:.3g}, relative to the "
                               f"largest value {results[runtime].max_rel_diff:.3g} (allowed {allowed:g})")


def measure_round(number, workers, runs, idle):
    """Each has its turn; the times of each."""
    times = {}
    for worker in workers[number % len(workers):] + workers[:number % len(workers)]:
        time.sleep(PAUSE_S)
        others = [w for w in workers if w is not worker]
        before, start = {w.runtime: w.cpu_seconds() for w in others}, time.perf_counter()
        worker.run(2)  # caches and threads were another's
        times[worker.runtime] = worker.run(runs[worker.runtime])
        elapsed = time.perf_counter() - start
        for other in others:
            idle[other.runtime][0] += other.cpu_seconds() - before[other.runtime]
            idle[other.runtime][1] += elapsed
    return times


def quiet_rounds(one, rounds, quiet):
    """So many rounds of `one(number)`, and how many of them were spoiled by others: those are taken again as far as `quiet`
    (quiet.py) allows, and the least spoiled ones are taken where that is not enough."""
    good, spoiled = [], []
    while len(good) < rounds and len(good) + len(spoiled) < rounds + quiet.again:
        if spoiled or not good:
            quiet.watch.wait(quiet.patience)
        quiet.watch.start()
        times = one(len(good) + len(spoiled))
        foreign = quiet.watch.foreign()
        (good if foreign <= MOST else spoiled).append((foreign, times))
    spoiled = sorted(spoiled, key=lambda pair: pair[0])[:rounds - len(good)]
    return [times for _, times in good + spoiled], len(spoiled)


def measure_rounds(workers, results, rounds, turn=TURN_S, quiet=None):
    # Enough runs for a turn of so many seconds, judged after a first warm-up.
    runs = {w.runtime: max(3, min(100, int(turn * 1e3 / statistics.median(w.run(5))))) for w in workers}
    idle = {w.runtime: [0.0, 0.0] for w in workers}
    one, spoiled = (lambda number: measure_round(number, workers, runs, idle)), 0
    if quiet:
        measured, spoiled = quiet_rounds(one, rounds, quiet)
    else:
        measured = [one(number) for number in range(rounds)]
    for worker in workers:
        result = results[worker.runtime]
        result.rounds += [times[worker.runtime] for times in measured]
        result.spoiled = spoiled
        used, elapsed = idle[worker.runtime]
        result.idle_cpu = used / elapsed if elapsed else 0.0


def measure_fresh(runtime, model_path, threads, inputs, log):
    """Peak memory and load time of processes that do nothing else: load, ten inferences, end."""
    rows = []
    for _ in range(FRESH_PROCESSES):
        with Worker(runtime, log) as worker:
            row = {"baseline_rss_mb": worker.memory_mb("VmRSS")}
            row["load_ms"] = worker.prepare(model_path, threads, inputs)
            row["first_run_ms"] = worker.run(1)[0]
            worker.run(RUNS_FOR_PEAK - 1)
            row["peak_rss_mb"] = worker.memory_mb("VmHWM")
            rows.append(row)
    return {key: statistics.median(r[key] for r in rows) for key in rows[0]}


def start_workers(stack, runtimes, model_path, threads, inputs, folder, log, allowed, left_out):
    """Workers that have run the model once, with the same results. A peer that cannot run it, or differs, is left out where
    there is a dict for the reasons, `left_out`."""
    workers, results = [], {}
    for runtime in runtimes:
        worker = stack.enter_context(Worker(runtime, log))
        results[runtime] = Result(runtime, worker.version)
        try:
            worker.prepare(model_path, threads, inputs)
            worker.run(1)
            first_peer = [w for w in workers if w.runtime not in BUILDS][:1]
            if left_out is not None and first_peer and runtime not in BUILDS:
                compare_outputs([*first_peer, worker], results, folder, allowed)
        except (WorkerError, Disagreement) as error:
            if left_out is None or runtime in BUILDS:
                raise
            left_out[runtime] = str(error)
            del results[runtime]
            worker.close()
        else:
            workers.append(worker)
    return workers, results


def measure_case(model, model_path, threads, runtimes, rounds, folder, log, allowed=MAX_REL_DIFF, fresh=True, turn=TURN_S, quiet=None,
                 left_out=None):
    """Returns {runtime: Result} for one model and number of threads; without `fresh`, of latency alone."""
    inputs = save_inputs(model, folder)
    with ExitStack() as stack:
        workers, results = start_workers(stack, runtimes, model_path, threads, inputs, folder, log, allowed, left_out)
        compare_outputs(workers, results, folder, allowed)
        measure_rounds(workers, results, rounds, turn, quiet)
        compare_outputs(workers, results, folder, allowed)
    for runtime in results if fresh else ():
        results[runtime].fresh = measure_fresh(runtime, model_path, threads, inputs, log)
    return results
