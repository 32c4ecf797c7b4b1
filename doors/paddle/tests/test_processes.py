# SPDX-License-Identifier: Apache-2.0
"""Forked children, worker processes of a DataLoader, and process groups."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import paddle
import pytest
import support


def wait_for(pid, seconds=60):
    """The exit status of a child; a child that hangs is killed, and that is a failure."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    pytest.fail(f"the child has not ended within {seconds} s")


def test_a_forked_child_computes(mps):
    x = paddle.ones([64, 64], dtype="float32")
    y = x + x  # the engine has its threads now
    for _ in range(5):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                values = (y * 3 + x).numpy()
                fresh = paddle.ones([300, 300]) + 1
                status = 0 if (values == 7).all() and float(fresh.sum()) == 180000 else 2
            finally:
                os._exit(status)
        assert (y - x).numpy().sum() == 64 * 64, "the parent goes on"
        assert wait_for(pid) == 0


def test_a_child_forked_while_others_compute(mps):
    stop = threading.Event()
    rounds = [0, 0]

    def busy(which):
        while not stop.is_set():
            x = paddle.ones([200, 200], place="mps")
            assert float((x + x)[0, 0]) == 2
            rounds[which] += 1

    threads = [threading.Thread(target=busy, args=(which,)) for which in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            pid = os.fork()
            if pid == 0:
                os._exit(0)  # what Paddle's own locks hold is out of reach here; that fork() returns is not
            assert wait_for(pid) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert all(count > 0 for count in rounds), "the threads have failed"


class Squares(paddle.io.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        return np.full([4], index * index, dtype="float32")


@pytest.mark.parametrize("workers", [0, 2])
def test_data_loader(mps, workers):
    loader = paddle.io.DataLoader(Squares(), batch_size=8, num_workers=workers, places=[paddle.MPSPlace(0)], return_list=True)
    total = 0.0
    for _ in range(2):
        for batch in loader:
            batch = batch[0] if isinstance(batch, (list, tuple)) else batch
            assert isinstance(batch.place, paddle.MPSPlace)
            total += float((batch + 0).sum())
    assert total == 2 * 4 * sum(i * i for i in range(32))


GLOO = """
import os, sys, paddle
import paddle.distributed as dist
dist.init_parallel_env()
paddle.set_device("mps")
rank = dist.get_rank()
gradient = paddle.full([4], rank + 1.0)
assert isinstance(gradient.place, paddle.MPSPlace)
summed = gradient.cpu()   # gloo works on the host's tensors
dist.all_reduce(summed)
total = (summed.mps() * 2).numpy().tolist()
assert total == [6.0] * 4, total
print("ok", rank)
"""


def test_gloo_on_host_copies():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    processes = []
    for rank in range(2):
        environment = {
            **os.environ,
            "PADDLE_DISTRI_BACKEND": "gloo",
            "PADDLE_TRAINER_ID": str(rank),
            "PADDLE_TRAINERS_NUM": "2",
            "PADDLE_MASTER": f"127.0.0.1:{port}",
            "PADDLE_CURRENT_ENDPOINT": f"127.0.0.1:{port + 1 + rank}",
            "PADDLE_TRAINER_ENDPOINTS": f"127.0.0.1:{port + 1},127.0.0.1:{port + 2}",
        }
        processes.append(
            subprocess.Popen([sys.executable, "-c", GLOO], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        )
    try:
        outputs = [process.communicate(timeout=180)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    for rank, output in enumerate(outputs):
        assert f"ok {rank}" in output, output


def test_collectives_on_the_device_are_refused_with_words():
    code = """
import paddle
from paddle.base import core
try:
    core.ProcessGroupCustom
    from paddle.distributed import new_group
    paddle.set_device("mps")
    store = core.TCPStore("127.0.0.1", %d, True, 1, 30)
    group = core.ProcessGroupCustom.create(store, "mps", 0, 1, 0)
    group.all_reduce(paddle.ones([2]), core.ReduceOp.SUM, True).wait()
except Exception as error:
    print("refused:", type(error).__name__, str(error)[-300:])
"""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    result = support.run_python(code % port, timeout=120)
    assert result.returncode == 0 and "refused:" in result.stdout, result.stdout + result.stderr
