# SPDX-License-Identifier: Apache-2.0
"""Where PyTorch leaves the precision to the device."""
import pytest
import torch
from torch.nn import functional as F


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
