# SPDX-License-Identifier: Apache-2.0
"""Threads, and memory over many calls."""
import gc
import threading
import time

import numpy as np

import anymps


def resident_kib():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def test_one_model_on_many_threads(mlp):
    model, twin, _ = mlp
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(200):
            x = rng.standard_normal((int(rng.integers(1, 6)), 4)).astype(np.float32)
            if not np.allclose(model(x), twin(x), rtol=1e-4, atol=1e-6):
                wrong.append(seed)
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_interpreter_is_free_while_the_engine_works():
    graph = anymps.Graph()
    x = graph.input("x", "f32", (512, 512))
    for _ in range(24):
        x = x @ x
    graph.outputs(x)
    model = anymps.compile(graph, threads=1)
    feed = np.eye(512, dtype=np.float32)
    model(feed)
    ticks, done = [], threading.Event()

    def run():
        for _ in range(3):
            model(feed)
        done.set()
    thread = threading.Thread(target=run)
    start = time.monotonic()
    thread.start()
    while not done.is_set():
        ticks.append(time.monotonic())
        time.sleep(0.001)
    thread.join()
    if (spent := time.monotonic() - start) > 0.05:
        longest = max(np.diff([start, *ticks]))
        assert len(ticks) > 5 and longest < spent * 0.8, f"{len(ticks)} ticks, the longest pause {longest:.3f} s of {spent:.3f}"


def test_graphs_are_built_on_several_threads():
    failures = []

    def work(seed):
        try:
            for i in range(20):
                graph = anymps.Graph()
                x = graph.input("x", "f32", (3,))
                graph.outputs(x * (seed + 1) + i)
                assert anymps.compile(graph)([1, 1, 1]).tolist() == [seed + 1 + i] * 3
        except Exception as error:
            failures.append(error)
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_memory_does_not_grow_over_ten_thousand_calls(mlp):
    model, _, _ = mlp
    x = np.ones((8, 4), np.float32)
    text = np.array(["a", "bc"], object)

    def calls(count):
        for _ in range(count):
            model(x)
            anymps.ops.add(x, 1)
            np.from_dlpack(anymps.from_dlpack(x))
            anymps.tensor(text).numpy()
            try:
                model(x[:, :2])
            except anymps.InvalidArgument:
                pass
        gc.collect()
    calls(2000)
    before, device = resident_kib(), anymps.memory_stats()["allocated"]
    calls(10000)
    assert anymps.memory_stats()["allocated"] == device
    assert resident_kib() - before < 4096, "KiB more after 10,000 calls"
