# SPDX-License-Identifier: Apache-2.0
"""Starts the servers that the tests compare: the real tritonserver with our backend, and our own server.

A third kind, `python`, is tritonserver with its own Python backend, the peer of scripts/bench serving.

All get the same flags and the same model repository, listen on free ports of the loopback interface, and write
their log to a file. `with start("anymps", repository) as server:` waits until the server is live.
"""
import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("ANYMPS_BUILD_DIR", ROOT / "build"))
BUILDS = {"anymps": BUILD}  # our server; a benchmark adds another build of it
VENVS = Path(os.environ.get("ANYMPS_VENV_DIR", ROOT / ".venvs"))
KINDS = ("triton", "anymps")
START_SECONDS = 60


class ServerError(Exception):
    pass


def site_packages(environment):
    return VENVS / environment / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def triton_folder():
    return site_packages("triton") / "pytriton" / "tritonserver"


def backend_library():
    found = [p for p in (BUILD / "lib" / "libtriton_metal_mps.so", BUILD / "backends" / "metal_mps" / "libtriton_metal_mps.so") if p.exists()]
    if not found:
        raise ServerError(f"there is no libtriton_metal_mps.so in {BUILD}: build the project first")
    return found[0]


def backend_directory():
    """A folder as Triton wants it: NAME/libtriton_NAME.so. Our backend also answers for bare ONNX files."""
    folder = BUILD / "serving" / "backends"
    for name in ("metal_mps", "onnxruntime"):
        link = folder / name / f"libtriton_{name}.so"
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink() or link.resolve() != backend_library().resolve():
            temporary = link.with_suffix(f".{os.getpid()}")
            temporary.symlink_to(backend_library())
            temporary.replace(link)
    return folder


def python_backend_directory():
    """The wheel keeps the Python backend's stub apart, one for each version of Python."""
    folder = BUILD / "serving" / "python_backends" / "python"
    folder.mkdir(parents=True, exist_ok=True)
    for part in (*(triton_folder() / "backends" / "python").iterdir(), triton_folder() / "python_backend_stubs" / "3.11" / "triton_python_backend_stub"):
        link = folder / part.name
        link.unlink(missing_ok=True)
        link.symlink_to(part)
    return folder.parent


def command(kind):
    if kind in BUILDS:
        return [BUILDS[kind] / "bin" / "anymps-server"]
    triton = triton_folder()
    backends = python_backend_directory() if kind == "python" else backend_directory()
    return [triton / "bin" / "tritonserver", f"--backend-directory={backends}", f"--cache-directory={triton / 'caches'}"]


def variables(kind):
    """What a kind of server needs in its environment."""
    if kind != "python":
        return {}
    return {"LD_LIBRARY_PATH": str(site_packages("triton") / "nvidia_pytriton.libs"), "PEER_PACKAGES": str(site_packages("triton-python"))}


def free_ports(count):
    """Ports that nobody has at the moment; they are taken together so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


@dataclass
class Server:
    kind: str
    process: subprocess.Popen
    http_port: int
    grpc_port: int
    metrics_port: int
    log: Path

    @property
    def http(self):
        return f"127.0.0.1:{self.http_port}"

    @property
    def grpc(self):
        return f"127.0.0.1:{self.grpc_port}"

    def get(self, path, port=None):
        connection = http.client.HTTPConnection("127.0.0.1", port or self.http_port, timeout=10)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def wait(self, path, seconds=START_SECONDS):
        """Until the path answers 200; raises with the end of the log if it never does."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise ServerError(f"{self.kind} ended with {self.process.returncode}; its log ends\n{self.tail()}")
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.get(path)[0] == 200:
                    return
            time.sleep(0.05)
        raise ServerError(f"{self.kind}: {path} is not ready after {seconds} s; its log ends\n{self.tail()}")

    def tail(self, lines=30):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def processes(self):
        """Its process and those that it started."""
        parents = {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        found = [self.process.pid]
        for pid in found:
            found += [child for child, parent in parents.items() if parent == pid]
        return found

    def memory_mb(self, field="VmRSS"):
        """Of all its processes together: VmRSS now, VmHWM at its highest."""
        total = 0
        for pid in self.processes():
            with contextlib.suppress(FileNotFoundError):
                for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                    if line.startswith(f"{field}:"):
                        total += int(line.split()[1])
        if not total:
            raise ServerError(f"{self.kind} is gone")
        return total / 1024

    def stop(self, seconds=40):
        """Ends it as Kubernetes does; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode


def launch(kind, repository, log, flags=(), environment=None, wait="/v2/health/live", program=None):
    """`program`: the words that start it, where they are not those of this build."""
    ports = free_ports(3)
    flags = [f"--model-repository={repository}", *(f"--{name}-address=127.0.0.1" for name in ("http", "grpc", "metrics")),
             *(f"--{name}-port={port}" for name, port in zip(("http", "grpc", "metrics"), ports)), *flags]
    return spawn(kind, [*(program or command(kind)), *flags], ports, log, {**variables(kind), **(environment or {})}, wait)


def spawn(kind, words, ports, log, environment=None, wait="/v2/health/live"):
    """Starts it with these words alone, which must name the ports."""
    log = Path(log)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as out:
        process = subprocess.Popen([*map(str, words)], stdout=out, stderr=subprocess.STDOUT,
                                   env={**os.environ, **(environment or {})}, start_new_session=True)
    server = Server(kind, process, *ports, log)
    try:
        if wait:
            server.wait(wait)
    except ServerError:
        server.stop()
        raise
    return server


@contextlib.contextmanager
def start(kind, repository, log, flags=(), environment=None, wait="/v2/health/live"):
    server = launch(kind, repository, log, flags, environment, wait)
    try:
        yield server
    finally:
        server.stop()


def certificate(folder):
    """A certificate for localhost that signs itself, and its key, for TLS."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj",
                    "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], cwd=folder, check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"
