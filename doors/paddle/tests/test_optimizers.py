# SPDX-License-Identifier: Apache-2.0
"""Optimizers that step all parameters in one call: the same numbers as one by one."""

import numpy as np
import paddle
import pytest

OPTIMIZERS = {
    "adam": lambda parameters, **options: paddle.optimizer.Adam(0.01, parameters=parameters, **options),
    "adam_decay": lambda parameters, **options: paddle.optimizer.Adam(0.01, parameters=parameters, weight_decay=0.1, **options),
    "momentum": lambda parameters, **options: paddle.optimizer.Momentum(0.01, parameters=parameters, **options),
}


def trained(make, device, together):
    random = np.random.default_rng(0)
    with paddle.device.device_guard(device):
        parameters = [
            paddle.create_parameter([n, 3], "float32", default_initializer=paddle.nn.initializer.Assign(random.standard_normal((n, 3))))
            for n in (1, 4, 6)
        ]
        optimizer = make(parameters, use_multi_tensor=together)
        for step in range(3):
            sum((p * p * (step + 1)).sum() for p in parameters).backward()
            optimizer.step()
            optimizer.clear_grad()
        return [p.numpy() for p in parameters]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_all_at_once(name):
    expected = trained(OPTIMIZERS[name], "cpu", False)
    for actual, wanted in zip(trained(OPTIMIZERS[name], "mps", True), expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-6)


# Each for itself, beside the CPU: parameters, and the states that are saved.
SINGLE = {
    "ASGD": {"learning_rate": 0.05},
    "ASGD of batches": {"learning_rate": 0.05, "batch_num": 3},
    "Rprop": {"learning_rate": 0.01},
    "NAdam": {"learning_rate": 0.01},
    "RAdam": {"learning_rate": 0.01, "weight_decay": 0.01},
    "Adadelta": {"learning_rate": 0.5},
    "RMSProp": {"learning_rate": 0.01, "centered": True, "momentum": 0.9},
    "Lamb": {"learning_rate": 0.01},
}


def stepped(name, device):
    random = np.random.default_rng(1)
    with paddle.device.device_guard(device), paddle.utils.unique_name.guard():
        start = paddle.nn.initializer.Assign(random.standard_normal((4, 3)))
        weight = paddle.create_parameter([4, 3], "float32", default_initializer=start)
        optimizer = getattr(paddle.optimizer, name.split()[0])(parameters=[weight], **SINGLE[name])
        for _ in range(8):
            x = paddle.to_tensor(random.standard_normal((6, 4)).astype("float32"))
            (((x @ weight).tanh() - 0.3) ** 2).mean().backward()
            optimizer.step()
            optimizer.clear_grad()
        states = optimizer.state_dict()
        return [weight.numpy()] + [states[key].numpy() for key in sorted(states) if isinstance(states[key], paddle.Tensor)]


@pytest.mark.parametrize("name", SINGLE)
def test_one_by_one(name):
    for actual, wanted in zip(stepped(name, "mps"), stepped(name, "cpu"), strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-5)


def test_averages_of_models():
    results = []
    for device in ("cpu", "mps"):
        with paddle.device.device_guard(device):
            layer = paddle.nn.Linear(4, 2, weight_attr=paddle.nn.initializer.Constant(0.1))
            average = paddle.incubate.ModelAverage(0.15, parameters=layer.parameters(), min_average_window=2, max_average_window=4)
            optimizer = paddle.optimizer.SGD(0.1, parameters=layer.parameters())
            for _ in range(7):
                layer(paddle.ones([2, 4])).sum().backward()
                optimizer.step()
                average.step()
                optimizer.clear_grad()
            with average.apply(need_restore=True):
                results.append(layer.weight.numpy())
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5)


def test_quantization_in_training():
    from paddle.quantization import QAT, QuantConfig
    from paddle.quantization.quanters import FakeQuanterWithAbsMaxObserver

    results = []
    for device in ("cpu", "mps"):
        with paddle.device.device_guard(device):
            random = np.random.default_rng(0)
            quanter = FakeQuanterWithAbsMaxObserver(moving_rate=0.9)
            model = paddle.nn.Linear(4, 3, weight_attr=paddle.nn.initializer.Assign(random.standard_normal((4, 3))))
            model = QAT(QuantConfig(activation=quanter, weight=quanter)).quantize(paddle.nn.Sequential(model))
            optimizer = paddle.optimizer.SGD(0.1, parameters=model.parameters())
            losses = []
            for _ in range(3):
                loss = (model(paddle.to_tensor(random.standard_normal((8, 4)).astype("float32"))) ** 2).mean()
                loss.backward()
                optimizer.step()
                optimizer.clear_grad()
                losses.append(float(loss))
            model.eval()
            losses.append(float(model(paddle.to_tensor(random.standard_normal((8, 4)).astype("float32"))).sum()))
            results.append(losses)
    np.testing.assert_allclose(results[1], results[0], rtol=1e-4)
