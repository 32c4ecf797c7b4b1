# SPDX-License-Identifier: Apache-2.0
"""Training for quantization: observers follow what passes, and tensors are rounded by what they have seen, as on the CPU."""
import pytest
import torch
from torch import nn
from torch.ao import quantization as Q


def passed(device, rows, symmetric, steps=3, empty=False, on=(1, 1)):
    torch.manual_seed(0)
    count = 0 if empty else 4 if rows else 1
    low, high = torch.full((count,), float("inf"), device=device), torch.full((count,), -float("inf"), device=device)
    scale, zero = torch.ones(count, device=device), torch.zeros(count, dtype=torch.int32, device=device)
    observe, quantize = (torch.tensor([flag], device=device) for flag in on)
    found = []
    for step in range(steps):
        x = (torch.randn(4, 3, 2) * (step + 1) + 0.3).to(device).requires_grad_()
        y = torch.fused_moving_avg_obs_fake_quant(x, observe, quantize, low, high, scale, zero, 0.1, -8, 7, 0, rows, symmetric)
        found += [y, *torch.autograd.grad((y * y).sum(), x), low.clone(), high.clone(), scale.clone(), zero.clone()]
    return found


@pytest.mark.parametrize("options", [dict(rows=False, symmetric=False), dict(rows=False, symmetric=True), dict(rows=True, symmetric=False),
                                     dict(rows=True, symmetric=True), dict(rows=True, symmetric=False, empty=True),
                                     dict(rows=False, symmetric=False, on=(1, 0)), dict(rows=False, symmetric=False, on=(0, 0))], ids=str)
def test_observing_and_rounding(options):
    for ours, theirs in zip(passed("mps", **options), passed("cpu", **options)):
        assert ours.device.type == "mps"
        torch.testing.assert_close(ours.cpu(), theirs)


def trained(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5)).train()
    model.qconfig = Q.get_default_qat_qconfig("fbgemm")
    model = Q.prepare_qat(model).to(device)
    step, losses = torch.optim.SGD(model.parameters(), lr=0.05), []
    for _ in range(3):
        loss = model(torch.randn(2, 3, 8, 8).to(device)).square().mean()
        step.zero_grad()
        loss.backward()
        step.step()
        losses.append(loss.item())
    return losses, [b.cpu() for name, b in model.named_buffers() if name.endswith(("scale", "min_val", "max_val"))]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_quantization_aware_training():
    (ours, ours_seen), (theirs, theirs_seen) = trained("mps"), trained("cpu")
    assert ours == pytest.approx(theirs, rel=1e-3) and len(set(ours)) == 3
    torch.testing.assert_close(ours_seen, theirs_seen, rtol=1e-3, atol=1e-5)


def test_what_does_not_fit_is_refused():
    one = torch.ones(1, device="mps")
    with pytest.raises(RuntimeError, match="running extrema"):
        torch.fused_moving_avg_obs_fake_quant(torch.ones(4, 3, device="mps"), one, one, one.clone(), one.clone(), one.clone(), one.int(), 0.1, 0, 255, 0, True, False)
