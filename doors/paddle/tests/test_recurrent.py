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


@pytest.mark.parametrize("direction", ["forward", "bidirect"])
@pytest.mark.parametrize("name", LAYERS)
def test_dropout_between_layers(name, direction):
    """What it drops is random: with a state that never changes, the output of the second layer shows it, and gradients of a
    step with it are those of finite differences with the same numbers drawn."""
    paddle.set_device("mps")
    paddle.seed(7)
    net = LAYERS[name](4, 6, num_layers=2, direction=direction, dropout=0.5)
    random = np.random.default_rng(0)
    x = paddle.to_tensor(random.standard_normal((3, 5, 4)).astype("float32"), stop_gradient=False)

    def loss(x):
        paddle.mps.manual_seed(11)
        y, _ = net(x)
        return (y * y).sum()

    first, second = net(x)[0].numpy(), net(x)[0].numpy()
    assert not np.array_equal(first, second), "each call drops others"
    assert float(loss(x)) == float(loss(x)), "the seed decides"
    loss(x).backward()
    way = random.standard_normal((3, 5, 4)).astype("float32")
    step = 1e-2
    moved = [float(loss(x.detach() + paddle.to_tensor(way * s))) for s in (step, -step)]
    numeric = (moved[0] - moved[1]) / (2 * step)
    assert numeric == pytest.approx(float((x.grad.numpy() * way).sum()), rel=2e-2)
    net.eval()
    expected = net(x)[0].numpy()
    np.testing.assert_array_equal(expected, net(x)[0].numpy())


def test_dropout_keeps_what_it_should():
    """An identity of a layer behind the first shows which elements came through, and by how much they grew."""
    paddle.set_device("mps")
    net = paddle.nn.SimpleRNN(1, 1, num_layers=2, dropout=0.25, activation="relu")
    for name, value in net.named_parameters():
        value.set_value(paddle.full(value.shape, 1.0 if "weight_ih" in name else 0.0))
    y = net(paddle.ones([400, 10, 1]))[0].numpy()
    np.testing.assert_allclose(np.unique(y), [0, 1 / 0.75], rtol=1e-6)
    assert 0.70 < (y > 0).mean() < 0.80
