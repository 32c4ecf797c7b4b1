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
