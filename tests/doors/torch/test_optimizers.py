# SPDX-License-Identifier: Apache-2.0
"""Training with each optimizer of PyTorch, one tensor at a time, in lists and fused: the losses of the CPU."""
import pytest
import torch

OPTIMIZERS = {
    "SGD": [{"lr": 0.05}, {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
            {"lr": 0.05, "momentum": 0.9, "dampening": 0.2, "maximize": True}],
    "Adam": [{}, {"amsgrad": True, "weight_decay": 0.1}, {"maximize": True}],
    "AdamW": [{}, {"amsgrad": True, "maximize": True}],
    "Adagrad": [{}, {"lr_decay": 0.1, "weight_decay": 0.1}],
    "RMSprop": [{}, {"centered": True, "momentum": 0.5}],
    "Adadelta": [{"lr": 0.5}], "Adamax": [{}], "NAdam": [{}], "RAdam": [{"lr": 0.05}], "ASGD": [{}], "Rprop": [{}],
    "LBFGS": [{"max_iter": 4}], "Adafactor": [{}], "Muon": [{}],
}
FUSED = {"SGD", "Adam", "AdamW", "Adagrad"}
LISTED = set(OPTIMIZERS) - {"LBFGS", "Muon"}
CASES = [(name, {**options, **form}) for name, variants in OPTIMIZERS.items() for options in variants
         for form in ([{}] + [{"foreach": False}, {"foreach": True}] * (name in LISTED) + [{"fused": True}] * (name in FUSED))]


def losses(device, name, options, steps=10, rate_as_tensor=False, scaler=None, dtype=torch.float32):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 16, bias=name != "Muon"), torch.nn.Tanh(),
                                torch.nn.Linear(16, 4, bias=name != "Muon")).to(device, dtype)
    x, y = torch.randn(8, 6).to(device, dtype), torch.randn(8, 4).to(device, dtype)
    options = dict(options)
    if rate_as_tensor:
        options["lr"] = torch.tensor(0.01, device=device)
    optimizer = getattr(torch.optim, name)(model.parameters(), **options)
    scaler = torch.amp.GradScaler(device, init_scale=2.0**10, growth_interval=3) if scaler else None
    found = []

    def closure():
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        (scaler.scale(loss) if scaler else loss).backward()
        return loss
    for _ in range(steps):
        if name == "LBFGS":
            loss = optimizer.step(closure)
        else:
            loss = closure()
            scaler.step(optimizer) if scaler else optimizer.step()
            if scaler:
                scaler.update()
        found.append(loss.item())
    return torch.tensor(found + ([scaler.get_scale()] if scaler else []))


@pytest.mark.parametrize("name,options", CASES, ids=[f"{n}-{o}" for n, o in CASES])
def test_losses(name, options):
    ours, theirs = (losses(device, name, options) for device in ("mps", "cpu"))
    assert theirs[0] != theirs[-1]
    torch.testing.assert_close(ours, theirs, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("name", sorted(FUSED - {"Adagrad"}))
def test_rate_as_tensor(name):
    options = {"fused": True, **({"momentum": 0.9} if name == "SGD" else {})}
    ours, theirs = (losses(device, name, options, rate_as_tensor=True) for device in ("mps", "cpu"))
    torch.testing.assert_close(ours, theirs, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
@pytest.mark.parametrize("fused", [False, True])
def test_scaled_gradients(name, fused):
    ours, theirs = (losses(device, name, {"fused": fused}, scaler=True) for device in ("mps", "cpu"))
    torch.testing.assert_close(ours, theirs, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("fused", [False, True])
def test_a_step_with_infinities_is_left_out(fused):
    p = torch.ones(3, device="mps", requires_grad=True)
    optimizer = torch.optim.Adam([p], fused=fused)
    scaler = torch.amp.GradScaler("mps", init_scale=8.0)
    scaler.scale((p * torch.tensor([1.0, float("inf"), 1.0], device="mps")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert p.tolist() == [1, 1, 1] and scaler.get_scale() == 4


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("name", sorted(FUSED))
def test_other_types(name, dtype):
    ours, theirs = (losses(device, name, {"fused": True, "lr": 0.01}, dtype=dtype) for device in ("mps", "cpu"))
    torch.testing.assert_close(ours, theirs, rtol=1e-6 if dtype == torch.float64 else 5e-2, atol=1e-6 if dtype == torch.float64 else 2e-2)


def test_clipped_norms():
    for foreach in (None, False):
        values = {}
        for device in ("cpu", "mps"):
            torch.manual_seed(0)
            parameters = [torch.randn(5, 3).to(device).requires_grad_(), torch.randn(7).to(device).requires_grad_()]
            for p in parameters:
                p.grad = p.detach() * 3
            norm = torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=foreach)
            values[device] = [norm.cpu()] + [p.grad.cpu() for p in parameters]
        torch.testing.assert_close(values["mps"], values["cpu"])
