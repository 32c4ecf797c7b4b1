# SPDX-License-Identifier: Apache-2.0
"""torch.func, nested tensors, deterministic mode and sizes above 2^31: what programs ask of any device."""
import os

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, stack_module_state, vjp, vmap


def both(compute, *tensors):
    there = compute(*(t.clone().to("mps") for t in tensors))
    here = compute(*(t.clone() for t in tensors))
    torch.testing.assert_close(torch.utils._pytree.tree_map(torch.Tensor.cpu, there), here, rtol=1e-4, atol=1e-5)


X, W = torch.linspace(-1, 1, 12).reshape(4, 3), torch.linspace(-2, 1, 15).reshape(5, 3)


@pytest.mark.parametrize("compute", [
    lambda x, w: vmap(lambda v: w @ v)(x), lambda x, w: vmap(vmap(torch.sin))(x), lambda x, w: grad(lambda v: (v**3).sum())(x),
    lambda x, w: grad(lambda v: grad(lambda u: (u**3).sum())(v).sum())(x), lambda x, w: jvp(torch.tanh, (x,), (x * 2,))[1],
    lambda x, w: vjp(lambda v: v @ w.t(), x)[1](torch.ones_like(x @ w.t()))[0], lambda x, w: jacrev(lambda v: v.softmax(-1))(x),
    lambda x, w: jacfwd(lambda v: v.softmax(-1))(x), lambda x, w: hessian(lambda v: (v.tanh() * v).sum())(x[0]),
    lambda x, w: vmap(grad(lambda v: (w @ v).square().sum()))(x), lambda x, w: jvp(lambda v: vmap(lambda u: w @ u)(v), (x,), (x,))[1],
    lambda x, w: jvp(lambda v: nn.functional.linear(v, w), (x,), (x + 1,))[1],
    lambda x, w: jvp(lambda v: nn.functional.linear(v, w, w[:, 0]), (x,), (x + 1,))[1]],
    ids="vmap vmap2 grad grad2 jvp vjp jacrev jacfwd hessian vmap_grad jvp_vmap jvp_linear jvp_linear_bias".split())
def test_transforms(compute):
    both(compute, X, W)


def test_gradients_of_each_sample_and_ensembles():
    def compute(x, y):
        torch.manual_seed(0)
        models = [nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(18, 3)).to(x.device) for _ in range(3)]
        parameters = {k: v.detach() for k, v in models[0].named_parameters()}
        loss = lambda p, x, y: nn.functional.cross_entropy(functional_call(models[0], p, (x[None],)), y[None])
        each = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
        stacked = {k: v.detach() for k, v in stack_module_state(models)[0].items()}
        return each, vmap(lambda p: functional_call(models[0], p, (x,)))(stacked)
    both(compute, torch.linspace(-1, 1, 100).reshape(4, 1, 5, 5), torch.tensor([0, 1, 2, 1]))


@pytest.mark.parametrize("how", ["plain", "causal", "mask", "numbers", "empty_row"])
@pytest.mark.parametrize("compute", [
    lambda f, q, k, v: vmap(f)(q[None].expand(3, *q.shape), k.expand(3, *k.shape) * 2, v.expand(3, *v.shape)),
    lambda f, q, k, v: vmap(f, in_dims=(0, None, None))(q.expand(3, *q.shape), k, v), lambda f, q, k, v: jvp(f, (q, k, v), (q.sin(), v, k))[1],
    lambda f, q, k, v: jacrev(f)(q, k, v), lambda f, q, k, v: jacfwd(f, argnums=2)(q, k, v),
    lambda f, q, k, v: hessian(lambda x: f(x, k, v).square().sum())(q), lambda f, q, k, v: vmap(grad(lambda x: f(x, k, v).sum()))(q.expand(2, *q.shape)),
    lambda f, q, k, v: grad(lambda x: grad(lambda y: f(q, y, x).square().sum())(k).sin().sum())(v)],
    ids="vmap vmap_one jvp jacrev jacfwd hessian vmap_grad grad_grad".split())
def test_attention(compute, how):
    """Fused where there are no derivatives but one backward; the same numbers in every transform."""
    mask = torch.arange(12).reshape(3, 4) % 3 > 0
    mask[0] |= how != "empty_row"
    mask[0] &= how != "empty_row"
    options = {"plain": {}, "causal": {"is_causal": True}, "numbers": {"attn_mask": mask * 0.7}}.get(how, {"attn_mask": mask})
    parts = [torch.linspace(-1, 1, 2 * n * 5).cos().mul(3).sin().reshape(1, 2, n, 5).roll(n) for n in (3, 4, 4)]

    def both_ways(composed):
        def f(q, k, v):
            given = {name: o.to(q.device, q.dtype if o.is_floating_point() else o.dtype) if isinstance(o, torch.Tensor) else o for name, o in options.items()}
            if not composed:
                return nn.functional.scaled_dot_product_attention(q, k, v, **given)
            bias = given.get("attn_mask", torch.ones(3, 4).tril() > 0 if how == "causal" else torch.ones(3, 4) > 0)
            bias = torch.zeros(3, 4, dtype=q.dtype).masked_fill(~bias, -torch.inf) if bias.dtype == torch.bool else bias
            return torch.ops.aten._scaled_dot_product_attention_math(q, k, v, bias)[0]
        return f
    there = compute(both_ways(False), *(p.to("mps", torch.float64) for p in parts))
    here = compute(both_ways(True), *(p.double() for p in parts))
    torch.testing.assert_close(torch.utils._pytree.tree_map(torch.Tensor.cpu, there), here)


def test_attention_that_is_composed_takes_masks():
    """With a dropout, and of other ranks: True takes part, and what does not has no weight."""
    q, mask = torch.linspace(-1, 1, 24).cos().reshape(1, 2, 3, 4), torch.tensor([[1, 0, 1], [1, 1, 0], [0, 0, 1]]).bool()
    for x, options in ((q, {"dropout_p": 1e-9}), (q[None], {}), (q[0, 0], {}), (q[0], {"dropout_p": 1e-9}), (q, {"scale": 0.0})):
        found = nn.functional.scaled_dot_product_attention(*[x.to("mps")] * 3, attn_mask=mask.to("mps"), **options)
        options.pop("dropout_p", None)
        torch.testing.assert_close(found.cpu(), nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask, **options))


def test_a_penalty_on_the_gradient_of_attention():
    found = []
    for device in ("mps", "cpu"):
        x = torch.linspace(-1, 1, 30, dtype=torch.float64).reshape(1, 2, 3, 5).to(device).requires_grad_()
        attend = nn.functional.scaled_dot_product_attention if device == "mps" else lambda q, k, v: torch.ops.aten._scaled_dot_product_attention_math(q, k, v)[0]
        slope, = torch.autograd.grad(attend(x, x * 2, x.sin()).square().sum(), x, create_graph=True)
        slope.square().sum().backward()
        found.append(x.grad.cpu())
    torch.testing.assert_close(*found)


def test_jagged_tensors():
    parts = [torch.linspace(0, 1, 6).reshape(2, 3), torch.linspace(1, 3, 12).reshape(4, 3), torch.zeros(0, 3)]

    def compute(w, *parts):
        x = torch.nested.nested_tensor(list(parts), layout=torch.jagged, device=w.device, requires_grad=True)
        y = nn.functional.linear(x * 2, w).relu()
        padded = y.to_padded_tensor(-1.0)
        (padded * padded).sum().backward()
        return padded.detach(), x.grad.values(), y.sum(1).detach(), nn.functional.layer_norm(x, (3,)).values().detach()
    both(compute, W, *parts)


def test_an_encoder_with_padding():
    """The way that PyTorch takes in inference, where other devices make nested tensors."""
    def compute(x, padding):
        torch.manual_seed(0)
        model = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2).eval().to(x.device)
        with torch.no_grad():
            return model(x, src_key_padding_mask=padding) * ~padding[..., None]
    both(compute, torch.linspace(-1, 1, 160).reshape(2, 5, 16), torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 0]]).bool())


def test_deterministic_mode():
    x, places = torch.linspace(-1, 1, 12).reshape(4, 3), torch.tensor([0, 2, 0, 0])

    def compute(x, i):
        return (x.index_add(0, i, x), x.scatter_add(0, i[:, None].expand(4, 3), x), x.index_put((i,), x, accumulate=True),
                x.put(i, x[0].repeat(2)[:4], accumulate=True), x.cumsum(0), torch.bincount(i), x.kthvalue(2, 0).values, x.median(0).values)
    torch.use_deterministic_algorithms(True)
    try:
        both(compute, x, places)
        assert torch.empty(5, device="mps").isnan().all() and torch.empty_strided((2, 2), (1, 2), device="mps").isnan().all()
        assert (torch.empty(3, dtype=torch.int32, device="mps") == torch.iinfo(torch.int32).max).all()
        assert torch.empty(0, device="mps").resize_(3).isnan().all()
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.skipif(not os.environ.get("ANYMPS_FULL_TESTS"), reason="takes 8 GB: ANYMPS_FULL_TESTS=1")
def test_more_than_2_to_the_31_elements():
    count = 2**31 + 8
    x = torch.zeros(count, dtype=torch.uint8, device="mps")
    x[-3:] = 7
    x[5] = 1
    assert x[2**31 - 1:].sum().item() == 21 and x.sum(dtype=torch.int64).item() == 22
    assert (x == 7).nonzero().flatten().tolist() == [count - 3, count - 2, count - 1]
    assert x.argmax().item() == count - 3 and (x + 1)[-1].item() == 8 and x.flip(0)[0].item() == 7
    assert x.view(2, -1).t()[-1].tolist() == [0, 7] and x.index_select(0, torch.tensor([count - 1, 5], device="mps")).tolist() == [7, 1]
    assert torch.equal(x[-8:].cpu(), torch.tensor([0, 0, 0, 0, 0, 7, 7, 7], dtype=torch.uint8))
