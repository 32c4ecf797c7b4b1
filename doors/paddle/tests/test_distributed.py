# SPDX-License-Identifier: Apache-2.0
"""Several processes, whose tensors on the device meet by gloo: collectives, and a DataParallel."""

import os
import socket
import subprocess
import sys
from pathlib import Path

WORKER = Path(__file__).with_name("distributed_worker.py")


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def test_collectives_and_training():
    master, *ports = free_ports(3)
    endpoints = [f"127.0.0.1:{port}" for port in ports]
    shared = {
        **os.environ,
        "PADDLE_DISTRI_BACKEND": "gloo",
        "PADDLE_MASTER": f"127.0.0.1:{master}",
        "PADDLE_TRAINERS_NUM": "2",
        "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints),
        "FLAGS_enable_api_kernel_fallback": "0",
    }
    workers = []
    for rank, endpoint in enumerate(endpoints):
        env = {**shared, "PADDLE_TRAINER_ID": str(rank), "PADDLE_RANK_IN_NODE": str(rank), "PADDLE_CURRENT_ENDPOINT": endpoint}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        workers.append(subprocess.Popen([sys.executable, str(WORKER)], env=env, **pipes))
    try:
        outputs = [worker.communicate(timeout=120)[0] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    for worker, output in zip(workers, outputs, strict=True):
        assert worker.returncode == 0, output
        assert output.rstrip().endswith("done"), output
