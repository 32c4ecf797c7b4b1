# SPDX-License-Identifier: Apache-2.0
"""What the CPU refuses and a wrong number would hide is refused on 'mps' too: results of another kind of type, memory that is
shared in part, elements and numbers out of range. And the device computes on afterwards."""
import pytest
import torch
from torch.nn import functional as F

T = torch.tensor


def x(device="mps"):
    return torch.arange(6.0, device=device).reshape(2, 3) / 5


def mask(dtype, device):
    return (x(device) > 0.5).to(dtype)


OUT = {
    "add": lambda d, out: torch.add(x(d), x(d), out=out), "amax": lambda d, out: torch.amax(x(d), 1, out=out),
    "mm": lambda d, out: torch.mm(x(d), x(d).T, out=out), "exp": lambda d, out: torch.exp(x(d), out=out),
    "gather": lambda d, out: torch.gather(x(d), 0, T([[0]], device=d), out=out), "cat": lambda d, out: torch.cat([x(d), x(d)], out=out),
    "index_select": lambda d, out: torch.index_select(x(d), 0, T([1], device=d), out=out),
    "masked_select": lambda d, out: torch.masked_select(x(d), x(d) > 0.5, out=out), "std": lambda d, out: torch.std(x(d), 1, out=out),
    "floor_divide": lambda d, out: torch.floor_divide(x(d), 2, out=out), "angle": lambda d, out: torch.angle(x(d), out=out),
    "take": lambda d, out: torch.take(x(d), T([1, 2], device=d), out=out), "where": lambda d, out: torch.where(x(d) > 0, x(d), x(d), out=out),
    "log": lambda d, out: torch.log(x(d) + 1, out=out), "nansum": lambda d, out: torch.nansum(x(d), 1, out=out),
}


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool], ids=["i64", "bool"])
@pytest.mark.parametrize("name", OUT)
def test_results_of_another_kind_of_type(name, dtype):
    for device in ("cpu", "mps"):
        for _ in range(2):  # what was refused once is refused again
            with pytest.raises((RuntimeError, TypeError)):
                OUT[name](device, torch.empty(0, dtype=dtype, device=device))
    given = torch.empty(0, device="mps")
    OUT[name]("mps", given)
    expected = torch.empty(0)
    OUT[name]("cpu", expected)
    torch.testing.assert_close(given.cpu(), expected)


def test_results_of_a_wider_type_of_the_same_kind():
    for device in ("cpu", "mps"):
        out = torch.empty(2, 3, dtype=torch.complex64, device=device)
        assert torch.add(x(device), 1, out=out).tolist() == (x() + 1).to(torch.complex64).tolist()
    counted = torch.empty(2, 3, device="mps")
    torch.gt(x(), 0.5, out=counted)
    assert counted.tolist() == (x() > 0.5).float().tolist()
    assert torch.all(x(), 1, out=torch.empty(0, dtype=torch.uint8, device="mps")).tolist() == [0, 1]
    assert torch.arange(0.0, 3.0, out=torch.empty(0, dtype=torch.int64, device="mps")).tolist() == [0, 1, 2]


SHARED = {
    "neg": lambda a, b: torch.neg(a, out=b), "add": lambda a, b: torch.add(a, 1, out=b), "sort": lambda a, b: torch.sort(a, out=(b, torch.empty_like(b).long())),
    "gather": lambda a, b: torch.gather(a, 0, torch.arange(4, device=a.device), out=b), "add_": lambda a, b: b.add_(a),
    "index_select": lambda a, b: torch.index_select(a, 0, torch.arange(4, device=a.device), out=b), "where": lambda a, b: torch.where(a > 2, a, a.clone(), out=b),
}


@pytest.mark.parametrize("name", SHARED)
def test_results_that_share_a_part_of_an_argument(name):
    for device in ("cpu", "mps"):
        for _ in range(2):
            a = torch.arange(5.0, device=device)
            with pytest.raises(RuntimeError, match="single memory location"):
                SHARED[name](a[:4], a[1:])
            assert a.tolist() == [0, 1, 2, 3, 4]
    a = torch.arange(4.0, device="mps")
    assert torch.neg(a, out=a).tolist() == [0, -1, -2, -3]
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.gather(a, 0, torch.arange(4, device="mps"), out=a)
    for grows in (lambda: torch.cat([a, a], out=a), lambda: torch.masked_select(a, a > 0, out=a), lambda: torch.kthvalue(a, 1, out=(a, torch.empty(0, device="mps").long())),
                  lambda: torch.take(a, torch.tensor([1], device="mps"), out=a)):
        with pytest.raises(RuntimeError, match="single memory location"):
            grows()
    assert a.tolist() == [0, -1, -2, -3]
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.add(a, 1, out=torch.empty(1, device="mps").expand(4))


REFUSED = {
    "bernoulli": lambda d: torch.bernoulli(x(d) * 2), "bernoulli, nan": lambda d: torch.bernoulli(x(d) * float("nan")), "bernoulli, p": lambda d: torch.bernoulli(x(d), p=2),
    "bernoulli_": lambda d: x(d).bernoulli_(x(d) + 1), "bernoulli_, strided": lambda d: x(d).bernoulli_((x(d) * 2).T.contiguous().T),
    "normal, std": lambda d: torch.normal(0.0, -x(d)), "normal, both": lambda d: torch.normal(x(d), -x(d)), "normal, mean": lambda d: torch.normal(x(d), -1.0),
    "poisson": lambda d: torch.poisson(-x(d) - 1), "exponential_ of integers": lambda d: torch.ones(2, dtype=torch.long, device=d).exponential_(),
    "masked_select": lambda d: torch.masked_select(x(d), mask(torch.float32, d)), "masked_scatter": lambda d: x(d).masked_scatter(mask(torch.uint8, d), x(d)),
    "where": lambda d: torch.where(mask(torch.int64, d), x(d), 0.0), "masked_fill": lambda d: x(d).masked_fill(mask(torch.float32, d), 1.0),
    "attention mask": lambda d: F.scaled_dot_product_attention(x(d), x(d), x(d), attn_mask=mask(torch.int64, d)[:, :2]),
    "masked_fill, complex": lambda d: x(d).masked_fill(x(d) > 0, 1j), "masked_fill, complex tensor": lambda d: x(d).masked_fill(x(d) > 0, T(1j, device=d)),
    "masked_fill, several": lambda d: x(d).masked_fill(x(d) > 0, T([1.0], device=d)), "fill_, several": lambda d: x(d).fill_(x(d)),
    "full of bytes": lambda d: torch.full((2,), 300, dtype=torch.uint8, device=d), "full": lambda d: torch.full((2,), 1e60, device=d),
    "fill_": lambda d: torch.ones(2, dtype=torch.int8, device=d).fill_(-129), "fill_, complex": lambda d: x(d).fill_(1j),
    "scatter": lambda d: torch.ones(2, dtype=torch.uint8, device=d).scatter(0, T([0], device=d), 300),
    "scatter again": lambda d: [torch.ones(2, dtype=torch.uint8, device=d).scatter(0, T([0], device=d), n) for n in (3, 5, 300)],
    "index_fill": lambda d: torch.ones(2, dtype=torch.uint8, device=d).index_fill(0, T([0], device=d), 300), "index_put": lambda d: torch.ones(2, dtype=torch.long, device=d).index_put((T([0], device=d),), T(1.5, device=d)),
    "cross entropy above": lambda d: F.binary_cross_entropy(x(d) * 2, x(d)), "cross entropy below": lambda d: F.binary_cross_entropy(x(d) - 1, x(d)),
    "cross entropy of nan": lambda d: F.binary_cross_entropy(x(d) * float("nan"), x(d)), "huber": lambda d: F.huber_loss(x(d), x(d), delta=0.0),
    "labels that are floats": lambda d: F.multi_margin_loss(x(d), T([0.0, 1], device=d)), "marks that are floats": lambda d: F.multilabel_margin_loss(x(d), x(d)),
    "roll": lambda d: x(d).roll((2, 1), 0), "roll a number": lambda d: T(1.0, device=d).roll(0, 0), "histc": lambda d: x(d).histc(4, 3, 1),
    "bucketize": lambda d: torch.bucketize(x(d), x(d)), "levels": lambda d: torch.fake_quantize_per_tensor_affine(x(d), 0.1, 0, 255, 0), "pads": lambda d: F.max_pool3d(torch.ones(1, 2, 4, 4, device=d), 2, padding=2),
    "unpool": lambda d: F.max_unpool1d(x(d)[None, :1, :2], T([[[0, -1]]], device=d), 2), "unpool a plane": lambda d: F.max_unpool2d(x(d), T([[0, 1, 2], [3, 4, 5]], device=d), 2),
}


@pytest.mark.parametrize("name", REFUSED)
def test_arguments_that_make_no_sense(name):
    for device in ("cpu", "mps"):
        with pytest.raises((RuntimeError, IndexError)):
            REFUSED[name](device)
    assert (x() + 1).sum().item() == pytest.approx(9)


ACCEPTED = {
    "bernoulli": lambda d: torch.bernoulli(T([0.0, 1.0], device=d)), "bernoulli_": lambda d: torch.empty(2, device=d).bernoulli_(T([1.0, 0.0])),
    "normal": lambda d: torch.normal(x(d), torch.zeros_like(x(d))), "poisson": lambda d: torch.poisson(torch.zeros(2, device=d)),
    "full": lambda d: torch.full((2,), 255, dtype=torch.uint8, device=d), "full of inf": lambda d: torch.full((2,), float("inf"), device=d),
    "full of halves": lambda d: torch.full((2,), -65504.0, dtype=torch.float16, device=d), "fill_ by a tensor": lambda d: torch.empty(2, dtype=torch.long, device=d).fill_(T(7.0, device=d)),
    "masked_fill": lambda d: torch.ones(2, dtype=torch.int32, device=d).masked_fill(T([True, False], device=d), 2.7), "masked_fill, inf": lambda d: x(d).masked_fill(x(d) > 0.5, -float("inf")),
    "where": lambda d: torch.where(mask(torch.uint8, d), x(d), 0.0), "cross entropy": lambda d: F.binary_cross_entropy(x(d), 1 - x(d)),
    "cross entropy of nothing": lambda d: F.binary_cross_entropy(x(d)[:0], x(d)[:0], reduction="sum"), "roll": lambda d: x(d).roll((1, 2), (0, 1)), "roll flat": lambda d: x(d).roll(2),
    "zero to the power of a complex zero": lambda d: torch.zeros(2, dtype=torch.complex64, device=d) ** 0j,
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_arguments_at_the_ends_of_their_ranges(name):
    torch.testing.assert_close(ACCEPTED[name]("mps").cpu(), ACCEPTED[name]("cpu"))
