# SPDX-License-Identifier: Apache-2.0
"""Minutes of mixed load on a server, and whether it bears it.

    python -m tests.doors.server.soak [--minutes 10 | --seconds 20] [--server anymps|triton]

Clients in processes of their own send requests over HTTP and gRPC and check every number; others leave in the middle of a
body or an answer, send what is malformed or far too large; some are killed; and all the while a model that is in use is
replaced. At the end there must be no wrong answer, no request without an answer, statistics that add up to what was sent,
memory that does not grow, and a last request that is still answered when the server is told to end.
"""
import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from .. import make_repository
from ..protocol.cases.scheduling import slow
from ..protocol.sending import Client
from ..servers import KINDS, ROOT, start
from .jobs import CHANGING, COUNTED, SEEDS

FLAGS = ["--model-control-mode=explicit", "--load-model=*", "--log-info=false"]
GROWTH = 0.05  # of the memory, over the last half of the run
GROWTH_MB = 24.0


def prepare(folder):
    repository = make_repository.make(folder, with_broken=False)
    make_repository.add_sub(repository, COUNTED, "FP32", dynamic_batching={})
    make_repository.mlp(repository, CHANGING, SEEDS[0])
    # The queue of the slow model is not part of this.
    make_repository.slow_model(repository, "slow", 20, dynamic_batching={})
    return repository


class Driver:
    def __init__(self, server, repository, seconds, clients):
        self.server, self.repository, self.seconds, self.clients = server, repository, seconds, clients
        self.until = time.monotonic() + seconds
        self.problems, self.memory, self.reloads, self.killed = [], [], 0, 0

    def spawn(self, role, seed, seconds):
        command = [sys.executable, "-m", "tests.doors.server.soak.client", role, "--kind", self.server.kind, "--http", str(self.server.http_port), "--grpc", self.server.grpc,
                   "--seconds", str(seconds), "--seed", str(seed)]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})

    def guarded(self, work):
        def run():
            try:
                work()
            except Exception as error:  # a thread that ends early would look like success
                self.problems.append(f"{work.__name__}: {error!r}")
        return threading.Thread(target=run)

    def replace_model(self):
        """The model gets the weights of one seed, then of the other, under load."""
        client, number = Client(self.server), 0
        with tempfile.TemporaryDirectory() as folder:
            for seed in SEEDS:
                make_repository.mlp(make_repository.Repository(folder), str(seed), seed)
            while time.monotonic() < self.until - 1:
                number += 1
                target = self.repository.folder / CHANGING / "1" / "model.onnx"
                shutil.copy(Path(folder, str(SEEDS[number % 2]), "1", "model.onnx"), target.with_suffix(".new"))
                target.with_suffix(".new").replace(target)
                answer = client.http(load_step())
                if answer["status"] != 200:
                    self.problems.append(f"reload: {answer}")
                self.reloads += 1
                time.sleep(0.3)
        client.close()

    def kill_clients(self):
        """Clients like the others, ended by kill -9 at any moment."""
        choose = random.Random(9)
        while time.monotonic() < self.until - 2:
            victim = self.spawn(choose.choice(["http", "grpc"]), choose.randrange(1 << 20), 60)
            time.sleep(choose.uniform(1.0, 3.0))
            victim.kill()
            victim.communicate()
            self.killed += 1

    def watch_memory(self):
        while time.monotonic() < self.until:
            self.memory.append(self.server.memory_mb())
            time.sleep(0.25)

    def run(self):
        processes = [self.spawn(role, seed, self.seconds - 2) for seed, role in enumerate(["http", "grpc"] * self.clients + ["rude"])]
        threads = [self.guarded(w) for w in (self.replace_model, self.kill_clients, self.watch_memory)]
        for thread in threads:
            thread.start()
        reports = []
        for process in processes:
            out, err = process.communicate(timeout=self.seconds + 120)
            if process.returncode != 0:
                self.problems.append(f"a client ended with {process.returncode}: {err[-1000:]}")
            else:
                reports.append(json.loads(out))
        for thread in threads:
            thread.join()
        return reports


def load_step():
    from ..protocol.cases.repository import load
    return load(CHANGING)


def check(driver, reports):
    """Everything that is not as it must be, in words."""
    problems = list(driver.problems)
    for report in reports:
        problems += [f"{report['role']}: {w}" for w in report["wrong"]]
        hidden = report["counts"].get("problems", 0) - len(report["wrong"])
        problems += [f"{report['role']}: {hidden} more like these"] * (hidden > 0)
        if report["role"] != "rude" and report["counts"].get("sent") != report["counts"].get("right"):
            problems.append(f"{report['role']}: {report['counts'].get('sent')} sent, {report['counts'].get('right')} answered right")
    return problems + check_memory(driver.memory) + check_statistics(driver.server, reports)


def check_memory(memory):
    """After the first half, which is warm-up, the end must not be above the beginning."""
    half = memory[len(memory) // 2:]
    if len(half) < 8:
        return ["the run was too short to say anything of the memory"]
    third = len(half) // 3
    before, after = statistics.median(half[:third]), statistics.median(half[-third:])
    if after - before > max(GROWTH * before, GROWTH_MB):
        return [f"memory grew from {before:.1f} MB to {after:.1f} MB in the last half of the run"]
    return []


def check_statistics(server, reports):
    """A killed client may have had one answer that it could not count; the others are all there."""
    status, body = server.get(f"/v2/models/{COUNTED}/stats")
    stats = json.loads(body)["model_stats"][0]
    success = stats["inference_stats"]["success"]["count"]
    right, rows = (sum(r["counts"].get(key, 0) for r in reports) for key in ("counted", "counted_rows"))
    problems = []
    if success < right:
        problems.append(f"statistics of {COUNTED}: {success} requests, but {right} were answered")
    if stats["inference_count"] < rows:
        problems.append(f"statistics of {COUNTED}: {stats['inference_count']} rows, but {rows} were answered")
    if not 0 < stats["execution_count"] <= success:
        problems.append(f"statistics of {COUNTED}: {stats['execution_count']} executions for {success} requests")
    queue = stats["inference_stats"]["queue"]["count"]
    if queue != success:
        problems.append(f"statistics of {COUNTED}: {queue} left the queue, {success} were answered")
    batches = sum(b["batch_size"] * b["compute_infer"]["count"] for b in stats["batch_stats"])
    if batches != stats["inference_count"]:
        problems.append(f"statistics of {COUNTED}: batches have {batches} rows together, the model {stats['inference_count']}")
    return problems


def check_end(server):
    """Told to end, the server answers what it has begun."""
    client, answers = Client(server), []
    thread = threading.Thread(target=lambda: answers.append(client.answer(slow())))
    thread.start()
    time.sleep(0.02)
    code = server.stop()
    thread.join()
    client.close()
    problems = [] if code == 0 else [f"the server ended with {code}"]
    return problems + ([] if answers and answers[0]["status"] == 200 else [f"the last request got {answers}"])


def summary(driver, reports):
    total = {}
    for report in reports:
        for key, value in report["counts"].items():
            total[key] = total.get(key, 0) + value
    memory = driver.memory
    return (f"{total.get('sent', 0)} requests, {total.get('right', 0)} right answers, {driver.reloads} reloads, {driver.killed} clients killed; "
            + ", ".join(f"{v} {k}" for k, v in sorted(total.items()) if k not in ("sent", "right", "counted", "counted_rows", "problems"))
            + f"; memory {memory[len(memory) // 2]:.0f} MB half-way, {memory[-1]:.0f} MB at the end, {max(memory):.0f} MB at most")


def soak(kind, seconds, clients, log):
    """Returns (summary, problems)."""
    with tempfile.TemporaryDirectory(prefix="anymps-soak-") as folder:
        repository = prepare(folder)
        with start(kind, folder, log, FLAGS, wait="/v2/health/ready") as server:
            driver = Driver(server, repository, seconds, clients)
            reports = driver.run()
            if server.process.poll() is not None:
                return "", [f"the server ended with {server.process.returncode}; its log ends\n{server.tail()}", *driver.problems]
            problems = check(driver, reports)
            return summary(driver, reports), problems + check_end(server)


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.doors.server.soak", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seconds", type=float, help="instead of --minutes")
    parser.add_argument("--server", choices=KINDS, default="anymps")
    parser.add_argument("--clients", type=int, default=2, help="well-behaved clients of each protocol (default 2)")
    args = parser.parse_args()
    seconds = args.seconds or args.minutes * 60
    text, problems = soak(args.server, seconds, args.clients, ROOT / "build" / "logs" / f"soak-{args.server}.log")
    print(text)
    for problem in problems:
        print(f"problem: {problem}")
    print(f"{args.server}: {'bore it' if not problems else f'{len(problems)} problems'} in {seconds:.0f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
