# SPDX-License-Identifier: Apache-2.0
"""The engine in one process with PyTorch and with PaddlePaddle, as PyPI has them: whichever comes first, both compute, they
agree, and the engine's results are the same bits as without the other. Each framework has an environment of its own
(scripts/env torch paddle); without it its tests are skipped."""
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ANYMPS_BUILD_DIR", ROOT / "build"))
VENVS = Path(os.environ.get("ANYMPS_VENV_DIR", ROOT / ".venvs"))
# Torch calls AMX wherever CPUID's leaf 7 says that it is there; some hypervisors say so and hide the rest of it, and the
# process dies.
SETTINGS = {"torch": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_FP16"}, "paddle": {}}
TABLE = """
import ctypes, sys
__import__(sys.argv[1])
sys.exit(ctypes.CDLL(sys.argv[2]).check_function_table(sys.argv[3].encode(), int(sys.argv[4])))
"""


def run(framework, *arguments, **more):
    python = VENVS / framework / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no environment with {framework} (scripts/env {framework})")
    env = {**os.environ, **SETTINGS[framework], **more, "PYTHONPATH": str(BUILD / "python")}
    done = subprocess.run([python, *arguments], capture_output=True, text=True, timeout=600, env=env, cwd=ROOT)
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.mark.parametrize("framework", SETTINGS)
def test_either_order(framework):
    program = ROOT / "tests" / "embedding" / "beside.py"
    alone = run(framework, program, "anymps").split()[-1]
    assert run(framework, program, framework, "anymps").split()[-1] == alone
    assert run(framework, program, "anymps", framework).split()[-1] == alone


def test_beside_a_torch_that_is_visible_to_all():
    """Its LAPACK and BLAS (MKL's) are then found before any other library's."""
    program = ROOT / "tests" / "embedding" / "beside.py"
    assert run("torch", program, "torch", "anymps", TORCH_USE_RTLD_GLOBAL="1").split()[-1] == run("torch", program, "anymps").split()[-1]


@pytest.mark.parametrize("framework", SETTINGS)
def test_threads_are_each_others_own(framework):
    """The engine has as many as it may have, whoever calls it, and leaves those of the framework as they are set."""
    run(framework, ROOT / "tests" / "embedding" / "threads.py", framework, ANYMPS_NUM_THREADS="3", OMP_NUM_THREADS="2")


@pytest.mark.parametrize("deep", ["0", "1"])
@pytest.mark.parametrize("framework", SETTINGS)
def test_through_the_function_table(framework, deep):
    run(framework, "-c", TABLE, framework, BUILD / "lib" / "libfunction_table.so", BUILD / "lib" / "libanymps.so", deep)


def test_workers_of_a_data_loader_run_a_model():
    """The workers are forked."""
    run("torch", ROOT / "tests" / "embedding" / "loader.py", ANYMPS_NUM_THREADS="4")
