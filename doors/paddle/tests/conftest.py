# SPDX-License-Identifier: Apache-2.0
"""Tests of the installed package, in strict mode (support.py); `scripts/test paddle` installs it and runs them."""

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))
import support  # noqa: E402, F401  before Paddle is imported
import paddle  # noqa: E402


@pytest.fixture(autouse=True)
def _same_device_afterwards():
    before = paddle.get_device()
    yield
    paddle.set_device(before)


@pytest.fixture
def mps():
    """The device as the current one, with nothing in its cache."""
    paddle.mps.set_device(0)
    paddle.mps.empty_cache()
    return paddle.mps
