# SPDX-License-Identifier: Apache-2.0
"""The build as ExecuTorch's MPS example describes it, and `anymps export-pte` finding its environment."""
import os
import subprocess

import pytest
from door import BUNDLES, EXPORTER_PYTHON, ROOT, has_package

ANYMPS = ROOT / "build" / "bin" / "anymps"
DOOR = ROOT / "doors" / "executorch"


@pytest.mark.skipif(not (ROOT / "build" / "lib" / "libanymps.so").exists(), reason="the engine is not built")
def test_the_described_commands_build_a_runner(tmp_path):
    """With the long dash that the original text has before `trace`; the engine is that of build/."""
    options = ["-DEXECUTORCH_BUILD_MPS=1", "-DEXECUTORCH_BUILD_SDK=ON", "-DBUCK2=/tmp/buck2", "—trace"]
    made = subprocess.run(["cmake", *options, DOOR], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert made.returncode == 0, made.stderr
    assert "not used by the project" not in made.stderr and f"AnyMPS: {ROOT}/build" in made.stdout
    built = subprocess.run(["cmake", "--build", tmp_path, "-j2", "--target", "mps_executor_runner"], capture_output=True, text=True,
                           timeout=900)
    assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
    runner = tmp_path / "examples" / "apple" / "mps" / "mps_executor_runner"
    done = subprocess.run([runner, "--model_path", BUNDLES / "kinds" / "MPSConv2D_f32.pte", "--bundled_program"], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0 and "Model verified successfully." in done.stdout, done.stderr


@pytest.mark.skipif(os.environ.get("ANYMPS_FULL_TESTS") != "1", reason="builds the engine again; scripts/test --full")
def test_the_engine_is_built_along_where_there_is_none(tmp_path):
    """A source tree without build/: the commands of the description from its doors/executorch."""
    door = tmp_path / "doors" / "executorch"
    door.mkdir(parents=True)
    for folder, away in ((ROOT, {"doors"}), (ROOT / "doors", {"executorch"}), (DOOR, set())):
        for entry in folder.iterdir():
            if entry.name not in away and not entry.name.startswith((".", "build", "cmake-out")):
                (tmp_path / folder.relative_to(ROOT) / entry.name).symlink_to(entry)
    venvs = os.environ.get("ANYMPS_VENV_DIR", str(ROOT / ".venvs"))
    commands = """mkdir cmake-out && cd cmake-out
        cmake -DEXECUTORCH_BUILD_MPS=1 -DEXECUTORCH_BUILD_SDK=ON -DBUCK2=/tmp/buck2 .. && cd .. && cmake --build cmake-out -j2"""
    built = subprocess.run(["bash", "-ec", commands], cwd=door, capture_output=True, text=True, timeout=7200,
                           env={**os.environ, "ANYMPS_VENV_DIR": venvs, "PWD": str(door)})
    assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
    assert "AnyMPS: built here" in built.stdout
    done = subprocess.run(["cmake-out/examples/apple/mps/mps_executor_runner", "--model_path", BUNDLES / "kinds" / "MPSConv2D_f32.pte",
                           "--bundled_program"], cwd=door, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "Model verified successfully." in done.stdout, done.stderr


def test_nothing_is_built_without_the_option(tmp_path):
    made = subprocess.run(["cmake", "-DEXECUTORCH_BUILD_MPS=OFF", DOOR], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert made.returncode == 0 and "-DEXECUTORCH_BUILD_MPS=1 builds the runner" in made.stdout, made.stderr


@pytest.mark.skipif(not ANYMPS.exists(), reason="build/bin/anymps is not built")
def test_export_pte_says_how_to_install_its_environment(tmp_path):
    done = subprocess.run([ANYMPS, "export-pte", "my_module:factory"], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "ANYMPS_VENV_DIR": str(tmp_path)})
    assert done.returncode == 1 and "`scripts/env executorch` installs it" in done.stderr


@pytest.mark.skipif(not ANYMPS.exists() or not has_package(EXPORTER_PYTHON), reason="scripts/env executorch makes the environment")
def test_export_pte_hands_its_arguments_on():
    done = subprocess.run([ANYMPS, "export-pte", "--help"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "--fp32" in done.stdout, done.stderr
