# SPDX-License-Identifier: Apache-2.0
"""The functions of Paddle that csrc/shortcuts answers for the device: the same results with them and without, for it, for
others and for programs that never ask for it."""

import json

import numpy as np
import paddle
import pytest
import support

LOADED = "ctypes.CDLL(None).anymps_paddle_start_shortcuts"

# Gradients that meet, views, copies, streams, devices: everything that goes through one of the functions.
PROGRAM = """
import json, threading
import numpy as np
import paddle

def results(device):
    paddle.set_device(device)
    found = []
    x = paddle.to_tensor(np.linspace(-2, 2, 12, dtype="float32").reshape(3, 4))
    w = paddle.to_tensor(np.linspace(0, 1, 12, dtype="float32").reshape(4, 3))
    x.stop_gradient = w.stop_gradient = False
    y = paddle.matmul(x, w) + paddle.transpose(w, [1, 0])[:, :3]
    z = (y * y).sum() + (y * 3).sum() + paddle.nn.functional.softmax(x).sum()
    z.backward()
    found += [z, x.grad, w.grad]
    for _ in range(2):  # into what is there
        (x * x + x).sum().backward()
    found.append(x.grad)
    (first,) = paddle.grad((x * x * x + x * x).sum(), x, create_graph=True)
    (second,) = paddle.grad((first * first).sum(), x)
    found += [first, second]
    with paddle.no_grad():
        found += [x.reshape([4, 3]).cpu() + 1, paddle.full([3], 2.5), x + 1.5, paddle.arange(5)]
    return [tensor.numpy().tolist() for tensor in found], [tensor.stop_gradient for tensor in found]

print(json.dumps({device: results(device) for device in ("cpu", "mps", "mps:1", "cpu")}))
"""


def outcome(**environment):
    result = support.run_python(PROGRAM, ANYMPS_DEVICE_COUNT="2", **environment)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_results_are_the_same_with_and_without():
    with_them, without = outcome(), outcome(ANYMPS_PADDLE_SHORTCUTS="0")
    assert with_them == without
    assert with_them["mps"] == with_them["mps:1"]
    for ours, expected in zip(with_them["mps"][0], with_them["cpu"][0], strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-5)
    assert with_them["mps"][1] == with_them["cpu"][1]


def loads(before="", **environment):
    """Whether the shortcuts are in a process after `import paddle`."""
    code = f"import ctypes, os\n{before}\nimport paddle\ntry:\n    {LOADED}\n    print(True)\nexcept AttributeError:\n    print(False)"
    result = support.run_python(code, **environment)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return result.stdout.split()[-1] == "True"


def test_they_are_loaded_and_can_be_left_out():
    assert loads()
    assert not loads(ANYMPS_PADDLE_SHORTCUTS="0")


@pytest.mark.parametrize(
    "line, loaded", [("full_version     = '{}'", True), ("full_version = '{}'", True), ("full_version = '{}.post1'", False), ("full_version = '3.3.0'", False), ("", False)]
)
def test_only_for_their_version_of_paddle(tmp_path, line, loaded):
    (tmp_path / "version").mkdir()
    (tmp_path / "version" / "__init__.py").write_text(line.format(paddle.__version__) + "\n")
    code = f"import ctypes\nfrom paddle_anymps import importing\nimporting._shorten({str(tmp_path)!r})\nprint(hasattr(ctypes.CDLL(None), {LOADED.split('.')[-1]!r}))"
    result = support.run_python(code)
    assert result.stdout.split() == [str(loaded)], result.stderr


def test_what_no_gradient_is_wanted_of_records_none(mps):
    """Gradients that meet are added: of the sum there is no gradient, unless the graph of it is asked for."""
    x = paddle.to_tensor([1.0, 2.0, 3.0])
    x.stop_gradient = False
    y = x * 1
    nodes = []
    y.register_hook(lambda gradient: nodes.append(gradient.grad_fn))
    (y * y).sum().backward(retain_graph=True)
    (gradient,) = paddle.grad((y * y * y).sum(), x, create_graph=True)
    assert nodes[0] is None
    assert nodes[1] is not None
    (second,) = paddle.grad(gradient.sum(), x)
    support.compare(second, np.array([6, 12, 18], dtype="float32"))


def test_each_operand_says_on_which_device():
    result = support.run_python(
        "import paddle\n"
        "a, b = (paddle.ones([3], place=f'mps:{i}') for i in (0, 1))\n"
        "for _ in range(3): print((a + a).place, (b + b).place, (paddle.ones([2]) + 1).place)",
        ANYMPS_DEVICE_COUNT="2",
    )
    assert result.stdout.splitlines() == ["Place(mps:0) Place(mps:1) Place(cpu)"] * 3, result.stderr


THREADS = """
import threading, paddle
wrong = []

def work(index):
    try:
        x = paddle.ones([4], place=f"mps:{index}")
        for step in range(200):
            x = paddle.add(x, x) - x
            if not x.place._equals(paddle.MPSPlace(index)): wrong.append((index, step, str(x.place)))
        if float(x.sum()) != 4: wrong.append((index, x.tolist()))
    except BaseException as error:
        wrong.append((index, repr(error)))

threads = [threading.Thread(target=work, args=(index % 4,)) for index in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(wrong)
"""


def test_threads_with_devices_of_their_own():
    result = support.run_python(THREADS, ANYMPS_DEVICE_COUNT="4")
    assert result.stdout.strip() == "[]", result.stdout + result.stderr


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [[], [1], [3, 5], [0, 4], [64, 40]])
def test_gradients_that_meet(mps, dtype, shape):
    """Of one shape as they lie, as views, and of several ops."""

    def gradients(x, scale):
        x, scale = x.detach(), scale.detach()
        x.stop_gradient = scale.stop_gradient = False
        turned = x.transpose(list(range(x.ndim))[::-1])
        z = (x * scale).sum() + (turned * turned).sum() + paddle.expand(x, [2, *x.shape]).sum() + x.sum()
        z.backward()
        return paddle.concat([x.grad.flatten(), scale.grad.flatten()])

    random = np.random.default_rng(3)
    arrays = [random.uniform(-1, 1, size).astype("float32") for size in (shape, [1] * len(shape))]
    if dtype == "float64":
        arrays = [array.astype("float64") for array in arrays]
    half = {"float16": (1e-2, 4e-2), "bfloat16": (4e-2, 2e-1)}
    support.on_both(gradients, *arrays, dtype=dtype, tolerance=half.get(dtype))
