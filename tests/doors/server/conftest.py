# SPDX-License-Identifier: Apache-2.0
"""Tests with clients need environment `triton` (tritonclient and a real tritonserver); elsewhere they are left out."""
import importlib.util
import shutil

import pytest

collect_ignore = [] if importlib.util.find_spec("tritonclient") else ["operation", "protocol", "soak"]
OPEN_FLAGS = ["--model-control-mode=explicit", "--load-model=*", "--exit-on-error=false", "--cache-config=local,size=1048576",
              "--trace-config=triton,file={folder}/{kind}_trace.json"]


class Pair:
    """The servers that get the same cases; each is started when it is first asked for, and again if it has ended."""

    def __init__(self, repository, folder, flags):
        self.repository, self.folder, self.flags, self.running = repository, folder, flags, {}

    def client(self, kind):
        from .protocol.sending import Client
        from .servers import launch
        client = self.running.get(kind)
        if client is None or client.server.process.poll() is not None:
            repository = self.folder / f"repository_{kind}"
            if not repository.exists():
                shutil.copytree(self.repository, repository)
            flags = [flag.format(folder=self.folder, kind=kind) for flag in self.flags]
            if kind == "anymps":
                flags.append("--allow-client-shm=true")  # the tritonserver here is older than the flag and allows it
            client = Client(launch(kind, repository, self.folder / f"{kind}.log", flags))
            self.running[kind] = client
        return client

    def close(self):
        for client in self.running.values():
            client.close()
            client.server.stop()


@pytest.fixture(scope="session")
def repository(tmp_path_factory):
    from .make_repository import make
    folder = tmp_path_factory.mktemp("repository")
    make(folder)
    return folder


@pytest.fixture(scope="session")
def small_repository(tmp_path_factory):
    """What loads without an error, and little of it."""
    from .make_repository import Repository, add_sub, ensembles, mlp
    repository = Repository(tmp_path_factory.mktemp("small"))
    add_sub(repository, dynamic_batching={})
    mlp(repository)
    ensembles(repository)
    return repository.folder


@pytest.fixture(scope="session")
def pairs(repository, small_repository, tmp_path_factory):
    """open: all models, also those that fail, under explicit control; whole: all is well and nothing changes, no flags."""
    made = {"open": Pair(repository, tmp_path_factory.mktemp("open"), OPEN_FLAGS), "whole": Pair(small_repository, tmp_path_factory.mktemp("whole"), [])}
    yield made
    for pair in made.values():
        pair.close()
