# SPDX-License-Identifier: Apache-2.0
"""Modules of dynamic shape, traced with an example that is smaller than the largest: every shape up to it runs, with the
engine's own importer and with the delegate in the stock runtime of this environment."""

import json
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("executorch.backends.apple.mps", reason="needs .venvs/executorch: scripts/env executorch")

import torch  # noqa: E402
from door import BACKEND, ROOT, RUNNER  # noqa: E402

from anymps_executorch.bundles.kinds import Of, floats  # noqa: E402
from anymps_executorch.checking import differences  # noqa: E402
from anymps_executorch.lowering import Method, lower  # noqa: E402

N = torch.nn
IMAGE = (3, 6, 6)
CASES = {
    "layer norm": (N.LayerNorm(8), (8,)),
    "batch norm": (N.BatchNorm1d(8), (8,)),
    "convolution, batch norm and pooling": (N.Sequential(N.Conv2d(3, 4, 3), N.BatchNorm2d(4), N.MaxPool2d(2)), IMAGE),
    "group norm": (N.GroupNorm(2, 4), (4, 6)),
    "chunk": (Of(lambda x: x.chunk(2, 1)), (8,)),
    "split": (Of(lambda x: tuple(part.softmax(-1) for part in x.split([3, 5], 1))), (8,)),
    "pooling with indices": (Of(lambda x: N.functional.max_pool2d(x, 2, return_indices=True)), IMAGE),
    "interpolation": (Of(lambda x: N.functional.interpolate(x, scale_factor=2)), IMAGE),
}
EXAMPLE, SIZES = 3, (1, 3, 6, 8)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """{name: (bundle, plain program, inputs, expected outputs)}"""
    folder, all_made = tmp_path_factory.mktemp("dynamic"), {}
    for name, (module, shape) in CASES.items():
        batch = torch.export.Dim("batch", min=1, max=max(SIZES))
        shapes = (({0: batch},),) if isinstance(module, Of) else ({0: batch},)
        lowered = lower(Method(module, (floats(EXAMPLE, *shape),), shapes), fp16=False)
        inputs = [(floats(size, *shape),) for size in SIZES]
        stem = folder / name.replace(" ", "_").replace(",", "")
        stem.with_suffix(".bundle").write_bytes(lowered.bundle({"forward": inputs}))
        stem.with_suffix(".pte").write_bytes(lowered.buffer())
        all_made[name] = (stem, [(given, lowered.outcome("forward", given)) for given in inputs])
    return all_made


@pytest.mark.parametrize("shapes", [(({0: 1},),), {"inputs": ({0: 1},)}], ids=["tuple", "dict"])
def test_an_example_of_extent_one_stays_open(shapes):
    """torch.export takes a 1 for a constant, whatever is said of the axis."""
    batch = torch.export.Dim("batch", min=1, max=8)
    shapes = torch.utils._pytree.tree_map(lambda _: batch, shapes)
    lowered = lower(Method(Of(lambda x: torch.relu(x) * 2), (floats(1, 4),), shapes), fp16=False)
    assert len(lowered.methods["forward"].inputs[0]) == 1
    for size in (1, 2, 8):
        assert max(differences(lowered, inputs=(floats(size, 4),))) == 0


@pytest.mark.skipif(not RUNNER.exists(), reason="build/bin/mps_executor_runner is not built")
@pytest.mark.parametrize("name", CASES)
def test_in_the_runner(made, name):
    stem, cases = made[name]
    for number in range(len(cases)):
        command = [RUNNER, "--model_path", stem.with_suffix(".bundle"), "--bundled_program", f"--testset_idx={number}"]
        done = subprocess.run([*command, "--noprint_output"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not BACKEND.exists(), reason="the delegate is not built: scripts/env executorch-runtime")
def test_in_the_stock_runtime(made, tmp_path):
    jobs = []
    for stem, cases in made.values():
        for number, sides in enumerate(cases):
            files = {}
            for side, values in zip(("inputs", "expected"), sides, strict=True):
                files[side] = [str(tmp_path / f"{stem.name}.{number}.{side}{i}.npy") for i in range(len(values))]
                for path, value in zip(files[side], values, strict=True):
                    np.save(path, value.numpy())
            orders = [list(range(value.dim())) for value in sides[0]]
            jobs.append({"name": f"{stem.name} {SIZES[number]}", "program": str(stem.with_suffix(".pte")), "method": "forward",
                         "orders": orders, "tolerance": 1e-4, "runs": 2, **files})
    worker = ROOT / "tests" / "doors" / "executorch" / "stock_python.py"
    done = subprocess.run([sys.executable, "-W", "ignore", worker, BACKEND, ROOT / "doors" / "executorch"],
                          input="".join(json.dumps(job) + "\n" for job in jobs), capture_output=True, text=True, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"name"')]
    assert len(answers) == len(jobs), done.stderr[-4000:]
    assert not {a["name"]: a["error"] for a in answers if a["error"]}, done.stderr[-4000:]
