# SPDX-License-Identifier: Apache-2.0
"""Automatic mixed precision: O1 and O2, float16 with a loss scaler and bfloat16, against float32 on the CPU."""

import contextlib

import models
import numpy as np
import paddle
import paddle.nn.functional as F
import pytest
from paddle import nn


def small_net():
    return nn.Sequential(nn.Conv2D(3, 8, 3, padding=1), nn.BatchNorm2D(8), nn.ReLU(), nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(8, 10))


def small_bert():
    return models.Bert(layers=1, width=32, heads=2)


NETS = {"convolutions": (small_net, lambda: models.images(8, 16)), "bert": (small_bert, lambda: models.sentences(8, 12))}


def train(factory, data, device, level, dtype, weights, steps=6):
    model = models.make(factory, device, weights)
    with paddle.device.device_guard(device):
        x, labels = (paddle.to_tensor(array, place=device) for array in data)
        optimize = paddle.optimizer.AdamW(1e-3, parameters=model.parameters(), multi_precision=level == "O2")
        scaler = paddle.amp.GradScaler(enable=dtype == "float16", init_loss_scaling=256.0)
        if level == "O2":
            model, optimize = paddle.amp.decorate(model, optimize, level="O2", dtype=dtype)
        losses = []
        for _ in range(steps):
            with paddle.amp.auto_cast(level=level, dtype=dtype) if level != "O0" else contextlib.nullcontext():
                loss = F.cross_entropy(model(x).astype("float32"), labels)
            scaler.scale(loss).backward()
            scaler.step(optimize)
            scaler.update()
            optimize.clear_grad()
            losses.append(float(loss))
        return np.array(losses), model


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("level", ["O1", "O2"])
@pytest.mark.parametrize("name", NETS)
def test_losses(name, level, dtype):
    factory, data = NETS[name]
    weights = models.weights_of(models.make(factory, "cpu"))
    expected, _ = train(factory, data(), "cpu", "O0", "float32", weights)
    actual, model = train(factory, data(), "mps", level, dtype, weights)
    assert actual[-1] < actual[0]
    np.testing.assert_allclose(actual, expected, rtol=5e-2, atol=5e-2)
    if level == "O2":
        assert any(str(p.dtype) == f"paddle.{dtype}" for p in model.parameters())


def test_types_inside():
    with paddle.device.device_guard("mps"), paddle.amp.auto_cast(dtype="float16"):
        product = paddle.matmul(paddle.ones([4, 4]), paddle.ones([4, 4]))
        assert product.dtype == paddle.float16
        assert F.softmax(product).dtype == paddle.float32


def test_an_overflow_skips_the_step():
    with paddle.device.device_guard("mps"):
        layer = nn.Linear(2, 2)
        before = layer.weight.numpy()
        optimize = paddle.optimizer.SGD(0.1, parameters=layer.parameters())
        scaler = paddle.amp.GradScaler(init_loss_scaling=2.0**10)
        loss = layer(paddle.full([1, 2], 3e38)).sum() * 1e38
        scaler.scale(loss).backward()
        scaler.step(optimize)
        np.testing.assert_array_equal(layer.weight.numpy(), before)
