# SPDX-License-Identifier: Apache-2.0
"""The wheel: it holds all that it needs. Building one compiles the engine again, so that runs under
`scripts/test --full` (ANYMPS_FULL_TESTS=1) only."""
import ast
import os
import subprocess
import venv
from pathlib import Path

import numpy as np
import pytest

import anymps

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = Path(anymps.__file__).parent
ENGINE = Path(os.environ.get("ANYMPS_VENV_DIR", ROOT / ".venvs")) / "engine" / "bin" / "python"
PROGRAM = """
import anymps
graph = anymps.Graph()
x = graph.input("x", "f32", ("N", 4))
graph.outputs(anymps.ops.softmax(x @ [[1.0], [2], [3], [4]], axis=0))
print(anymps.compile(graph)([[1, 0, 0, 0], [1, 0, 0, 0]]).tolist(), anymps.__file__)
"""


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=3000, **options)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_stubs_name_every_op_with_the_parameters_it_has():
    tree = ast.parse((PACKAGE / "ops.pyi").read_text(encoding="utf-8"))
    stubs = {node.name: node.args for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert set(stubs) == set(anymps.ops.__all__)
    for name, args in stubs.items():
        names = [a.arg for a in (*args.args, *([args.vararg] if args.vararg else []), *args.kwonlyargs)]
        assert sorted(names) == sorted(getattr(anymps.ops, name).__signature__.parameters), name
    assert "class Tensor" in (PACKAGE / "_core.pyi").read_text(encoding="utf-8")
    assert (PACKAGE / "py.typed").exists()


@pytest.mark.skipif(os.environ.get("ANYMPS_FULL_TESTS") != "1", reason="builds the engine again; scripts/test --full")
def test_a_wheel_runs_in_an_environment_of_its_own(tmp_path):
    run(ENGINE, "-m", "pip", "wheel", ROOT, "--no-build-isolation", "--no-deps", "-w", tmp_path,
        "-C", f"build-dir={ROOT / 'build-wheel'}")
    (wheel,) = tmp_path.glob("anymps-*.whl")
    venv.create(tmp_path / "fresh", with_pip=True)
    python = tmp_path / "fresh" / "bin" / "python"
    run(python, "-m", "pip", "install", "--no-deps", wheel)
    clean = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "PYTHONPATH", "ANYMPS_VENV_DIR")}
    packages = Path(np.__file__).parents[1]
    out = run(python, "-c", PROGRAM, cwd=tmp_path, env=clean | {"PYTHONPATH": str(packages)})
    assert out.startswith("[[0.5], [0.5]]") and str(tmp_path) in out
