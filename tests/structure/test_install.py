# SPDX-License-Identifier: Apache-2.0
"""`cmake --install` and find_package(anymps): the examples build and run against the installed library alone."""
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_examples_build_against_the_installed_library(tmp_path):
    prefix = tmp_path / "prefix"
    run("cmake", "--install", ROOT / "build", "--prefix", prefix)
    clean = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    assert "anymps" in run(prefix / "bin" / "anymps", "--version", env=clean)
    assert "self-test ok: f32, " in run(prefix / "bin" / "anymps", "doctor", env=clean)
    build = tmp_path / "examples"
    run("cmake", "-S", ROOT / "examples", "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Debug")
    run("cmake", "--build", build)
    assert "100% tests passed" in run("ctest", "--test-dir", build, "--output-on-failure", env=clean)
