# SPDX-License-Identifier: Apache-2.0
"""LSTM, GRU and simple recurrent layers: results, last states and all gradients as on the CPU."""

import numpy as np
import paddle
import pytest
import support

LAYERS = {"LSTM": paddle.nn.LSTM, "GRU": paddle.nn.GRU, "SimpleRNN": paddle.nn.SimpleRNN}


def computed(place, layer, direction, layers, lengths):
    paddle.set_device("cpu")
    paddle.seed(3)
    weights = {name: value.numpy() for name, value in layer(5, 7, num_layers=layers, direction=direction).state_dict().items()}
    paddle.set_device(place)
    net = layer(5, 7, num_layers=layers, direction=direction)
    net.set_state_dict({name: paddle.to_tensor(value) for name, value in weights.items()})
    x = paddle.to_tensor(np.random.default_rng(0).standard_normal((3, 4, 5)).astype("float32"), stop_gradient=False)
    y, states = net(x, sequence_length=None if lengths is None else paddle.to_tensor(lengths, dtype="int32"))
    states = list(states) if isinstance(states, (tuple, list)) else [states]
    ((y * y).sum() + sum((state * 1.5).sum() for state in states)).backward()
    return [y, *states, x.grad, *(p.grad for p in net.parameters())]


@pytest.mark.parametrize("lengths", [None, [4, 2, 3]], ids=["whole", "lengths"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("direction", ["forward", "bidirect"])
@pytest.mark.parametrize("name", LAYERS)
def test_like_the_cpu(name, direction, layers, lengths):
    expected = [support.to_numpy(t) for t in computed("cpu", LAYERS[name], direction, layers, lengths)]
    actual = computed("mps", LAYERS[name], direction, layers, lengths)
    for got, wanted in zip(actual, expected, strict=True):
        support.compare(got, wanted, tolerance=(1e-5, 1e-5))


def test_dropout_between_layers_is_refused():
    paddle.set_device("mps")
    net = paddle.nn.LSTM(3, 4, num_layers=2, dropout=0.5)
    with pytest.raises(Exception, match="dropout between layers is not supported"):
        net(paddle.ones([2, 3, 3]))
