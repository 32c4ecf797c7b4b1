# SPDX-License-Identifier: Apache-2.0
"""Places and devices: ways to name one, several of them, and defaults that stay as they were."""

import json
import os
import site

import numpy as np
import paddle
import pytest
import support

TWO = """
import json, paddle
mps = paddle.mps
facts = {"count": mps.device_count()}
a = paddle.ones([1000], dtype="float32", place="mps:1")
facts["allocated"] = [mps.memory_allocated(0), mps.memory_allocated(1)]
b = a.mps(0)
facts["places"] = [str(a.place), str(b.place), str((a + a).place), str((b + b).place)]
mps.set_device(1)
facts["current"] = [mps.current_device(), paddle.get_device(), str(paddle.zeros([2]).place)]
mps.manual_seed_all(5)
facts["seeded"] = [paddle.randn([3], place=f"mps:{i}").numpy().tolist() for i in (0, 1)]
del a, b
facts["freed"] = [mps.memory_allocated(0), mps.memory_allocated(1)]
print(json.dumps(facts))
"""


def test_two_devices_have_accounts_of_their_own():
    result = support.run_python(TWO, ANYMPS_DEVICE_COUNT="2")
    assert result.returncode == 0, result.stderr
    facts = json.loads(result.stdout)
    assert facts["count"] == 2
    assert facts["allocated"][0] == 0 and facts["allocated"][1] >= 4000
    assert facts["places"] == ["Place(mps:1)", "Place(mps:0)", "Place(mps:1)", "Place(mps:0)"]
    assert facts["current"] == [1, "mps:1", "Place(mps:1)"]
    assert facts["seeded"][0] == facts["seeded"][1]
    assert facts["freed"] == [0, 0]


APART = """
import json, paddle
mps = paddle.mps
MIB = 1 << 20
def accounts():
    return [[mps.memory_allocated(i), mps.max_memory_allocated(i), mps.memory_reserved(i) // MIB, mps.max_memory_reserved(i) // MIB] for i in (0, 1)]
facts = {"start": accounts()}
a = paddle.zeros([8 * MIB // 4], place="mps:1")
b = paddle.zeros([40 * MIB // 4], place="mps:1")
del b
facts["used"] = accounts()
mps.reset_max_memory_allocated(0)
facts["other reset"] = accounts()
mps.reset_max_memory_allocated(1)
facts["reset"] = accounts()
del a
mps.empty_cache()
mps.reset_max_memory_reserved(1)
facts["given back"] = accounts()

# A training step on the second device while the first is the current one.
mps.set_device(1)
layer = paddle.nn.Linear(64, 64)
optimizer = paddle.optimizer.Adam(0.01, parameters=layer.parameters())
mps.set_device(0)
x = paddle.ones([4, 64], place="mps:1")
losses = []
for _ in range(3):
    loss = (layer(x) ** 2).mean()
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    losses.append(float(loss))
facts["losses"] = losses
facts["places"] = sorted({str(t.place) for t in (loss, layer.weight, layer.bias)})
print(json.dumps(facts))
"""


def test_devices_do_not_touch_each_others_accounts():
    result = support.run_python(APART, ANYMPS_DEVICE_COUNT="2")
    assert result.returncode == 0, result.stderr
    facts = json.loads(result.stdout)
    nothing, mebibyte = [0, 0, 0, 0], 1 << 20
    assert facts["start"] == [nothing, nothing]
    used = facts["used"]
    assert used[0] == nothing
    assert used[1][:2] == [8 * mebibyte, 48 * mebibyte] and used[1][2] >= 48 and used[1][3] >= used[1][2]
    assert facts["other reset"] == used, "the peak of another device was reset"
    assert facts["reset"][1][:2] == [8 * mebibyte, 8 * mebibyte]
    assert facts["given back"] == [nothing, [0, 8 * mebibyte, 0, 0]]
    assert facts["losses"][2] < facts["losses"][0]
    assert facts["places"] == ["Place(mps:1)"]


@pytest.mark.parametrize("count", ["0", "17", "two", "-1"])
def test_a_wrong_number_of_devices_is_refused_without_harm(count):
    result = support.run_python("import paddle; print(paddle.is_compiled_with_mps(), paddle.get_device())", ANYMPS_DEVICE_COUNT=count)
    assert result.stdout.split() == ["False", "cpu"], result.stderr
    assert f'ANYMPS_DEVICE_COUNT must be 1 to 16, but it is "{count}"' in result.stderr


def test_the_last_of_all_devices():
    code = "import paddle; x = paddle.ones([4]).to('mps:15'); print((x + x).place, paddle.mps.memory_allocated(15) > 0)"
    result = support.run_python(code, ANYMPS_DEVICE_COUNT="16")
    assert result.stdout.split() == ["Place(mps:15)", "True"], result.stderr


# What a program may look at before it has asked for mps.
DEFAULTS = """
import json, paddle
from paddle.base import core
facts = {
    "device": paddle.get_device(),
    "place": str(paddle.to_tensor([1.0]).place),
    "cuda": [paddle.cuda.is_available(), paddle.cuda.device_count(), paddle.is_compiled_with_cuda()],
    "device_count": paddle.device.device_count(),
    "is_available": paddle.device.is_available(),
    "rank": paddle.distributed.ParallelEnv().device_type,
    "generator": len(paddle.get_rng_state()),
    "layer": str(paddle.nn.Linear(2, 2).weight.place),
}
print(json.dumps(facts))
"""


def test_installing_changes_no_default():
    packages = [path for path in site.getsitepackages() if os.path.isdir(os.path.join(path, "paddle"))]
    # Without site no .pth file is read, and an empty root holds no plug-in: Paddle as it comes.
    stock = support.run_python(DEFAULTS, "-S", PYTHONPATH=os.pathsep.join(packages), CUSTOM_DEVICE_ROOT="")
    assert stock.returncode == 0, stock.stderr
    installed = support.run_python(DEFAULTS)
    assert installed.returncode == 0, installed.stderr
    assert json.loads(installed.stdout) == json.loads(stock.stdout)
    assert json.loads(stock.stdout)["device"] == "cpu"


def test_places():
    place = paddle.MPSPlace(0)
    assert isinstance(place, paddle.MPSPlace)
    assert not isinstance(paddle.CPUPlace(), paddle.MPSPlace)
    assert paddle.to_tensor([1.0], place=place).place == place
    assert isinstance(paddle.to_tensor([1.0], place="mps").place, paddle.MPSPlace)
    with pytest.raises(ValueError, match="there is no device mps:1"):
        paddle.MPSPlace(1)


@pytest.mark.parametrize("place", ["mps", "mps:0", "place"])
def test_place_where_tensors_are_created(place):
    place = paddle.MPSPlace(0) if place == "place" else place
    like = paddle.ones([2, 3])
    created = {
        "arange": paddle.arange(6, place=place),
        "empty": paddle.empty([2], place=place),
        "eye": paddle.eye(3, place=place),
        "full": paddle.full([2, 2], 3, place=place),
        "linspace": paddle.linspace(0, 1, 5, place=place),
        "normal": paddle.normal(shape=[3], place=place),
        "ones": paddle.ones([2], place=place),
        "rand": paddle.rand([2], place=place),
        "randint": paddle.randint(0, 5, [3], place=place),
        "randn": paddle.randn([2, 3], dtype="float32", place=place),
        "randperm": paddle.randperm(4, place=place),
        "uniform": paddle.uniform([3], place=place),
        "zeros": paddle.zeros([2], place=place),
        "zeros_like": paddle.zeros_like(like, place=place),
    }
    assert {name: str(tensor.place) for name, tensor in created.items()} == dict.fromkeys(created, "Place(mps:0)")
    np.testing.assert_array_equal(created["full"].numpy(), np.full((2, 2), 3))
    assert str(paddle.ones([2]).place) == "Place(cpu)", "the current device is as before"
    assert str(paddle.ones([2], place="cpu").place) == "Place(cpu)"


def test_moving_tensors_and_layers():
    values = np.arange(4, dtype="float32")
    tensor = paddle.to_tensor(values)
    for moved in (tensor.mps(), tensor.mps(0), tensor.to("mps"), tensor.to("mps:0")):
        assert isinstance(moved.place, paddle.MPSPlace)
        np.testing.assert_array_equal(moved.numpy(), values)
    assert moved.mps() is moved
    layer = paddle.nn.Linear(2, 2).to("mps")
    assert isinstance(layer.weight.place, paddle.MPSPlace)


@pytest.mark.parametrize("device", ["mps:1", "mps:99", "mps:-1", "mps:x", "mps:"])
def test_a_device_that_does_not_exist(device):
    for use in (
        paddle.set_device,
        lambda d: paddle.to_tensor([1.0], place=d),
        lambda d: paddle.ones([2]).to(d),
        lambda d: paddle.randn([2], place=d),
    ):
        with pytest.raises(ValueError, match="mps"):
            use(device)
    assert paddle.get_device() == "cpu"


def test_random_state(mps):
    state = mps.get_rng_state()
    first = paddle.randn([5]).numpy()
    mps.set_rng_state(state)
    np.testing.assert_array_equal(paddle.randn([5]).numpy(), first)
    mps.manual_seed(3)
    first = paddle.randn([5]).numpy()
    assert (paddle.randn([5]).numpy() != first).any()
    mps.manual_seed(3)
    np.testing.assert_array_equal(paddle.randn([5]).numpy(), first)
