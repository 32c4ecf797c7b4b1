# SPDX-License-Identifier: Apache-2.0
"""Children of os.fork and multiprocessing compute with all that their parent has made, and a program may end while a stream
computes. What hangs runs in a process of its own."""
import os

import pytest

from alone import run_alone

THREADS = "4"  # of the kernels, however many cores there are

PARENT = """
    import os, signal, sys, numpy as np, anymps

    def model_of(width):
        graph = anymps.Graph()
        x = graph.input("x", "f32", ["N", width])
        w = graph.constant(2 * np.eye(width, dtype=np.float32))
        graph.outputs(anymps.ops.matmul(x, w))
        return anymps.compile(graph)

    def ones(rows, width=256):
        return np.ones((rows, width), np.float32)

    def computes(model, rows, width=256):
        return bool((np.asarray(model(ones(rows, width))) == 2).all())

    def adds(rows):
        return bool((np.asarray(anymps.ops.add(anymps.tensor(ones(rows)), anymps.tensor(ones(rows)))) == 2).all())

    def streams(model, stream):
        (y,) = model.submit(ones(8), stream=stream)
        stream.synchronize()
        return bool((np.asarray(y) == 2).all())

    def in_child(work, leave=os._exit):
        child = os.fork()
        if child == 0:
            signal.alarm(40)
            try:
                good = work()
            except BaseException as error:
                print("in the child:", error, file=sys.stderr)
                good = False
            leave(0 if good else 1)
        ended = os.waitpid(child, 0)[1]
        assert ended == 0, f"the child ended with {ended}"

    model, stream = model_of(256), anymps.stream()
    assert computes(model, 8) and computes(model, 64) and adds(1) and adds(512) and streams(model, stream)
    event = stream.record()
"""


def run(code):
    return run_alone(PARENT + code, ANYMPS_NUM_THREADS=THREADS)


@pytest.mark.parametrize("leave", ["os._exit", "sys.exit"])
def test_a_child_uses_what_its_parent_made(leave):
    run(f"""
    def work():
        event.synchronize()
        fresh = anymps.stream()
        fresh.wait(event)
        with anymps.profile() as profile:
            good = computes(model, 8) and computes(model, 3) and computes(model_of(128), 8, 128)
        return (good and adds(1) and adds(512) and adds(3) and streams(model, stream) and streams(model, fresh) and
                "matmul" in str(profile))
    in_child(work, {leave})
    in_child(lambda: in_child(work) is None and work(), {leave})
    assert work()
    """)


@pytest.mark.parametrize("leave", ["os._exit", "sys.exit"])
def test_a_child_drops_what_is_queued_and_the_parent_does_it(leave):
    """The feeds are numpy's: dropping them takes the interpreter's lock."""
    run(f"""
    results = [model.submit(ones(512), stream=stream)[0] for _ in range(200)]
    late = stream.record()
    def work():
        late.synchronize()
        stream.synchronize()
        return late.done and streams(model, stream)
    in_child(work, {leave})
    in_child(lambda: True, {leave})
    stream.synchronize()
    assert all((np.asarray(y) == 2).all() for y in results)
    """)


def test_a_pool_of_forked_workers():
    run("""
    import multiprocessing
    def job(rows):
        return computes(model, rows) and adds(rows) and streams(model, stream)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(job, range(1, 9)).get(40) == [True] * 8
    assert job(5)
    """)


def test_a_fork_beside_threads_that_compute():
    run("""
    import threading
    stop = threading.Event()
    def busy():
        while not stop.is_set():
            assert computes(model, 8) and adds(8)
    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            in_child(lambda: computes(model, 8) and adds(8) and streams(model, stream))
    finally:
        stop.set()
    for thread in threads:
        thread.join()
    """)


@pytest.mark.parametrize("end", ["sys.exit(0)", "os._exit(0)"])
def test_a_program_ends_while_a_stream_computes(end):
    run(f"""
    for _ in range(100):
        model.submit(ones(1024), stream=stream)
    {end}
    """)
