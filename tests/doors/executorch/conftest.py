# SPDX-License-Identifier: Apache-2.0
"""The exporter's tests (test_export_*) need executorch 1.4.1 and run in .venvs/executorch; elsewhere they skip."""

import pathlib
import sys

import pytest

DOOR = pathlib.Path(__file__).resolve().parents[3] / "doors" / "executorch"
sys.path.insert(0, str(DOOR))


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """The same sums on every machine, and one core taken."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture
def lowered():
    """A function that lowers a function or a module with its inputs, float32 unless asked."""
    from anymps_executorch.bundles.kinds import Of
    from anymps_executorch.lowering import Method, lower

    def run(function, *inputs, fp16=False, dynamic_shapes=None, **options):
        import torch

        module = function if isinstance(function, torch.nn.Module) else Of(function)
        return lower(Method(module, inputs, dynamic_shapes), fp16=fp16, **options)

    return run
