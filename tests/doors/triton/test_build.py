# SPDX-License-Identifier: Apache-2.0
"""backends/metal_mps builds with the commands of its description, as they are written, and what comes out runs in a tritonserver
that has nothing but what its image has."""
import os
import re
import shutil
import subprocess

import numpy as np
import pytest

from tests.doors.server.make_repository import Repository, mlp, mlp_answer
from tests.doors.server.rooted import possible, rooted
from tests.doors.server.servers import BUILD, ROOT, VENVS, launch, site_packages, triton_folder
from .calls import floats, infer

DESCRIPTION = ["cd backends/metal_mps", "mkdir build && cd build", "cmake -DCMAKE_INSTALL_PREFIX:PATH=`pwd`/install ..", "make install"]
FULL = bool(os.environ.get("ANYMPS_FULL_TESTS"))


def guide():
    block = re.search(r"```\n(\$ cd backends/metal_mps\n.*?)```", (ROOT / "docs" / "guides" / "triton.md").read_text(), re.S)[1]
    return [line.removeprefix("$ ") for line in block.splitlines()]


def checkout(folder, engine):
    """The repository in another place: links to its files, but for the folder that is built in."""
    folder.mkdir()
    for path in ROOT.iterdir():
        if not path.name.startswith((".", "build")) and path.name != "backends":
            (folder / path.name).symlink_to(path)
    (folder / ".venvs").symlink_to(VENVS)
    if engine:
        (folder / "build").symlink_to(BUILD)
    shutil.copytree(ROOT / "backends", folder / "backends", ignore=shutil.ignore_patterns("build"))
    return folder


def build(folder, **environment):
    clean = {k: v for k, v in os.environ.items() if k != "ANYMPS_VENV_DIR"}
    return subprocess.run(["bash", "-e", "-c", "\n".join(guide())], cwd=folder, env={**clean, **environment}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)


@pytest.fixture(scope="module", params=["the engine of build/", pytest.param("from nothing", marks=pytest.mark.skipif(not FULL, reason="minutes"))])
def installed(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("build")
    done = build(checkout(folder / "tree", request.param != "from nothing"), MAKEFLAGS="-j2")
    assert done.returncode == 0, done.stdout[-5000:]
    shutil.move(folder / "tree" / "backends" / "metal_mps" / "build" / "install" / "backends", folder / "backends")
    shutil.rmtree(folder / "tree")
    return folder / "backends"


def test_the_guide_has_the_commands_of_the_description():
    assert guide() == DESCRIPTION


def test_what_is_missing_is_said(tmp_path):
    """All that this machine lacks, by name, and what brings it, whatever CMake stumbles over first."""
    tree = checkout(tmp_path / "tree", engine=True)
    (tree / "requirements").unlink()
    (tree / "requirements").mkdir()
    (tree / "requirements" / "debian.txt").write_text("# packages\ncmake\nno-such-thing\nnor-this\n")
    done = subprocess.run(["cmake", "-S", tree / "backends" / "metal_mps", "-B", tmp_path / "b"], capture_output=True, text=True)
    words = " ".join(done.stderr.split())
    assert "These Debian packages are missing: no-such-thing nor-this" in words and "scripts/env engine" in words, done.stderr


def test_it_brings_its_libraries(installed):
    folder = installed / "metal_mps"
    needed = subprocess.run(["ldd", folder / "libtriton_metal_mps.so"], check=True, capture_output=True, text=True).stdout
    assert f"{folder}/libanymps.so" in needed and f"{folder}/libanymps_gomp.so.1" in needed and "not found" not in needed
    assert "libgomp" not in needed
    assert str(VENVS.resolve()) not in needed and str(BUILD.resolve() / "lib") not in needed


@pytest.mark.parametrize("engine", ["of build/", "installed"])
def test_the_engine_is_laid_beside(tmp_path, engine):
    """Under the name that programs ask for, and with libraries that find each other, wherever it comes from."""
    tree = checkout(tmp_path / "tree", engine=True)
    (tree / "door").mkdir()
    (tree / "door" / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(door LANGUAGES C CXX)\n"
                                                  "include(../cmake/standalone_door.cmake)\nanymps_install_engine(there)\n")
    if engine == "installed":
        subprocess.run(["cmake", "--install", BUILD, "--prefix", tmp_path / "prefix"], check=True, capture_output=True)
    for command in (["-S", tree / "door", "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={tmp_path / 'prefix'}"],
                    ["--install", tmp_path / "b", "--prefix", tmp_path / "out"]):
        done = subprocess.run(["cmake", *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "AnyMPS: installed" in done.stdout or engine != "installed" or "-S" not in command
    shutil.rmtree(tmp_path / "prefix", ignore_errors=True)
    folder = tmp_path / "out" / "there"
    needed = subprocess.run(["ldd", folder / "libanymps.so.0"], check=True, capture_output=True, text=True).stdout
    assert "not found" not in needed and "libgomp" not in needed and str(VENVS.resolve()) not in needed and str(BUILD.resolve() / "lib") not in needed


def bare_root(folder):
    """What tritonserver itself loads from its system."""
    program = triton_folder() / "bin" / "tritonserver"
    paths = re.findall(r"(?:=> |^\s+)(/(?:usr/)?lib(?:64)?/\S+)", subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout, re.M)
    for path in paths:
        target = folder / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    (folder / "tmp").mkdir()
    return folder


@pytest.mark.skipif(not possible(), reason="no mount namespaces here")
def test_it_runs_where_nothing_else_is(installed, tmp_path):
    repository = Repository(tmp_path / "models")
    mlp(repository, "m")
    root = bare_root(tmp_path / "root")
    binds = {site_packages("triton"): "/wheel", installed: "/backends", repository.folder: "/models"}
    server = launch("triton", "/models", tmp_path / "log", wait="/v2/health/ready",
                    program=[*rooted(root, binds), "/wheel/pytriton/tritonserver/bin/tritonserver", "--backend-directory=/backends"])
    try:
        x = floats(2, 16)
        np.testing.assert_allclose(infer(server, "m", x=x)["y"], mlp_answer(x), rtol=1e-4, atol=1e-6)
    finally:
        server.stop()
