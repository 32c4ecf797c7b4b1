# SPDX-License-Identifier: Apache-2.0
"""The elementwise binary ops in a few seconds: `python test_mps_kernels_quick.py`, or with pytest."""

import sys

import numpy as np
import paddle
import pytest
import support

_random = np.random.default_rng(0)
A = _random.uniform(-2, 2, (3, 4)).astype("float32")
B = (_random.uniform(0.5, 2, (3, 4)) * _random.choice([-1, 1], (3, 4))).astype("float32")
ROW = B[:1]
COLUMN = B[:, :1]

CASES = [
    ("Add (same shape)", paddle.add, (A, B)),
    ("Multiply (same shape)", paddle.multiply, (A, B)),
    ("Subtract (same shape)", paddle.subtract, (A, B)),
    ("Divide (same shape)", paddle.divide, (A, B)),
    ("Add (broadcast row)", paddle.add, (A, ROW)),
    ("Multiply (broadcast column)", paddle.multiply, (A, COLUMN)),
    ("Subtract (broadcast both)", paddle.subtract, (ROW, COLUMN)),
    ("Divide (broadcast row)", paddle.divide, (A, ROW)),
    ("Add (scalar)", lambda x: x + 1.5, (A,)),
    ("Subtract (scalar on the left)", lambda x: 2 - x, (A,)),
    ("Divide (scalar on the left)", lambda x: 1 / x, (B,)),
    ("Chained operations", lambda x, y: (x + y) * (x - y) / y, (A, B)),
]


@pytest.mark.parametrize("name, function, arrays", CASES, ids=[case[0] for case in CASES])
def test_binary(name, function, arrays):
    support.on_both(function, *arrays)


def main():
    report = support.Report("Quick MPS Kernel Test")
    report.section("Testing Operations")
    for name, function, arrays in CASES:
        report.case(name, function, *arrays)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
