# SPDX-License-Identifier: Apache-2.0
"""The backend in a real tritonserver, from environment `triton`; elsewhere these tests are left out."""
import importlib.util
import shutil
import subprocess

import pytest

HERE = [] if importlib.util.find_spec("tritonclient") else ["test_backend.py", "test_bounds.py", "test_build.py", "test_guest.py", "test_infer.py", "test_load.py", "test_scheduling.py"]
collect_ignore = HERE


@pytest.fixture(scope="session")
def models():
    """The functions that make ONNX models and configs."""
    from tests.doors.server import make_repository
    return make_repository


@pytest.fixture
def repository(tmp_path, models):
    return models.Repository(tmp_path / "models")


@pytest.fixture
def convert():
    """Makes an .mps file of an ONNX file with the command line."""
    from tests.doors.server.servers import BUILD

    def run(source, target):
        subprocess.run([BUILD / "bin" / "anymps", "convert", source, "-o", target], check=True, capture_output=True)
    return run


@pytest.fixture
def triton(tmp_path):
    """Starts a tritonserver with a repository; a server that must not start gives its log instead."""
    from tests.doors.server.servers import launch
    running = []

    def start(repository, *flags, environment=None, ready=True, **more):
        log = tmp_path / f"triton_{len(running)}.log"
        wait = "/v2/health/ready" if ready else "/v2/health/live"
        server = launch("triton", getattr(repository, "folder", repository), log,
                        [*flags, *([] if ready else ["--exit-on-error=false"])], environment, wait, **more)
        running.append(server)
        return server
    yield start
    for server in running:
        server.stop()
    shutil.rmtree(tmp_path, ignore_errors=True)
