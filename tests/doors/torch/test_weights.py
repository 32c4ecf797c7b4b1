# SPDX-License-Identifier: Apache-2.0
"""Weights of compiled graphs are constants as long as they stay the same: whoever changes one, by whatever way, is noticed."""
import copy

import pytest
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.out = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 5)
        with torch.no_grad():
            self.norm.running_mean.uniform_(-1, 1)
            self.norm.running_var.uniform_(0.5, 2)
            self.norm.weight.uniform_(0.5, 2)

    def forward(self, x):
        return self.out(self.norm(self.conv(x)).relu().mean((2, 3)))


def shader(net):
    kernel = torch.mps.compile_shader("kernel void halve(device float* x, uint i [[thread_position_in_grid]]) { x[i] *= 0.5f; }")
    kernel.halve(net.conv.weight.data)


def optimizer(how):
    def step(net):
        for parameter in net.parameters():
            parameter.grad = torch.ones_like(parameter)
        torch.optim.SGD(net.parameters(), lr=0.1, **how).step()

    return step


def in_place(change):
    def apply(net):
        with torch.no_grad():
            change(net)

    return apply


CHANGES = {
    "in place": in_place(lambda net: net.conv.weight.mul_(0.5)),
    "one element": in_place(lambda net: net.out.weight[1].__setitem__(2, 7)),
    "through data": lambda net: net.conv.weight.data.mul_(0.5),
    "one element through data": lambda net: net.conv.bias.data.__setitem__(1, 7),
    "copied from the host": lambda net: net.conv.weight.data.copy_(torch.ones(8, 3, 3, 3)),
    "another tensor": lambda net: setattr(net.conv.weight, "data", torch.full((8, 3, 3, 3), 0.1, device="mps")),
    "another parameter": lambda net: setattr(net.out, "bias", nn.Parameter(torch.ones(5, device="mps"))),
    "a buffer": lambda net: net.norm.running_mean.fill_(0.5),
    "a buffer through data": lambda net: net.norm.running_var.data.fill_(4),
    "a list through data": lambda net: torch._foreach_mul_([p.data for p in net.parameters()], 0.5),
    "the state": lambda net: net.load_state_dict({name: value * 0.5 for name, value in net.state_dict().items()}),
    "an optimizer": optimizer({"foreach": False}),
    "an optimizer over lists": optimizer({"foreach": True}),
    "a fused optimizer": optimizer({"fused": True}),
    "a shader": shader,
    "a step of training": lambda net: (net.train()(torch.ones(2, 3, 8, 8, device="mps")), net.eval()),
    "out=": in_place(lambda net: torch.mul(net.out.weight, 0.5, out=net.out.weight.data)),
    "a view of the storage": lambda net: torch.empty(0, device="mps").set_(net.out.weight.untyped_storage()).fill_(0.25),
}


@pytest.fixture(autouse=True)
def anew():
    torch._dynamo.reset()
    torch.manual_seed(0)


def check(run, net, x):
    with torch.no_grad():
        expected = copy.deepcopy(net).to("cpu")(x.cpu())
        for _ in range(3):
            torch.testing.assert_close(run(x).cpu(), expected, rtol=1e-4, atol=1e-5)
    return expected


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_noticed(name):
    net, x = Net().to("mps").eval(), torch.randn(2, 3, 8, 8, device="mps")
    run = torch.compile(net, backend="anymps")
    before = check(run, net, x)
    CHANGES[name](net)
    assert not torch.allclose(check(run, net, x), before)


def test_in_inference_mode():
    net, x = Net().to("mps").eval(), torch.randn(2, 3, 8, 8, device="mps")
    with torch.inference_mode():
        made = Net().to("mps").eval()  # whose tensors have no versions
        for model in (net, made):
            run = torch.compile(model, backend="anymps")
            check(run, model, x)
            model.conv.weight.mul_(0.5)
            check(run, model, x)


def test_two_nets_of_a_kind_take_turns():
    nets, x = [Net().to("mps").eval() for _ in range(2)], torch.randn(2, 3, 8, 8, device="mps")
    runs = [torch.compile(net, backend="anymps") for net in nets]
    for _ in range(3):
        for run, net in zip(runs, nets):
            check(run, net, x)


def test_memory_that_another_net_gets():
    x = torch.randn(2, 3, 8, 8, device="mps")

    @torch.compile(backend="anymps")
    def apply(net, x):
        return net(x)

    for _ in range(4):
        net = Net().to("mps").eval()
        check(lambda x, net=net: apply(net, x), net, x)
        del net


def test_a_buffer_that_changes_with_each_call():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.register_buffer("calls", torch.zeros(4))
            self.register_buffer("given", torch.zeros(4))

        def forward(self, x):
            self.calls += 1
            return self.layer(x) + self.calls + self.given

    net = Counting().to("mps").eval()
    run, x = torch.compile(net, backend="anymps"), torch.randn(2, 4, device="mps")
    with torch.no_grad():
        for i in range(1, 12):
            net.given.fill_(i)
            torch.testing.assert_close(run(x), net.layer(x) + 2 * i)


def test_weights_that_change_with_each_call_are_not_kept_again_and_again():
    net = nn.Linear(512, 512).to("mps")
    run, x = torch.compile(net, backend="anymps"), torch.randn(2, 512, device="mps")
    reserved = []
    with torch.no_grad():
        for i in range(40):
            net.weight.fill_(i)
            torch.testing.assert_close(run(x), net(x))
            reserved.append(torch.mps.driver_allocated_memory())
    assert reserved[-1] <= reserved[10]
