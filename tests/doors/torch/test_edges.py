# SPDX-License-Identifier: Apache-2.0
"""Places where a rule decides and not the arithmetic: halfway between elements, on borders, on edges of bins, in bytes."""
import itertools

import pytest
import torch
import torch.nn.functional as F


@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_grid_sample_on_elements_and_between(mode, padding, corners):
    """A grid that meets elements, the middles between them, and borders exactly; the same with all gradients."""
    line = torch.linspace(-2.5, 2.5, 81, dtype=torch.float64)
    grid = torch.stack(torch.meshgrid(line, line, indexing="ij"), -1)[None]
    for extent in (1, 2, 5, 8):
        x = torch.randn(1, 2, extent, extent, dtype=torch.float64)
        found = []
        for device in ("cpu", "mps"):
            inputs = [t.clone().to(device).requires_grad_() for t in (x, grid)]
            y = F.grid_sample(*inputs, mode=mode, padding_mode=padding, align_corners=corners)
            weights = torch.arange(y.numel(), dtype=torch.float64).cos().reshape(y.shape).to(device)
            found.append([y.detach(), *torch.autograd.grad(y, inputs, weights)])
        for theirs, ours in zip(*found):
            torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-9, atol=1e-9)


# Not to one element of an axis: the CPU stops there at bytes, and repeats a row of other numbers.
SHAPES = list(itertools.product([(10, 20), (1, 7), (9, 4), (64, 33)], [(3, 3), (2, 5), (8, 19), (17, 2)]))


@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("name", ["_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa", "upsample_bilinear2d", "upsample_bicubic2d"])
def test_bytes_are_interpolated_as_on_the_cpu(name, corners):
    op = getattr(torch.ops.aten, name)
    for (extents, sizes), scales in itertools.product(SHAPES, ((None, None), (1.7, 0.9))):
        x = torch.randint(0, 256, (2, 3, *extents), dtype=torch.uint8)
        assert torch.equal(op(x.to("mps"), sizes, corners, *scales).cpu(), op(x, sizes, corners, *scales))


@pytest.mark.parametrize("name", ["_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"])
def test_antialiased_with_aligned_corners(name):
    op = getattr(torch.ops.aten, name)
    for extents, sizes in SHAPES:
        x = torch.randn(2, 3, *extents, dtype=torch.float64)
        torch.testing.assert_close(op(x.to("mps"), sizes, True).cpu(), op(x, sizes, True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_histc_on_the_edges_of_bins(dtype):
    for bins, low, high in ((1000, 0.0, 1e-5), (10, 0.0, 1.0), (7, -0.3, 0.4), (5, 0, 0)):
        x = torch.linspace(low, high or 3, 2 * bins + 1, dtype=dtype)
        assert torch.equal(torch.histc(x.to("mps"), bins, low, high).cpu(), torch.histc(x, bins, low, high))
    for x in (torch.full((5,), 2.0), torch.empty(0), torch.tensor([1.0, float("nan"), 9.0])):
        assert torch.equal(torch.histc(x.to(dtype).to("mps"), 4, 0, 5).cpu(), torch.histc(x.to(dtype), 4, 0, 5))


def test_a_norm_of_one_element_has_no_gradient():
    for norm in (lambda x: F.layer_norm(x, (1,), *parameters(x, 1)), lambda x: F.group_norm(x, 4, *parameters(x, 4))):
        x = torch.randn(6, 4, 1, device="mps", requires_grad=True)
        norm(x).backward(torch.randn(6, 4, 1, device="mps"))
        assert torch.equal(x.grad.cpu(), torch.zeros(6, 4, 1))


def parameters(x, count):
    return torch.randn(count, device=x.device), torch.randn(count, device=x.device)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rms_norm_in_halves_keeps_what_nearly_cancels(dtype):
    x = torch.tensor([[396.0], [-3.0], [0.5]], dtype=dtype)
    grads = []
    for device, kind in (("mps", dtype), ("cpu", torch.float64)):
        y = x.to(device, kind).requires_grad_()
        F.rms_norm(y, (1,), eps=1e-3).backward(torch.full_like(y, 0.7))
        grads.append(y.grad.cpu().double())
    torch.testing.assert_close(*grads, rtol=1e-2, atol=1e-5)


def test_erfinv_near_the_ends():
    x = torch.cat([torch.linspace(-0.9999, 0.9999, 200001), 1 - torch.logspace(-7, -1, 20001)])
    exact = torch.erfinv(x.double())
    assert ((torch.erfinv(x.to("mps")).cpu().double() - exact).abs() <= 3.7e-7 * exact.abs()).all()


TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.bool]


@pytest.mark.parametrize("name", ["mse_loss", "smooth_l1_loss", "huber_loss"])
def test_losses_of_two_types(name):
    loss = getattr(F, name)
    for first, second in itertools.permutations(TYPES, 2):
        x, y = torch.linspace(-1, 2, 6).reshape(2, 3).to(first), torch.linspace(2, 0, 6).reshape(2, 3).to(second)
        if not (first.is_floating_point or (second.is_floating_point and name != "huber_loss")):  # whose result has the first type
            continue
        for reduction in ("mean", "none"):
            torch.testing.assert_close(loss(x.to("mps"), y.to("mps"), reduction=reduction).cpu(), loss(x, y, reduction=reduction))
        if first.is_floating_point and name != "huber_loss":  # of which the CPU wants one type
            grads = []
            for device in ("mps", "cpu"):
                parameter = x.to(device).requires_grad_()
                loss(parameter, y.to(device)).backward()
                grads.append(parameter.grad.cpu())
            torch.testing.assert_close(*grads)


def test_weights_of_another_type():
    x = torch.linspace(0.1, 0.9, 6)
    for dtype in (torch.float64, torch.float16, torch.int64, torch.bool):
        weight = torch.arange(6).to(dtype)
        found = F.binary_cross_entropy(x.to("mps"), x.to("mps"), weight.to("mps"))
        torch.testing.assert_close(found.cpu(), F.binary_cross_entropy(x, x, weight), check_dtype=False)


@pytest.mark.parametrize("search", [torch.searchsorted, lambda sorted, x, **how: torch.bucketize(x, sorted, **how)], ids=["searchsorted", "bucketize"])
def test_search_among_another_type(search):
    """Both are compared in the type that holds them, so that 2.5 lies behind 2."""
    for first, second in itertools.product([t for t in TYPES if t != torch.bool], repeat=2):
        places, x = torch.tensor([0, 1, 2, 3, 5]).to(first), torch.tensor([-0.5, 0, 0.7, 2.5, 3, 9]).to(second)
        for right in (False, True):
            assert torch.equal(search(places.to("mps"), x.to("mps"), right=right).cpu(), search(places, x, right=right))
    assert torch.searchsorted(torch.tensor([1, 2, 3], device="mps"), 2.5).item() == 2


def test_kaiser_windows():
    for length, options in itertools.product((0, 1, 2, 9, 30), ({}, {"periodic": False}, {"periodic": False, "beta": 3.5}, {"dtype": torch.float64})):
        torch.testing.assert_close(torch.kaiser_window(length, device="mps", **options).cpu(), torch.kaiser_window(length, **options))
    with pytest.raises(RuntimeError, match="negative"):
        torch.kaiser_window(-1, device="mps")


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_bounds_that_an_integer_type_does_not_hold(dtype):
    """They bound nothing, or leave nothing, which is an error; in a graph as in a call."""
    ends = torch.iinfo(dtype)
    x = torch.tensor([ends.min, 0, 1, 100, ends.max], dtype=dtype)
    beyond = [-(2**40), -200, -1, 0, 7, 200, 300, 70000, 2**40]
    for low, high in itertools.product([None, *beyond], repeat=2):
        if low is None and high is None:
            continue
        calls = [lambda t: t.clamp(low, high)]
        if high is None:
            calls.append(lambda t: torch.clamp_min(t, low))
        if low is None:
            calls.append(lambda t: t.clone().clamp_max_(high))
        for call in calls:
            try:
                expected = call(x)
            except RuntimeError:
                with pytest.raises(RuntimeError, match="outside the representable range"):
                    call(x.to("mps"))
                continue
            assert torch.equal(call(x.to("mps")).cpu(), expected), (low, high)
    compiled = torch.compile(lambda t: t.clamp(-300, 2**40), backend="anymps")
    assert torch.equal(compiled(x.to("mps")).cpu(), x.clamp(-300, 2**40))
