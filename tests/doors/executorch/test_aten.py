# SPDX-License-Identifier: Apache-2.0
"""Operators of torch that programs call outside delegates: exported, run, and compared with eager torch.

The same cases are kept as bundles in tests/data/executorch/aten, which need no torch to be tested."""
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("executorch")
ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "build" / "python"), str(Path(__file__).parent)]
anymps = pytest.importorskip("anymps")

import aten_cases  # noqa: E402
import make_aten  # noqa: E402

aten_cases.build()
FAMILIES = sorted({case[0] for case in aten_cases.CASES})
TOLERANCE = {torch.float16: 2e-3, torch.float32: 2e-5, torch.float64: 2e-5}


def run(data, inputs):
    results = anymps.load(data)(**{f"input{i}": x.numpy() for i, x in enumerate(inputs)})
    return list(results) if isinstance(results, (tuple, list)) else [results]


def compare(ours, theirs, names):
    assert len(ours) == len(theirs)
    for name, a, b in zip(names, ours, theirs, strict=True):
        a, b = np.asarray(a), b.numpy()
        assert a.dtype == b.dtype and a.shape == b.shape, name
        tolerance = TOLERANCE.get(torch.from_numpy(b).dtype, 0)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance / 10, err_msg=name)


@pytest.mark.parametrize("family", FAMILIES)
def test_operators(family):
    cases = [case for case in aten_cases.CASES if case[0] == family]
    data, _ = make_aten.bundle(cases)
    module = make_aten.Calls(cases)
    inputs = [x for case in cases for x in case[3]]
    names = []
    for _, name, function, arguments in cases:
        result = function(*(x.clone() for x in arguments))
        names += [name] * (len(result) if isinstance(result, (tuple, list)) else 1)
    compare(run(data, inputs), module(*(x.clone() for x in inputs)), names)


@pytest.mark.parametrize("case", aten_cases.DYNAMIC, ids=lambda case: case[1])
def test_open_shapes(case):
    """One program, run with the shapes that it was exported with and with others."""
    _, name, function, exported, shapes, others = case
    data, _ = make_aten.bundle([case[:4]], (shapes, others))
    for inputs in (exported, others):
        theirs = function(*inputs)
        theirs = list(theirs) if isinstance(theirs, (tuple, list)) else [theirs]
        compare(run(data, inputs), theirs, [name] * len(theirs))
