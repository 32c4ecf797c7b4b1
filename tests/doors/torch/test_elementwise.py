# SPDX-License-Identifier: Apache-2.0
"""What op_db's samples do not show of elementwise ops, compared with the CPU."""
import math

import torch


def test_functional_and_in_place_forms_are_remembered_apart():
    a, b = torch.ones(3, device="mps"), torch.ones(3, device="mps")
    for _ in range(3):
        assert a.clone().eq_(b).dtype == torch.float32
        assert torch.eq(a, b).dtype == torch.bool


def test_gradients_of_halves_are_not_zero():
    for function in (torch.nn.functional.mish, torch.nn.functional.glu):
        for dtype in (torch.float16, torch.bfloat16):
            x = torch.tensor([1.0, -2.0], dtype=dtype, device="mps", requires_grad=True)
            function(x).sum().backward()
            assert (x.grad.cpu() != 0).all()


def test_numbers_at_the_edges():
    x = torch.tensor([math.nan, -math.inf, math.inf, -0.0, 1.0])
    for f in (torch.sign, torch.sgn, torch.relu, lambda t: t.clamp(min=math.nan), lambda t: t ** 0.5,
              lambda t: torch.nan_to_num(t, 1.0, math.inf, -5.0), lambda t: t // 0.1):
        torch.testing.assert_close(f(x.to("mps")).cpu(), f(x), equal_nan=True)


def test_small_negative_digamma():
    x = torch.tensor([-1e-30, -0.25], dtype=torch.float64)
    torch.testing.assert_close(torch.digamma(x.to("mps")).cpu(), torch.digamma(x))
