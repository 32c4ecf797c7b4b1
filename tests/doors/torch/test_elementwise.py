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


def test_powers_of_a_complex_zero():
    """1, as in Python, in every form: also where the CPU has NaN, with a tensor as the exponent."""
    for dtype in (torch.complex64, torch.complex128):
        base = torch.tensor([0, 1j, 3 - 4j, math.inf, math.nan], dtype=dtype, device="mps")
        nought = torch.zeros_like(base)
        compiled = torch.compile(torch.pow, backend="anymps")
        for power in (base**nought, base**0j, base**0, torch.pow(0j, nought), compiled(base, nought), base.clone().pow_(nought)):
            assert power.tolist() == [1] * 5
        assert torch.pow(nought, 1 + 1j).tolist() == torch.pow(nought, nought + 1 + 1j).tolist() == [0] * 5


def test_what_is_left_by_a_number_of_a_half_type():
    """The divisor is the half next to it, as on the CPU."""
    x = torch.tensor([2.5, -2.5, 3.7, 100.0, -0.3, 7.0])
    for dtype in (torch.float16, torch.bfloat16):
        for left in (lambda t: t % 0.3, lambda t: t % -0.7, lambda t: torch.fmod(t, 0.3), lambda t: 10.1 % t, lambda t: t.clone().remainder_(0.3)):
            ours, theirs = left(x.to(dtype).to("mps")).cpu(), left(x.to(dtype))
            torch.testing.assert_close(ours, theirs, rtol=0.01, atol=1e-3)


def test_least_multiples_beyond_a_narrow_type():
    for dtype in (torch.int8, torch.uint8, torch.int16):
        x, y = torch.tensor([39, 59, 100, 7, 0], dtype=dtype), torch.tensor([4, 3, 99, 5, 9], dtype=dtype)
        x, y = (x * 300, y * 7) if dtype == torch.int16 else (x, y)
        assert torch.equal(torch.lcm(x.to("mps"), y.to("mps")).cpu(), torch.lcm(x, y))


def test_a_count_of_what_is_not_zero_counts_nan():
    x = torch.tensor([[0.0, math.nan, -1.0], [math.inf, 0.0, -0.0]])
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        for norm in (lambda t: t.norm(0), lambda t: t.norm(0, 1), lambda t: torch.linalg.vector_norm(t, 0, dim=0, keepdim=True)):
            assert torch.equal(norm(x.to(dtype).to("mps")).cpu(), norm(x.to(dtype)))


def test_renorm_of_f64_and_of_complex_numbers():
    for dtype in (torch.float64, torch.complex64, torch.complex128):
        found = []
        for device in ("mps", "cpu"):
            x = (torch.linspace(-2, 2, 12, dtype=torch.float64).reshape(3, 4) * (1 + 0.5j if dtype.is_complex else 1)).to(dtype).to(device).requires_grad_()
            y = x.renorm(2, -2, 2.5)
            weights = torch.linspace(0, 1, 12, device=device, dtype=torch.float64).reshape(3, 4)
            found.append((y.detach().cpu(), torch.autograd.grad((torch.view_as_real(y).sum(-1) if dtype.is_complex else y).mul(weights).sum(), x)[0].cpu()))
        torch.testing.assert_close(*found)
