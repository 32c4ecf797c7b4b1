# SPDX-License-Identifier: Apache-2.0
"""Random numbers: ranges, moments and shapes of distributions, seeds, states, and streams that do not repeat."""
import math

import pytest
import torch
import torch.utils.checkpoint

N = 200_000


def made(fill, dtype=torch.float32, n=N):
    torch.manual_seed(3)
    x = torch.empty(n, dtype=dtype, device="mps")
    fill(x)
    return x.cpu()


def distance(x, cdf):
    """Kolmogorov and Smirnov's: how far the share of numbers below each place is from what it should be."""
    x = x.double().sort().values
    n = x.numel()
    steps = torch.arange(n + 1, dtype=torch.float64) / n
    below = cdf(x)
    return max((steps[1:] - below).max().item(), (below - steps[:-1]).max().item())


def normal_cdf(x):
    return 0.5 * torch.erfc(-x / math.sqrt(2))


CONTINUOUS = [
    ("uniform", lambda x: x.uniform_(-2, 3), lambda x: (x + 2) / 5),
    ("normal", lambda x: x.normal_(1, 2), lambda x: normal_cdf((x - 1) / 2)),
    ("exponential", lambda x: x.exponential_(0.5), lambda x: 1 - torch.exp(-0.5 * x)),
    ("cauchy", lambda x: x.cauchy_(1, 2), lambda x: 0.5 + torch.atan((x - 1) / 2) / math.pi),
    ("log_normal", lambda x: x.log_normal_(0.5, 0.7), lambda x: normal_cdf((x.log() - 0.5) / 0.7)),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name,fill,cdf", CONTINUOUS, ids=[c[0] for c in CONTINUOUS])
def test_distribution(name, fill, cdf, dtype):
    # The chance of a larger distance is below 1e-6.
    assert distance(made(fill, dtype), cdf) < 2.7 / math.sqrt(N)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_uniform_stays_below_its_end(dtype):
    x = made(lambda x: x.uniform_(), dtype).float()
    assert x.min() >= 0 and x.max() < 1
    assert abs(x.mean() - 0.5) < 5e-3 and abs(x.var() - 1 / 12) < 2e-3


def test_complex():
    z = made(lambda x: x.normal_(), torch.complex64)
    assert abs(z.real.var() - 0.5) < 0.01 and abs(z.imag.var() - 0.5) < 0.01
    assert abs((z.real * z.imag).mean()) < 0.01
    z = torch.rand(N, dtype=torch.complex128, device="mps").cpu()
    assert abs(z.real.mean() - 0.5) < 0.01 and z.imag.min() >= 0 and z.imag.max() < 1


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.float32, torch.float16])
def test_whole_numbers(dtype):
    x = made(lambda x: x.random_(3, 11), dtype).long()
    counts = torch.bincount(x, minlength=11)[3:]
    assert x.min() == 3 and x.max() == 10
    squares = ((counts - N / 8) ** 2 / (N / 8)).sum()  # chi^2 with 7 degrees of freedom
    assert squares < 45
    assert made(lambda x: x.random_(5), dtype).max() == 4


RANGES = [(torch.int8, 127), (torch.uint8, 255), (torch.int16, 32767), (torch.int32, 2**31 - 1), (torch.int64, 2**63 - 1),
          (torch.float32, 2**24), (torch.float64, 2**53), (torch.float16, 2**11), (torch.bfloat16, 2**8), (torch.bool, 1)]


@pytest.mark.parametrize("dtype,most", RANGES)
def test_whole_range(dtype, most):
    x = made(lambda x: x.random_(), dtype).double()
    assert x.min() >= 0 and x.max() <= most
    assert abs(x.mean() / most - 0.5) < 0.01


def test_whole_numbers_of_64_bits():
    x = made(lambda x: x.random_(-2**63, None), torch.int64)
    assert x.min() < -2**62 and x.max() > 2**62 and abs(x.double().mean()) < 2**63 * 0.01
    x = made(lambda x: x.random_(2**62, 2**62 + 2), torch.int64)
    assert set(x.tolist()) == {2**62, 2**62 + 1}


def test_bounds_are_checked():
    x = torch.empty(4, device="mps")
    for call in (lambda: x.random_(5, 5), lambda: x.uniform_(2, 1), lambda: x.normal_(0, -1), lambda: x.bernoulli_(1.5),
                 lambda: x.exponential_(0), lambda: x.geometric_(0), lambda: x.int().random_(0, 2**40)):
        with pytest.raises(RuntimeError):
            call()


def test_bernoulli_and_geometric():
    for p in (0.0, 0.3, 1.0):
        x = made(lambda x: x.bernoulli_(p))
        assert set(x.unique().tolist()) <= {0.0, 1.0} and abs(x.mean() - p) < 5e-3
        assert abs(torch.bernoulli(torch.full((N,), p, device="mps")).mean().item() - p) < 5e-3
    p = torch.tensor([0.0, 0.25, 1.0], device="mps")
    x = torch.empty(N, 3, device="mps", dtype=torch.int32).bernoulli_(p).double().mean(0).cpu()
    assert torch.allclose(x, torch.tensor([0.0, 0.25, 1.0], dtype=torch.float64), atol=5e-3)
    for dtype in (torch.float32, torch.int64):
        x = made(lambda x: x.geometric_(0.25), dtype).double()
        assert x.min() == 1 and abs(x.mean() - 4) < 0.05 and abs(x.var() - 12) < 0.5


def test_with_parameters_of_tensors():
    rate = torch.tensor([0.5, 4.0, 300.0], device="mps").expand(N, 3)
    x = torch.poisson(rate).double().cpu()
    assert torch.allclose(x.mean(0), torch.tensor([0.5, 4.0, 300.0]).double(), rtol=1e-2)
    assert torch.allclose(x.var(0), torch.tensor([0.5, 4.0, 300.0]).double(), rtol=2e-2)
    x = torch.binomial(torch.full((N,), 20.0, device="mps"), torch.full((N,), 0.3, device="mps")).double().cpu()
    assert abs(x.mean() - 6) < 0.02 and abs(x.var() - 4.2) < 0.1 and x.max() <= 20
    x = torch._standard_gamma(torch.full((N,), 2.5, device="mps")).double().cpu()
    assert abs(x.mean() - 2.5) < 0.02 and abs(x.var() - 2.5) < 0.06
    x = torch._sample_dirichlet(torch.tensor([1.0, 2.0, 3.0], device="mps").expand(N, 3)).cpu()
    assert torch.allclose(x.sum(-1), torch.ones(N)) and torch.allclose(x.mean(0), torch.tensor([1.0, 2.0, 3.0]) / 6, atol=5e-3)
    mean, std = torch.tensor([0.0, 10.0], device="mps"), torch.tensor([1.0, 0.0], device="mps")
    x = torch.normal(mean.expand(N, 2), std.expand(N, 2)).cpu()
    assert abs(x[:, 0].var() - 1) < 0.02 and (x[:, 1] == 10).all()
    assert abs(torch.normal(mean.expand(N, 2), 2.0).cpu()[:, 1].var() - 4) < 0.1
    assert abs(torch.normal(3.0, std.expand(N, 2)).cpu().mean() - 3) < 0.02


def test_choices():
    p = torch.tensor([[0.0, 1.0, 3.0, 0.0], [2.0, 0.0, 0.0, 2.0]], device="mps")
    for dtype in (torch.float32, torch.float64, torch.float16):
        x = torch.multinomial(p.to(dtype), N, replacement=True).cpu()
        share = torch.stack([torch.bincount(row, minlength=4) for row in x]) / N
        assert torch.allclose(share, torch.tensor([[0, 0.25, 0.75, 0], [0.5, 0, 0, 0.5]]), atol=5e-3)
    assert torch.multinomial(p, 2).sort(1).values.tolist() == [[1, 2], [0, 3]]
    ones = torch.multinomial(p[0].expand(N, 4), 1).cpu().flatten()
    assert torch.allclose(torch.bincount(ones, minlength=4) / N, torch.tensor([0, 0.25, 0.75, 0]), atol=5e-3)
    for bad in (torch.tensor([0.0, 0.0]), torch.tensor([1.0, -1.0]), torch.tensor([1.0, math.nan])):
        with pytest.raises(RuntimeError):
            torch.multinomial(bad.to("mps"), 5, replacement=True)
    order = torch.randperm(10_000, device="mps")
    assert order.sort().values.equal(torch.arange(10_000, device="mps")) and not order.equal(torch.randperm(10_000, device="mps"))


CALLS = [lambda g: torch.rand(100, device="mps", generator=g), lambda g: torch.randn(100, device="mps", generator=g),
         lambda g: torch.randint(0, 1000, (100,), device="mps", generator=g), lambda g: torch.randperm(100, device="mps", generator=g),
         lambda g: torch.empty(100, device="mps").exponential_(generator=g),
         lambda g: torch.poisson(torch.full((100,), 50.0, device="mps"), generator=g),
         lambda g: torch.multinomial(torch.ones(100, device="mps"), 50, generator=g)]


@pytest.mark.parametrize("call", CALLS)
def test_seeds(call):
    own = torch.Generator("mps").manual_seed(5)
    first, second = call(own), call(own)
    assert not first.equal(second)
    assert call(own.manual_seed(5)).equal(first)
    assert not call(own.manual_seed(6)).equal(first)
    torch.manual_seed(5)
    assert call(None).equal(first)
    state = torch.mps.get_rng_state()
    third = call(None)
    torch.mps.set_rng_state(state)
    assert call(None).equal(third)
    torch.mps.manual_seed(5)
    assert call(None).equal(first)


def test_streams_do_not_repeat():
    torch.manual_seed(0)
    words = torch.cat([torch.empty(100_000, dtype=torch.int64, device="mps").random_() for _ in range(4)])
    assert words.cpu().unique().numel() == words.numel()


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_draws_the_same_numbers_again(reentrant):
    """Otherwise the gradient is that of another dropout."""
    seen, x = [], torch.ones(64, device="mps", requires_grad=True)

    def dropped(x):
        y = torch.nn.functional.dropout(x * 2, 0.5)
        seen.append(y.detach().clone())
        return y
    with torch.utils.checkpoint.set_checkpoint_early_stop(False):
        y = torch.utils.checkpoint.checkpoint(dropped, x, use_reentrant=reentrant)
    torch.rand(3, device="mps")
    y.sum().backward()
    assert len(seen) == 2 and torch.equal(*seen) and 0 < seen[0].count_nonzero().item() < 64
    assert torch.equal(x.grad, seen[0])
