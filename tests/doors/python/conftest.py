# SPDX-License-Identifier: Apache-2.0
"""The package comes from build/python; what the tests of several files share."""
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "build" / "python"))

import anymps  # noqa: E402


@pytest.fixture
def mlp():
    """softmax(relu(x @ w + b)) with its numpy twin: (executable, function, graph)."""
    rng = np.random.default_rng(7)
    w, b = rng.standard_normal((4, 3)).astype(np.float32), rng.standard_normal(3).astype(np.float32)
    graph = anymps.Graph("mlp")
    x = graph.input("x", "f32", ("N", 4))
    graph.outputs(anymps.ops.softmax(anymps.ops.relu(x @ w + b), axis=-1))

    def twin(x):
        e = np.exp(np.maximum(np.asarray(x, np.float32) @ w + b, 0))
        return e / e.sum(-1, keepdims=True)
    return anymps.compile(graph), twin, graph
