# SPDX-License-Identifier: Apache-2.0
"""Models whose weights and activations are rounded to few bits, while they are trained and after it."""

import numpy as np
import paddle
import pytest
import support  # noqa: F401  strict mode
from paddle import nn
from paddle.quantization import PTQ, QAT, QuantConfig
from paddle.quantization.observers import AbsmaxObserver
from paddle.quantization.quanters import FakeQuanterWithAbsMaxObserver


def net():
    layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    random = np.random.default_rng(0)
    for parameter in layers.parameters():
        parameter.set_value(random.standard_normal(parameter.shape).astype("float32"))
    return layers


def observed(x):
    scheme = PTQ(QuantConfig(activation=AbsmaxObserver(), weight=AbsmaxObserver()))
    layers = net()
    layers.eval()
    watched = scheme.quantize(layers)
    watched(x)
    converted = scheme.convert(watched)
    converted.eval()
    return converted


def trained(x):
    scheme = QAT(QuantConfig(*(FakeQuanterWithAbsMaxObserver(moving_rate=0.9) for _ in range(2))))
    layers = scheme.quantize(net())
    layers.train()
    optimizer = paddle.optimizer.SGD(0.01, parameters=layers.parameters())
    for _ in range(3):
        (layers(x) ** 2).mean().backward()
        optimizer.step()
        optimizer.clear_grad()
    layers.eval()
    return layers


@pytest.mark.parametrize("model", [observed, trained])
def test_outputs(model):
    results = []
    for place in ("cpu", "mps"):
        with paddle.device.device_guard(place):
            x = paddle.to_tensor(np.random.default_rng(1).standard_normal((5, 8)).astype("float32"), place=place)
            results.append(model(x)(x))
    support.compare(results[1], results[0], tolerance=(1e-5, 1e-5))
    assert len(np.unique(results[0].numpy())) > 10, "the example tells nothing"
