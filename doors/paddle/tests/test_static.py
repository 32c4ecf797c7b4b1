# SPDX-License-Identifier: Apache-2.0
"""Programs instead of single ops: to_static, jit.save and load, paddle.inference, static graphs."""

import models
import numpy as np
import paddle
import pytest
import support
from paddle import nn
from paddle.static import InputSpec
from test_quantization import observed


def small_net():
    return nn.Sequential(nn.Conv2D(3, 8, 3, stride=2, padding=1), nn.BatchNorm2D(8), nn.ReLU6(), nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(8, 4), nn.Softmax())


@pytest.fixture(scope="module")
def net():
    """A net on the device, a batch, and what Paddle's CPU computes of it."""
    on_cpu = models.make(small_net, "cpu")
    on_cpu.eval()
    on_mps = models.make(small_net, "mps", models.weights_of(on_cpu))
    on_mps.eval()
    batch, _ = models.images(2, 16)
    return on_mps, batch, on_cpu(paddle.to_tensor(batch)).numpy()


def check(output, expected):
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-5)


def test_to_static(net, mps):
    model, batch, expected = net
    static = paddle.jit.to_static(model.forward, full_graph=True, input_spec=[InputSpec([None, 3, 16, 16], "float32")])
    for rows in (2, 1):
        output = static(paddle.to_tensor(batch[:rows]))
        assert isinstance(output.place, paddle.MPSPlace)
        check(output.numpy(), expected[:rows])


def test_to_static_trains(mps):
    def run(device):
        with paddle.device.device_guard(device):
            paddle.seed(0)
            layer = nn.Linear(4, 1)
            layer.set_state_dict({"weight": paddle.full([4, 1], 0.5), "bias": paddle.zeros([1])})
            static = paddle.jit.to_static(layer, full_graph=True)
            optimize = paddle.optimizer.SGD(0.1, parameters=layer.parameters())
            x = paddle.to_tensor(np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4), place=device)
            for _ in range(4):
                (static(x) ** 2).mean().backward()
                optimize.step()
                optimize.clear_grad()
            return layer.weight.numpy()

    np.testing.assert_allclose(run("mps"), run("cpu"), rtol=1e-5, atol=1e-6)


# Where ops run one by one these are views, which every device has; a program calls kernels. One that is missing would be
# computed on the CPU, in strict mode too, between two copies.
VIEWS = {
    "transpose": lambda x: x.transpose([2, 0, 1]),
    "transpose, negative axes": lambda x: x.transpose([-1, 0, -2]),
    "slice": lambda x: x[1:3, :, -2:],
    "slice of one": lambda x: x[:, -1],
    "steps": lambda x: x[::2, 1::3],
    "steps backwards": lambda x: paddle.strided_slice(x, [0, 2], [3, 4], [0, 1], [-1, -2]),
    # Not a slice of nothing: making that program, Paddle 3.3.1 reads a value that is gone (dy2static's get_value_name), and one
    # process in six died of it.
    "all backwards": lambda x: x[:, ::-1],
    "unsqueeze": lambda x: x.unsqueeze([0, 2]),
    "squeeze": lambda x: x[:1].squeeze(0),
    "diagonal": lambda x: paddle.diagonal(x, 1, 0, 2),
    "unbind": lambda x: paddle.add_n(paddle.unbind(x, 1)),
    "split": lambda x: paddle.split(x, [1, 2], axis=1)[1],
    "flatten": lambda x: x.flatten(1),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_in_programs(name, mps):
    from paddle_anymps import native

    view = paddle.jit.not_to_static(VIEWS[name])  # it is a lambda, whose source Paddle would not find

    def program(x):
        return view(x * 1.0) * 2.0

    def run(device):
        with paddle.device.device_guard(device):
            x = paddle.to_tensor(np.arange(60, dtype="float32").reshape(4, 3, 5) - 25, place=device, stop_gradient=False)
            static = paddle.jit.to_static(program, full_graph=True)
            static(x)
            before = native.copies()["device_to_host"][0]
            y = static(x)
            (y * y).sum().backward()
            copies = native.copies()["device_to_host"][0] - before
            return y.numpy(), x.grad.numpy(), copies

    for actual, expected in zip(run("mps"), run("cpu"), strict=True):
        np.testing.assert_array_equal(actual, expected)


ROWS = np.array([False, True, False, True, False])
# A mask of the first axis, or of all (none: where x is positive), and what is put there.
MASKED = {
    "a number": (ROWS, 4.0),
    "a number anywhere": (None, 4.0),
    "one element": (ROWS, [4.0]),
    "a row": (ROWS, [1.0, 2.0, 3.0]),
    "rows in order": (ROWS, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
    "a number for each row": (ROWS, [[1.0], [2.0]]),
    "elements in order": (None, np.arange(7.0) + 40),
    "nothing": (np.zeros(5, dtype=bool), 4.0),
}


@pytest.mark.parametrize("name", MASKED)
def test_masks_in_programs(name, mps):
    mask, value = MASKED[name]
    x = np.arange(15, dtype="float32").reshape(5, 3) - 7

    def program(x, mask, value):
        y = x * 1.0
        y[mask] = value
        return y * y

    def run(device):
        with paddle.device.device_guard(device):
            given = [paddle.to_tensor(a, place=device, stop_gradient=a.dtype == bool)
                     for a in (x, x > 0 if mask is None else mask, np.array(value, dtype="float32"))]
            y = paddle.jit.to_static(program, full_graph=True)(*given)
            (y * paddle.to_tensor(x + 1, place=device)).sum().backward()
            return [y.numpy(), given[0].grad.numpy(), given[2].grad.numpy()]

    for actual, expected in zip(run("mps"), run("cpu"), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_numbers_of_programs(mps):
    """A program hands extents over as floats."""

    def program(x):
        return x + paddle.eye(3, 4)

    y = paddle.jit.to_static(program, full_graph=True)(paddle.zeros([3, 4]))
    np.testing.assert_array_equal(y.numpy(), np.eye(3, 4))


def test_a_transformer_stays_on_the_device(mps):
    from paddle_anymps import native

    ids, _ = models.sentences(2, 16)
    outputs = []
    weights = models.weights_of(models.make(models.Bert, "cpu", layers=2))
    for device in ("mps", "cpu"):
        model = models.make(models.Bert, device, weights, layers=2)
        model.eval()
        with paddle.no_grad(), paddle.device.device_guard(device):
            static = paddle.jit.to_static(model, full_graph=True)
            x = paddle.to_tensor(ids, place=device)
            static(x)
            before = native.copies()["device_to_host"][0]
            y = static(x)
            assert native.copies()["device_to_host"][0] == before
            outputs.append(y.numpy())
    check(*outputs)


@pytest.fixture(scope="module")
def saved(net, tmp_path_factory):
    model, _, _ = net
    path = str(tmp_path_factory.mktemp("saved") / "net")
    with paddle.device.device_guard("mps"):
        paddle.jit.save(model, path, input_spec=[InputSpec([None, 3, 16, 16], "float32", name="x")])
    return path


@pytest.mark.parametrize("device", ["mps", "cpu"])
def test_save_and_load(net, saved, device):
    _, batch, expected = net
    with paddle.device.device_guard(device):
        loaded = paddle.jit.load(saved)
        loaded.eval()
        output = loaded(paddle.to_tensor(batch, place=device))
        assert (device == "mps") == isinstance(output.place, paddle.MPSPlace)
        check(output.numpy(), expected)


def test_inference(net, saved):
    from paddle import inference

    _, batch, expected = net
    config = inference.Config(saved + ".json", saved + ".pdiparams")
    config.enable_custom_device("mps", 0)
    predictor = inference.create_predictor(config)
    for _ in range(2):
        predictor.get_input_handle(predictor.get_input_names()[0]).copy_from_cpu(batch)
        predictor.run()
        check(predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu(), expected)


def test_static_graph(mps):
    paddle.enable_static()
    try:
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup):
            x = paddle.static.data("x", [None, 4], "float32")
            y = paddle.nn.functional.relu(x * 2.0 - 1.0).sum(axis=1)
        executor = paddle.static.Executor(paddle.MPSPlace(0))
        executor.run(startup)
        values = np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)
        (result,) = executor.run(main, feed={"x": values}, fetch_list=[y])
        np.testing.assert_allclose(result, np.maximum(values * 2 - 1, 0).sum(axis=1), rtol=1e-6)
    finally:
        paddle.disable_static(paddle.CPUPlace())


def test_save_and_load_of_tensors(mps, tmp_path):
    layer = nn.Linear(3, 2)
    path = str(tmp_path / "layer.pdparams")
    paddle.save(layer.state_dict(), path)
    loaded = paddle.load(path)
    np.testing.assert_array_equal(loaded["weight"].numpy(), layer.weight.numpy())


def test_a_model_of_few_bits():
    results = []
    for place in ("cpu", "mps"):
        with paddle.device.device_guard(place):
            x = paddle.to_tensor(np.random.default_rng(1).standard_normal((5, 8)).astype("float32"), place=place)
            results.append(paddle.jit.to_static(observed(x), full_graph=True)(x))
    support.compare(results[1], results[0], tolerance=(1e-5, 1e-5))
