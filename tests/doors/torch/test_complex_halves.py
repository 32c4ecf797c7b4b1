# SPDX-License-Identifier: Apache-2.0
"""Complex numbers of two halves: stored as they are, computed with in f32, and rounded once, as PyTorch's CPU does where it can."""
import pytest
import torch

X = torch.complex(torch.linspace(-2, 3, 12), torch.linspace(1, -4, 12)).reshape(3, 4)
Y = X.flip(0) * (0.5 - 1j)


def halves(device):
    return X.to(torch.complex32).to(device), Y.to(torch.complex32).to(device)


PROGRAMS = {
    "add": lambda x, y: x + y, "scaled": lambda x, y: x.add(y, alpha=2), "mul": lambda x, y: x * y, "number": lambda x, y: x * 2.5, "neg": lambda x, y: -x,
    "complex number": lambda x, y: x * (1 + 2j), "sum": lambda x, y: x.sum(0), "mean": lambda x, y: x.mean(), "matmul": lambda x, y: x @ y.T, "exp": lambda x, y: (x / 4).exp(),
    "cat": lambda x, y: torch.cat([x, y.conj()], 1), "index": lambda x, y: x[torch.tensor([0, 2, 2], device=x.device), 1:], "where": lambda x, y: torch.where(x.real > 0, x, y),
    "in place": lambda x, y: x.clone().mul_(y).add_(1), "out": lambda x, y: torch.mul(x, y, out=torch.empty(0, dtype=x.dtype, device=x.device)),
    "put": lambda x, y: x.clone().index_put_((torch.tensor([1], device=x.device),), y[0]), "part": lambda x, y: y.clone().transpose(0, 1)[1:].copy_(x.T[:-1]),
    "conj": lambda x, y: x.conj() * y, "conj, resolved": lambda x, y: (x.conj() + 0).resolve_conj(), "with f32": lambda x, y: x * torch.ones(4, device=x.device),
    "square root": lambda x, y: x.sqrt(), "masked": lambda x, y: x.masked_fill(x.imag > 0, 3), "stack": lambda x, y: torch.stack([x, y]), "repeated": lambda x, y: x.repeat(2, 1),
    "view": lambda x, y: torch.view_as_real(x).flip(-1), "abs": lambda x, y: x.abs(), "angle": lambda x, y: x.angle(), "parts": lambda x, y: x.real + x.imag,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    """Where a step is rounded to halves differs: the CPU's result, of complex numbers of f32 rounded once at each step, is near."""
    for _ in range(2):  # the second time it could be remembered
        ours = PROGRAMS[name](*halves("mps"))
        theirs = PROGRAMS[name](*(t.to(torch.complex64) for t in halves("cpu")))
        assert ours.dtype == {torch.complex64: torch.complex32 if name != "with f32" else torch.complex64, torch.float32: torch.float16}[theirs.dtype]
        torch.testing.assert_close(ours.cpu().to(theirs.dtype), theirs, rtol=4e-3, atol=4e-3)


def test_made_and_moved():
    x = X.to("mps")
    for moved in (x.chalf(), x.to(torch.complex32), X.to(torch.complex32).to("mps"), x.cpu().to("mps", torch.complex32)):
        assert moved.dtype == torch.complex32 and moved.tolist() == X.to(torch.complex32).tolist()
        assert torch.equal(moved.to(torch.complex64).cpu(), X.to(torch.complex32).to(torch.complex64))
    assert torch.ones(3, device="mps").to(torch.complex32).tolist() == [1, 1, 1]
    assert torch.zeros(2, dtype=torch.complex32, device="mps").tolist() == [0, 0] and torch.full((2,), 1 - 2j, dtype=torch.complex32, device="mps").tolist() == [1 - 2j] * 2
    assert x.chalf()[1, 2].item() == X.to(torch.complex32)[1, 2].item() and x.chalf().conj().conj().tolist() == X.to(torch.complex32).tolist()
    assert "complex32" in str(x.chalf())


@pytest.mark.parametrize("make", [torch.complex, torch.polar])
def test_of_two_halves(make):
    grads = []
    for device in ("mps", "cpu"):
        a, b = (torch.linspace(0.5, 2, 6, device=device).to(torch.float16 if device == "mps" else torch.float32).mul(k).requires_grad_() for k in (1, 3))
        z = make(a, b)
        assert z.dtype == (torch.complex32 if device == "mps" else torch.complex64)
        torch.view_as_real(z).square().sum().backward()
        grads.append([t.detach().cpu().to(torch.complex64) for t in (z, a.grad, b.grad)])
    torch.testing.assert_close(*grads, rtol=1e-2, atol=1e-2)


def test_gradients():
    grads = []
    for dtype in (torch.complex32, torch.complex64):
        x = X.to("mps", dtype).requires_grad_()
        torch.view_as_real(x * x + x.conj()).square().mean().backward()
        assert x.grad.dtype == dtype
        grads.append(x.grad.cpu().to(torch.complex64))
    torch.testing.assert_close(*grads, rtol=1e-2, atol=1e-2)


def test_types_are_remembered_apart():
    """A call with complex halves after the same one with complex numbers of f32, and the other way round."""
    for first, second in ((torch.complex64, torch.complex32), (torch.complex32, torch.complex64)):
        x = torch.full((3, 5), 1 + 1j)
        for dtype in (first, second, first):
            assert (x.to("mps", dtype) * x.to("mps", dtype)).dtype == dtype
