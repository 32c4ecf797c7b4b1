# SPDX-License-Identifier: Apache-2.0
"""Images that lie channels last stay so, through ops and their gradients, as on the CPU."""
import pytest
import torch
import torch.nn.functional as F


def weight(x, *shape):
    return torch.linspace(-1, 1, torch.Size(shape).numel(), device=x.device).reshape(shape)


OPS = {
    "add": lambda x: x + 1, "relu": F.relu, "gelu": F.gelu, "silu": F.silu, "hardswish": F.hardswish, "sigmoid": torch.sigmoid, "elu": F.elu, "clamp": lambda x: x.clamp(0, 1),
    "prelu": lambda x: F.prelu(x, weight(x, 4)), "where": lambda x: torch.where(x > 0, x, 0.5 * x), "masked_fill": lambda x: x.masked_fill(x > 0, 2), "lerp": lambda x: x.lerp(x * 2, 0.3),
    "compared": lambda x: x > 0, "of a part": lambda x: x * x[:, :1], "half": lambda x: x.half(), "power": lambda x: x**2, "clone": lambda x: x.clone(), "like": torch.zeros_like,
    "conv": lambda x: F.conv2d(x, weight(x, 3, 4, 3, 3)), "transposed conv": lambda x: F.conv_transpose2d(x, weight(x, 4, 3, 2, 2)), "depthwise": lambda x: F.conv2d(x, weight(x, 4, 1, 3, 3), groups=4),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True), "batch_norm, known": lambda x: F.batch_norm(x, weight(x, 4), weight(x, 4) + 2), "group_norm": lambda x: F.group_norm(x, 2),
    "dropout": lambda x: F.dropout(x, 0.5), "max_pool": lambda x: F.max_pool2d(x, 2), "avg_pool": lambda x: F.avg_pool2d(x, 2), "adaptive": lambda x: F.adaptive_avg_pool2d(x, 2),
    "nearest": lambda x: F.interpolate(x, scale_factor=2), "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), "cat": lambda x: torch.cat([x, x], 1),
    "softmax": lambda x: x.softmax(1), "sum": lambda x: x.sum(1, keepdim=True), "mean": lambda x: x.mean((2, 3), keepdim=True), "pad": lambda x: F.pad(x, (1, 1)),
    "reflected": lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
}


@pytest.mark.parametrize("name", OPS)
def test_results_and_gradients(name):
    found = []
    for device in ("mps", "cpu"):
        x = torch.linspace(-1, 2, 2 * 4 * 5 * 6, device=device).reshape(2, 4, 5, 6).to(memory_format=torch.channels_last).requires_grad_()
        y = OPS[name](x)
        strides = [y.stride()]
        if y.requires_grad:  # also where the gradient comes from a sum, which lies in no order
            strides += [torch.autograd.grad(y.sum(), x, retain_graph=True)[0].stride(), torch.autograd.grad(y, x, torch.ones_like(y))[0].stride()]
        found.append(strides)
    assert found[0] == found[1]
