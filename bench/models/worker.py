# SPDX-License-Identifier: Apache-2.0
"""The driver's end of worker_protocol.md: starts a runtime's process, asks it, and reads its memory and CPU time."""
import json
import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RUNTIMES = ["anymps", "onnxruntime", "openvino"]
BUILDS = {"anymps": ROOT / "build"}  # `--before DIR` adds another build of AnyMPS as the runtime "before"


class WorkerError(RuntimeError):
    pass


def command_of(runtime):
    if runtime in BUILDS:
        return [BUILDS[runtime] / "bin" / "anymps", "bench", "--worker"]
    venvs = Path(os.environ.get("ANYMPS_VENV_DIR", ROOT / ".venvs"))
    return [venvs / "peers" / "bin" / "python", HERE / "peer_worker.py", runtime]


class Worker:
    """One runtime in one process; `ask` sends a line and returns the answer."""

    def __init__(self, runtime, log, command=None):
        self.runtime = runtime
        self.log = open(log, "a", encoding="utf-8")
        self.process = subprocess.Popen(command or command_of(runtime), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, text=True, bufsize=1)
        self.version = self.ask("version")["version"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def ask(self, line):
        try:
            self.process.stdin.write(line + "\n")
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise WorkerError(f"{self.runtime} ended (status {self.process.wait()}) at '{line}'; see {self.log.name}")
        try:
            fields = json.loads(answer)
        except json.JSONDecodeError:
            raise WorkerError(f"{self.runtime} answered '{line}' with something else than JSON: {answer[:200]}") from None
        if "error" in fields:
            raise WorkerError(f"{self.runtime} failed at '{line}': {fields['error']}")
        return fields

    def prepare(self, model, threads, inputs):
        """Hands over the inputs, loads the model; returns load_ms."""
        for name, path in inputs.items():
            self.ask(f"input {name} {path}")
        return self.ask(f"load {model} {threads}")["load_ms"]

    def run(self, count):
        return self.ask(f"run {count}")["ms"]

    def memory_mb(self, field):
        """VmRSS (now) or VmHWM (peak) of the process, in MB of 2**20 bytes."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
        raise WorkerError(f"no {field} for {self.runtime}")

    def cpu_seconds(self):
        stat = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        try:
            self.process.stdin.write("quit\n")
            self.process.stdin.close()
            self.process.wait(timeout=10)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()
