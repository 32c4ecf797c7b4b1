# SPDX-License-Identifier: Apache-2.0
"""Products that op_db does not have: small types, scales and packed weights; and what alpha, beta and views change."""
import math

import pytest
import torch

TOLERANCE = {torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 3e-2}


def close(ours, expected):
    assert ours.device.type == "mps"
    limit = TOLERANCE[expected.dtype]
    torch.testing.assert_close(ours.cpu(), expected, rtol=limit, atol=limit)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_weights_of_8_bits(dtype):
    x, scales = torch.randn(8, 64).to(dtype), (torch.rand(32) * 0.01).to(dtype)
    w = torch.randint(-128, 127, (32, 64), dtype=torch.int8)
    close(torch._weight_int8pack_mm(x.to("mps"), w.to("mps"), scales.to("mps")),
          (x.float() @ w.float().t() * scales.float()).to(dtype))


@pytest.mark.parametrize("tiles", [2, 4, 8])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_weights_of_4_bits(dtype, tiles):
    n, k, group = 64, 128, 32
    w = torch.randint(0, 16, (n, k), dtype=torch.int32)
    packed = torch._convert_weight_to_int4pack((w[:, ::2] << 4 | w[:, 1::2]).to(torch.uint8).to("mps"), tiles)
    assert packed.dtype == torch.int32 and packed.shape == (n // 8, k // (tiles * 16), 32, tiles // 2)
    x, qparams = torch.randn(5, k).to(dtype), (torch.rand(k // group, n, 2) * 0.1).to(dtype)
    scale, zero = (qparams[..., i].t().float().unsqueeze(-1) for i in (0, 1))
    full = ((w.float() - 8).view(n, -1, group) * scale + zero).view(n, k)
    close(torch._weight_int4pack_mm(x.to("mps"), packed, group, qparams.to("mps")), (x.float() @ full.t()).to(dtype))


def test_bytes():
    a, b = (torch.randint(-128, 127, shape, dtype=torch.int8) for shape in ((17, 32), (16, 32)))
    for right in (b.t(), b.t().contiguous()):
        assert torch._int_mm(a.to("mps"), right.to("mps")).cpu().equal(a.int() @ b.t().int())


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_scaled(dtype):
    a, b = torch.randn(16, 32).to(dtype), torch.randn(16, 32).to(dtype).t()
    for scale_a, scale_b in ((torch.tensor(0.5), torch.tensor(3.0)), (torch.rand(16, 1), torch.rand(1, 16))):
        close(torch._scaled_mm(*(t.to("mps") for t in (a, b, scale_a, scale_b)), out_dtype=torch.bfloat16),
              ((a.float() * scale_a) @ (b.float() * scale_b)).bfloat16())


def test_scaled_by_recipe():
    from torch.nn.functional import ScalingType, scaled_mm
    a, b = torch.randn(16, 32).to(torch.float8_e4m3fn), torch.randn(16, 32).to(torch.float8_e4m3fn).t()
    for recipe, shape in ((ScalingType.TensorWise, (1,)), (ScalingType.RowWise, (16, 1))):
        sa, sb = torch.rand(shape), torch.rand(shape)
        ours = scaled_mm(a.to("mps"), b.to("mps"), sa.to("mps"), recipe, sb.to("mps"), recipe, output_dtype=torch.bfloat16)
        close(ours, ((a.float() * sa) @ (b.float() * sb.t() if sb.dim() == 2 else b.float() * sb)).bfloat16())


def test_a_beta_of_0_leaves_self_out():
    a, b = torch.randn(3, 4), torch.randn(4, 5)
    nothing = torch.full((3, 5), math.nan, device="mps")
    close(torch.addmm(nothing, a.to("mps"), b.to("mps"), beta=0), a @ b)
    close(nothing.addmm_(a.to("mps"), b.to("mps"), beta=0, alpha=2), 2 * (a @ b))
    close(torch.addmv(torch.full((3,), math.nan, device="mps"), a.to("mps"), b[:, 0].to("mps"), beta=0), a @ b[:, 0])
    z = torch.randn(3, 3, dtype=torch.complex64)
    ours = torch.addmm(torch.full_like(z, math.nan).to("mps"), z.to("mps"), z.to("mps"), beta=0j, alpha=1j)
    torch.testing.assert_close(ours.cpu(), 1j * (z @ z))


def test_conjugated_views():
    z, w = torch.randn(3, 3, dtype=torch.complex64), torch.randn(3, 3, dtype=torch.complex64)
    for f in (lambda a, b: a.conj() @ b, lambda a, b: a.mH @ b.mH, lambda a, b: torch.vdot(a[0], b[0].conj()),
              lambda a, b: torch.mv(a.mH, b[0]), lambda a, b: torch.bmm(a[None].conj(), b[None])):
        torch.testing.assert_close(f(z.to("mps"), w.to("mps")).cpu(), f(z, w))


def test_nothing_to_sum_over():
    a, b = torch.empty(3, 0), torch.empty(0, 4)
    assert torch.mm(a.to("mps"), b.to("mps")).cpu().equal(torch.zeros(3, 4))
    c = torch.randn(3, 4)
    close(torch.addmm(c.to("mps"), a.to("mps"), b.to("mps"), beta=2), 2 * c)
    assert torch.bmm(torch.empty(2, 3, 0, device="mps"), torch.empty(2, 0, 4, device="mps")).sum().item() == 0
    assert torch.dot(torch.empty(0, device="mps"), torch.empty(0, device="mps")).item() == 0


def test_refusals():
    a = torch.ones(2, 2, device="mps")
    for call in (lambda: a.bool() @ a.bool(), lambda: a @ a.double(), lambda: torch.dot(a, a), lambda: torch.mm(a, a[:1])):
        with pytest.raises(RuntimeError):
            call()


def test_info_and_errors():
    bad = torch.tensor([[1.0, 2.0], [2.0, 1.0]], device="mps")
    assert torch.linalg.cholesky_ex(bad).info.item() == 2
    singular = torch.zeros(2, 2, device="mps")
    assert torch.linalg.inv_ex(singular).info.item() == 1
    for call in (lambda: torch.linalg.cholesky(bad), lambda: torch.linalg.cholesky_ex(bad, check_errors=True),
                 lambda: torch.linalg.inv(singular), lambda: torch.linalg.inv_ex(singular, check_errors=True),
                 lambda: torch.linalg.solve(singular, bad)):
        for _ in range(2):  # the second time it is recalled how to compute
            with pytest.raises(torch.linalg.LinAlgError):
                call()


def quantized(device, per_channel):
    x = (torch.randn(4, 5, 6, generator=torch.Generator().manual_seed(1)) * 3).to(device).requires_grad_()
    if per_channel:
        scale = (torch.arange(1, 6) * 0.05).to(device).requires_grad_()
        zero = torch.tensor([2.3, 0, -1.7, 1, 5], device=device, requires_grad=True)
        y = torch._fake_quantize_learnable_per_channel_affine(x, scale, zero, 1, -10, 20, 0.7)
    else:
        scale, zero = (torch.tensor([v], device=device, requires_grad=True) for v in (0.1, 2.3))
        y = torch._fake_quantize_learnable_per_tensor_affine(x, scale, zero, -10, 20, 0.7)
    y.backward(x.detach())
    z = x.detach()
    steps, zeros = scale.detach().expand(5).contiguous(), zero.detach().expand(5).round().int()
    return [t.detach().cpu() for t in (
        y, x.grad, scale.grad, zero.grad, torch.fake_quantize_per_tensor_affine(z, 0.1, 3, -10, 20),
        torch.fake_quantize_per_tensor_affine(z.half(), 0.1, 3, -10, 20),
        torch.fake_quantize_per_tensor_affine(z, steps[:1], zeros[:1], -10, 20),
        torch.fake_quantize_per_channel_affine(z, steps, zeros, 1, -10, 20),
        torch.fake_quantize_per_channel_affine(z, steps, zeros.float() + 0.25, 1, -10, 20))]


@pytest.mark.parametrize("per_channel", [False, True])
def test_levels_of_quantized_types(per_channel):
    torch.testing.assert_close(quantized("mps", per_channel), quantized("cpu", per_channel), rtol=1e-4, atol=1e-5)
