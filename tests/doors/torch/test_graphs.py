# SPDX-License-Identifier: Apache-2.0
"""Graphs of torch.compile that the engine takes whole, forward and backward: nothing runs between executables."""
import pytest
import torch
import torch.nn.functional as F
from torch import nn

FUNCTIONS = {
    "sums": lambda x: (x * x).sum() + x.mean() + x.sum(1).mean(),
    "numbers": lambda x: (x * 2 + 1) / 3 - x.div(4).sub(0.5),
    "masks": lambda x: x.masked_fill(x > 0, 1.5) + x.masked_fill(x < 0, x.new_full((), 2.0)),
    "logic": lambda x: torch.where(torch.logical_and(x > 0, x < 1), x, 0.0),
    "made": lambda x: x + torch.zeros_like(x) + torch.full((4,), 2.0, device=x.device) + x.new_ones(4) + torch.full_like(x, 3),
    "counted": lambda x: x * torch.arange(4, device=x.device) + torch.arange(1, 5, device=x.device),
    "selected": lambda x: x[:, -1] * x[:, 0] + x.select(2, 1).sum(),
    "convolution": lambda x: F.conv2d(x, torch.ones(4, 3, 3, 3, device=x.device) * 0.1, padding=1, stride=(2, 1)),
    "transposed convolution": lambda x: F.conv_transpose2d(x, torch.ones(3, 2, 2, 2, device=x.device) * 0.1, stride=2),
}


@pytest.fixture
def left_out(monkeypatch):
    """The ops that some graph did not take."""
    from torch_anymps import compiler, dynamo

    found = []
    compile_graph = dynamo.compile_graph

    def watched(module, *weights):
        found.extend(str(node.target) for node in module.graph.nodes if node.op == "call_function" and not compiler.is_supported(node))
        return compile_graph(module, *weights)

    monkeypatch.setattr(dynamo, "compile_graph", watched)
    torch._dynamo.reset()
    return found


def gradient(function, x):
    result = function(x)
    result.sum().backward()
    return result.detach().cpu(), x.grad.cpu()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_whole(name, left_out):
    given = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    expected = gradient(FUNCTIONS[name], given.clone().requires_grad_())
    run = torch.compile(FUNCTIONS[name], backend="anymps")
    for got, wanted in zip(gradient(run, given.to("mps").requires_grad_()), expected):
        torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)
    assert not left_out


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.conv, self.norm, self.out = nn.Embedding(11, 6), nn.Conv1d(6, 8, 3, bias=True), nn.BatchNorm1d(8), nn.Linear(8, 5)

    def forward(self, x):
        return self.out(F.relu(self.norm(self.conv(self.words(x).transpose(1, 2)))).mean(2))


def test_layers_train_and_infer(left_out):
    torch.manual_seed(0)
    ours, theirs = Layers().to("mps"), Layers()
    theirs.load_state_dict({name: value.cpu() for name, value in ours.state_dict().items()})
    run = torch.compile(ours, backend="anymps")
    x, y = torch.randint(11, (4, 9)), torch.randint(5, (4,))
    for _ in range(2):
        F.cross_entropy(run(x.to("mps")), y.to("mps")).backward()
        F.cross_entropy(theirs(x), y).backward()
    for (name, mine), other in zip(ours.named_parameters(), theirs.parameters()):
        torch.testing.assert_close(mine.grad.cpu(), other.grad, rtol=1e-3, atol=1e-4, msg=lambda text, name=name: f"{name}: {text}")
    torch.testing.assert_close(ours.norm.running_var.cpu(), theirs.norm.running_var, rtol=1e-4, atol=1e-5)
    ours.eval(), theirs.eval()
    with torch.no_grad():
        torch.testing.assert_close(run(x.to("mps")).cpu(), theirs(x), rtol=1e-4, atol=1e-4)
    assert not left_out


@pytest.mark.parametrize("how", [{}, {"is_causal": True}, {"dropout_p": 1e-9}], ids=["plain", "causal", "composed"])
@pytest.mark.parametrize("dynamic", [True, None])
def test_attention_of_several_lengths(dynamic, how):
    """From the second length on the extents are symbols while the graph is traced."""
    torch._dynamo.reset()
    attend = torch.compile(lambda q, k, **how: F.scaled_dot_product_attention(q, k, k.sin(), enable_gqa=True, **how), backend="anymps", dynamic=dynamic)
    for batch, length in ((2, 5), (3, 7), (2, 9)):
        q, k = (torch.linspace(-1, 1, batch * n * length * 4).reshape(batch, n, length, 4).cos() for n in (4, 2))
        found = []
        for device in ("mps", "cpu"):
            x, y = (t.to(device).requires_grad_() for t in (q, k))
            z = attend(x, y, **how) if device == "mps" else F.scaled_dot_product_attention(x, y, y.sin(), is_causal="is_causal" in how, enable_gqa=True)
            found.append([t.detach().cpu() for t in (z, *torch.autograd.grad(z.square().sum(), (x, y)))])
        for ours, theirs in zip(*found):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
