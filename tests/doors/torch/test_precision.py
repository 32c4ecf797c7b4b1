# SPDX-License-Identifier: Apache-2.0
"""Where PyTorch leaves the precision to the device."""
import mpmath
import pytest
import torch
from torch.nn import functional as F


def slope(x, shape, rest):
    """How a number of a beta distribution moves with the first shape, over 1 - x, from the distribution itself."""
    with mpmath.workdps(40):
        x, shape, rest = map(mpmath.mpf, (x, shape, rest))
        below = lambda a: mpmath.betainc(a, rest, 0, x, regularized=True)
        density = x ** (shape - 1) * (1 - x) ** (rest - 1) / mpmath.beta(shape, rest)
        return float(-mpmath.diff(below, shape) / density / (1 - x))


CASES = [(x, shape, rest) for x in (0.02, 0.4, 0.93) for shape in (0.1, 1.0, 7.0) for rest in (0.3, 1.0, 12.0)] + [(0.31, 90.0, 210.0)]


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_slope_of_a_dirichlet_distribution(dtype, tolerance):
    """PyTorch's own is an approximation: up to several per cent off."""
    x, shape, rest = torch.tensor(CASES, dtype=dtype, device="mps").unbind(1)
    found = torch._dirichlet_grad(x, shape, shape + rest).cpu()
    expected = torch.tensor([slope(*case) for case in CASES], dtype=torch.float64)
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=0)


def test_gradients_of_samples():
    shapes = torch.tensor([[0.5, 2.0, 3.0], [4.0, 0.2, 1.0]], device="mps", requires_grad=True)
    torch.manual_seed(0)
    drawn = torch.distributions.Dirichlet(shapes).rsample()
    (found,) = torch.autograd.grad(drawn[:, 0].sum(), shapes)
    on_cpu, total = drawn.detach().cpu(), shapes.detach().cpu().sum(-1, keepdim=True)
    own = torch._dirichlet_grad(on_cpu, shapes.detach().cpu(), total.expand(2, 3).contiguous())
    expected = own * (torch.tensor([1.0, 0, 0]) - on_cpu[:, :1])
    torch.testing.assert_close(found.cpu(), expected, rtol=2e-2, atol=1e-3)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_losses_of_half_types_are_summed_in_f32(dtype):
    """The bias moves all logits alike, and takes digits of whatever is kept in a half type."""
    generator = torch.Generator().manual_seed(0)
    x, weight = torch.randn(64, 16, generator=generator), torch.randn(1000, 16, generator=generator) * 2
    target = torch.randint(1000, (64,), generator=generator)
    found = []
    for device, computed in (("mps", dtype), ("cpu", torch.float64)):
        given = [t.to(dtype).to(device, computed).requires_grad_() for t in (x, weight)]
        bias = torch.full((1000,), 256.0, device=device, dtype=computed)
        options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
        loss = F.linear_cross_entropy(*given, target.to(device), linear_bias=bias, options=options)
        found.append([loss.detach(), *torch.autograd.grad(loss, given)])
    for ours, exact in zip(*found):
        assert (ours.double().cpu() - exact).abs().max() <= torch.finfo(dtype).eps * exact.abs().max()
