# SPDX-License-Identifier: Apache-2.0
"""Run in a process of its own: a framework and the engine compute in turn and side by side, from several threads. The engine
then has no more threads than it may have, and what the framework's OpenMP is set to is what it was.

    threads.py FRAMEWORK        with ANYMPS_NUM_THREADS and another OMP_NUM_THREADS
"""
import ctypes
import json
import os
import re
import sys
import threading
import time
from pathlib import Path

name = sys.argv[1]
framework = __import__(name)
import numpy as np  # noqa: E402  after the framework: the order of the libraries is its own

X = np.random.default_rng(3).standard_normal((512, 512), np.float32)


def named_as_ours():
    return sorted(text for path in Path("/proc/self/task").glob("*/comm") if (text := path.read_text().strip()).startswith("anymps-"))


def has_threads(expected):
    """Soon: a thread that ends while the system lists them, as Python's do after a join, cuts the list short."""
    end = time.monotonic() + 10
    while named_as_ours() != expected and time.monotonic() < end:
        time.sleep(0.01)
    return named_as_ours() == expected


def openmp():
    """The libraries of OpenMP in the process, by path."""
    with open("/proc/self/maps", encoding="ascii") as maps:
        return sorted({line.split()[-1] for line in maps if re.search(r"/lib(gomp|omp|iomp5)[.-][^/]*$", line)})


def settings(libraries):
    """Of the calling thread: OpenMP keeps them for each."""
    asked = [ctypes.CDLL(path) for path in libraries]
    found = {path: (of.omp_get_max_threads(), of.omp_get_dynamic(), of.omp_get_max_active_levels()) for path, of in zip(libraries, asked)}
    return found, framework.get_num_threads() if name == "torch" else None, sorted(os.sched_getaffinity(0))


def of_framework():
    x = framework.from_numpy(X) if name == "torch" else framework.to_tensor(X)
    return (x @ x).numpy()


of_framework()
libraries = openmp()
assert libraries, f"{name} is to have an OpenMP"
before = settings(libraries)
assert any(most == int(os.environ["OMP_NUM_THREADS"]) for most, *_ in before[0].values()), before

import anymps  # noqa: E402

graph = anymps.Graph()
x = graph.input("x", "f32", X.shape)
y = anymps.ops.softmax(anymps.ops.matmul(x, graph.constant(X)), axis=1)
picture = anymps.ops.reshape(y, shape=[1, 16, 128, 128])
graph.outputs(anymps.ops.conv(picture, graph.constant(X[:8].reshape(32, 16, 2, 4))), anymps.ops.svd(anymps.ops.matmul(X[:40], y))[1])
model, failed = anymps.compile(graph), []
assert {step["kernel"] for step in json.loads(model.text("plan"))} >= {"cpu:onednn", "cpu:simd", "cpu:lapack"}
first, product = [*map(np.asarray, model(X))], of_framework()


def both():
    own = settings(libraries)
    for _ in range(4):
        if not all(map(np.array_equal, model(X), first)) or not np.allclose(of_framework(), product, atol=1e-3):
            failed.append("other results")
    if settings(libraries) != own:
        failed.append((own, settings(libraries)))


threads = [threading.Thread(target=both) for _ in range(3)]
for thread in threads:
    thread.start()
both()
for thread in threads:
    thread.join()
assert not failed, failed
most = int(os.environ["ANYMPS_NUM_THREADS"])
assert anymps.device("cpu").max_threads == most
assert has_threads([f"anymps-{i}" for i in range(1, most)]), named_as_ours()
assert settings(libraries) == before, (before, settings(libraries))
assert openmp() == libraries, "the engine brought an OpenMP"
