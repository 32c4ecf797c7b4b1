# SPDX-License-Identifier: Apache-2.0
"""Requests with the answers that are right: what well-behaved clients of the soak run send, at random."""
from dataclasses import dataclass, field

import numpy as np

from ..protocol.cases.steps import NUMPY
from ..make_repository import mlp_answer

CHANGING = "changing"  # the MLP that is replaced all the time, with the weights of either seed
SEEDS = (11, 12)
COUNTED = "counted"  # only well-behaved clients ask this one: its statistics must add up
DATATYPES = [d for d in NUMPY if d != "BF16"]


@dataclass(frozen=True)
class Job:
    model: str
    inputs: list  # [(name, datatype, array)]
    right: list  # the answers that may come: [{name: array}]
    parameters: dict = field(default_factory=dict)


def random_array(rng, datatype, shape):
    if datatype == "BYTES":
        count = int(np.prod(shape))
        return np.array([rng.bytes(int(n)) for n in rng.integers(0, 40, count)], dtype=np.object_).reshape(shape)
    if datatype == "BOOL":
        return rng.random(shape) < 0.5
    if np.dtype(NUMPY[datatype]).kind in "iu":
        return rng.integers(0, 100, shape).astype(NUMPY[datatype])
    return rng.standard_normal(shape).astype(NUMPY[datatype])


def add_sub(rng):
    a, b = (rng.standard_normal((int(rng.integers(1, 9)), 16)).astype(np.float32) for _ in range(2))
    b = np.resize(b, a.shape)
    return Job(COUNTED, [("INPUT0", "FP32", a), ("INPUT1", "FP32", b)], [{"OUTPUT0": a + b, "OUTPUT1": a - b}])


def mlp(rng):
    x = rng.standard_normal((int(rng.integers(1, 9)), 16)).astype(np.float32)
    return Job("mlp", [("x", "FP32", x)], [{"y": mlp_answer(x)}])


def changing(rng):
    x = rng.standard_normal((int(rng.integers(1, 5)), 16)).astype(np.float32)
    return Job(CHANGING, [("x", "FP32", x)], [{"y": mlp_answer(x, seed)} for seed in SEEDS])


def identity(rng):
    datatype = DATATYPES[int(rng.integers(len(DATATYPES)))]
    array = random_array(rng, datatype, (int(rng.integers(1, 5)), int(rng.choice([0, 1, 17, 1000]))))
    return Job(f"identity_{datatype.lower()}", [("INPUT0", datatype, array)], [{"OUTPUT0": array}])


def large(rng):
    array = rng.standard_normal((1, 200_000)).astype(np.float32)
    return Job("identity_fp32", [("INPUT0", "FP32", array)], [{"OUTPUT0": array}])


def pipeline(rng):
    x = rng.standard_normal((int(rng.integers(1, 5)), 16)).astype(np.float32)
    return Job("pipeline", [("raw", "FP32", x)], [{"probabilities": mlp_answer(2 * x), "scaled": 2 * x}])


def ragged(rng):
    x = rng.integers(0, 9, (1, int(rng.integers(1, 30)))).astype(np.float32)
    return Job("ragged", [("INPUT", "FP32", x)], [{"SUM": x.sum(1, keepdims=True)}])


KINDS = [(add_sub, 6), (mlp, 6), (changing, 6), (identity, 5), (large, 1), (pipeline, 3), (ragged, 1)]


def jobs(seed):
    """Without end."""
    rng = np.random.default_rng(seed)
    makers, weights = zip(*KINDS)
    share = np.array(weights) / sum(weights)
    while True:
        yield makers[rng.choice(len(makers), p=share)](rng)


def is_right(job, outputs):
    return any(all(name in outputs and same(outputs[name], array) for name, array in answer.items()) for answer in job.right)


def same(got, expected):
    if got.shape != expected.shape:
        return False
    if expected.dtype == object or expected.dtype.kind in "biu":
        return got.tolist() == expected.tolist()
    return np.allclose(got.astype(np.float64), expected.astype(np.float64), rtol=1e-4, atol=1e-5)
