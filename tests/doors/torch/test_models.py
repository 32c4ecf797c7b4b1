# SPDX-License-Identifier: Apache-2.0
"""Models train on 'mps', with the fallback off, to the losses that the CPU has."""
import functools
import math
import os

import pytest
import torch

from tests.doors.torch.models import MODELS, OPTIMIZERS, train

BACKEND = "anymps"
# Hard choices, and batch norms over few elements, widen the smallest difference: in f32 the CPU does not agree with itself
# when its images lie channels last. In f64 the steps do not part.
CHAOTIC = ("detection", "mobilenet_v2")


@functools.cache
def on_cpu(name, optimizer="sgd", steps=3, autocast=None, clip=None, dtype=torch.float32):
    return train(name, "cpu", optimizer, steps, autocast, clip, dtype=dtype)


def agrees(name, **how):
    if name in CHAOTIC:
        compare(train(name, "mps", dtype=torch.float64, **how), on_cpu(name, dtype=torch.float64), 1e-6, 1e-6)
    else:
        compare(train(name, "mps", **how), on_cpu(name))


@pytest.fixture(autouse=True)
def no_fallback():
    assert torch.backends.mps.is_available()
    assert os.environ.get("PYTORCH_ENABLE_MPS_FALLBACK", "0") != "1"


def compare(ours, theirs, losses=2e-4, norm=1e-3):
    """The losses of all steps; of the gradients' norms the first, before the steps part."""
    (ours_loss, ours_norm), (their_loss, their_norm) = zip(*ours), zip(*theirs)
    assert all(map(math.isfinite, their_loss))
    assert abs(their_loss[-1] / their_loss[0] - 1) > 3 * losses, "too small a change to tell a wrong step"
    assert ours_norm[0] == pytest.approx(their_norm[0], rel=norm)
    assert ours_loss == pytest.approx(their_loss, rel=losses)


@pytest.mark.parametrize("name", MODELS)
def test_training(name):
    agrees(name)


@pytest.mark.parametrize("optimizer", [name for name in OPTIMIZERS if name != "sgd"])
def test_optimizers(optimizer):
    compare(train("transformer", "mps", optimizer, 5), on_cpu("transformer", optimizer, 5))


def test_gradient_clipping():
    clipped = on_cpu("transformer", "sgd", 5, clip=0.1)
    assert clipped[-1][0] > on_cpu("transformer", "sgd", 5)[-1][0] + 0.1
    compare(train("transformer", "mps", "sgd", 5, clip=0.1), clipped)


@pytest.mark.parametrize("name", ["transformer", "lstm", "diffusion"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "f16"])
def test_autocast(name, dtype):
    """Against the CPU in f32: with half precision inside, the devices round in other places."""
    compare(train(name, "mps", "adamw", 8, autocast=dtype), on_cpu(name, "adamw", 8), 2e-3, 2e-2)


def test_autocast_computes_in_half_precision():
    linear, x = torch.nn.Linear(8, 8).to("mps"), torch.randn(2, 8, device="mps")
    for dtype in (torch.float16, torch.bfloat16):
        with torch.autocast("mps", dtype=dtype):
            assert linear(x).dtype == dtype
            assert linear(x).softmax(-1).dtype == torch.float32


def test_scaler_skips_steps_that_overflow():
    weight = torch.nn.Parameter(torch.ones(4, device="mps"))
    step, scaler = torch.optim.SGD([weight], lr=0.1), torch.amp.GradScaler("mps", init_scale=2.0**15)
    scaler.scale((weight * float("inf")).sum()).backward()
    scaler.step(step)
    scaler.update()
    assert weight.tolist() == [1.0] * 4 and scaler.get_scale() == 2.0**14


@pytest.mark.parametrize("name", MODELS)
def test_compiled(name):
    torch._dynamo.reset()
    if BACKEND not in torch._dynamo.list_backends(exclude_tags=()):
        pytest.skip(f"torch.compile has no backend {BACKEND!r} here")
    agrees(name, compiled=BACKEND)
