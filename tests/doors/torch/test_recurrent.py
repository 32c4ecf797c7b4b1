# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers with all their options, and whatever asks for their gradients: outputs, states and gradients are the CPU's."""
import pytest
import torch
from torch import nn

OPTIONS = {
    "plain": {},
    "both ways": {"bidirectional": True},
    "two": {"num_layers": 2},
    "three, both ways, batch first": {"num_layers": 3, "bidirectional": True, "batch_first": True},
    "no biases": {"bias": False, "num_layers": 2},
    "projected": {"proj_size": 3, "num_layers": 2, "bidirectional": True},
    "f64": {"num_layers": 2, "bidirectional": True, "dtype": torch.float64},
    "dropout of all": {"num_layers": 2, "dropout": 1.0},
}


def layer(kind, device, **options):
    torch.manual_seed(0)
    return getattr(nn, kind)(5, 8, **options).to(device)


def sequence(device, *shape, dtype=torch.float32):
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(1)).to(device).requires_grad_()


def weighted(tensors):
    """Their sum, each element with another weight."""
    return sum((t * torch.linspace(-1, 1, t.numel(), device=t.device, dtype=t.dtype).reshape(t.shape)).sum() for t in tensors)


def same(program, tolerance=1e-5, **options):
    """`program(device, **options)` gives a list of tensors."""
    found, expected = program("mps", **options), program("cpu", **options)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected):
        assert ours.device.type == "mps"
        torch.testing.assert_close(ours.cpu(), theirs, rtol=tolerance, atol=tolerance)


def outputs_and_gradients(device, kind="LSTM", **options):
    model, dtype = layer(kind, device, **options), options.get("dtype", torch.float32)
    x = sequence(device, *((3, 6, 5) if options.get("batch_first") else (6, 3, 5)), dtype=dtype)
    states = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    h = sequence(device, states, 3, options.get("proj_size") or 8, dtype=dtype)
    c = sequence(device, states, 3, 8, dtype=dtype)
    y, last = model(x, (h, c) if kind == "LSTM" else h)
    made = [y, *(last if kind == "LSTM" else [last])]
    given = [x, h, *([c] if kind == "LSTM" else []), *model.parameters()]
    return [*(t.detach() for t in made), *torch.autograd.grad(weighted(made), given)]


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("name", OPTIONS)
def test_options(name, kind):
    if kind != "LSTM" and "proj_size" in OPTIONS[name]:
        pytest.skip("only LSTM has projections")
    same(outputs_and_gradients, kind=kind, **OPTIONS[name])


def packed(device):
    model, x = layer("LSTM", device, num_layers=2, bidirectional=True), sequence(device, 6, 3, 5)
    lengths = torch.tensor([4, 6, 2])
    y, (h, c) = model(nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False))
    y = nn.utils.rnn.pad_packed_sequence(y)[0]
    return [y.detach(), *torch.autograd.grad(weighted([y, h, c]), [x, *model.parameters()])]


def without_a_batch(device):
    model, x = layer("LSTM", device), sequence(device, 6, 5)
    y, _ = model(x)
    return [y.detach(), *torch.autograd.grad(weighted([y]), [x, *model.parameters()])]


def of_the_last_state_alone(device):
    model, x = layer("LSTM", device, num_layers=2), sequence(device, 6, 3, 5)
    _, (h, _) = model(x)
    return list(torch.autograd.grad(weighted([h[-1]]), [x, model.weight_ih_l0]))


def of_frozen_weights(device):
    model, x = layer("LSTM", device, num_layers=2).requires_grad_(False), sequence(device, 6, 3, 5)
    return list(torch.autograd.grad(weighted([model(x)[0]]), [x]))


def twice(device):
    model, x = layer("LSTM", device, num_layers=2, bidirectional=True), sequence(device, 6, 3, 5)
    (slope,) = torch.autograd.grad(model(x)[0].pow(2).sum(), x, create_graph=True)
    return list(torch.autograd.grad(slope.pow(2).sum(), [x, model.weight_hh_l0]))


def by_torch_func(device):
    model, x = layer("LSTM", device), sequence(device, 6, 3, 5).detach()
    loss = lambda weights: torch.func.functional_call(model, weights, (x,))[0].pow(2).sum()
    return list(torch.func.grad(loss)(dict(model.named_parameters())).values())


def of_a_cell(device):
    model, x = nn.LSTMCell(5, 8), sequence(device, 3, 5)
    torch.manual_seed(0)
    for p in model.parameters():
        nn.init.normal_(p)
    model = model.to(device)
    return list(torch.autograd.grad(weighted(model(x, model(x))), [x, *model.parameters()]))


@pytest.mark.parametrize("program", [packed, without_a_batch, of_the_last_state_alone, of_frozen_weights, twice, by_torch_func, of_a_cell])
def test_gradients(program):
    same(program)


def whole(device):
    """The op that upstream's nn.LSTM calls."""
    model, x = layer("LSTM", device, num_layers=2, bidirectional=True, batch_first=True), sequence(device, 3, 6, 5)
    h, c = sequence(device, 4, 3, 8), sequence(device, 4, 3, 8)
    if device == "mps":
        y, hn, cn = torch._lstm_mps(x, [h, c], list(model.parameters()), True, 2, 0.0, True, True, True)[:3]
    else:
        y, (hn, cn) = model(x, (h, c))
    return [y.detach(), *torch.autograd.grad(weighted([y, hn, cn]), [x, h, c, *model.parameters()])]


def test_upstreams_op():
    same(whole)


def test_upstreams_op_keeps_what_dropout_kept():
    """With a dropout of 1 nothing reaches the second layer, and no gradient the first."""
    model, x = layer("LSTM", "mps", num_layers=2), sequence("mps", 6, 3, 5)
    zeros = torch.zeros(2, 3, 8, device="mps")
    y = torch._lstm_mps(x, [zeros, zeros], list(model.parameters()), True, 2, 1.0, True, False, False)[0]
    to_first, to_second = torch.autograd.grad(y.pow(2).sum(), [model.weight_ih_l0, model.weight_hh_l1])
    assert to_first.count_nonzero() == 0 and to_second.count_nonzero() > 0


def test_dropout_between_layers():
    torch.manual_seed(0)
    model, x = layer("LSTM", "mps", num_layers=2, dropout=0.5), sequence("mps", 6, 3, 5)
    first, second = model(x)[0], model(x)[0]
    assert not first.equal(second)
    assert model.eval()(x)[0].equal(model(x)[0])
