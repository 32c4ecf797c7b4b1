# SPDX-License-Identifier: Apache-2.0
"""Memory statistics are exact, what is freed can be used again, and what is given back leaves the process."""

import gc
import json
import queue
import threading

import numpy as np
import paddle
import pytest
import support

MEGABYTE = 1 << 20


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def make(megabytes):
    return paddle.ones([megabytes, MEGABYTE // 4], dtype="float32")


def test_allocated_returns_to_its_start(mps):
    start = mps.memory_allocated()
    tensor = make(8)
    assert mps.memory_allocated() - start == 8 * MEGABYTE
    again = tensor + tensor
    assert mps.memory_allocated() - start == 16 * MEGABYTE
    view = again[2:4]
    del again
    assert mps.memory_allocated() - start == 16 * MEGABYTE, "a view keeps the memory"
    del tensor, view
    assert mps.memory_allocated() == start
    assert paddle.device.memory_allocated("mps:0") == start


def test_peaks(mps):
    start = mps.memory_allocated()
    mps.reset_max_memory_allocated()
    mps.reset_max_memory_reserved()
    assert mps.max_memory_allocated() == start
    tensors = [make(4) for _ in range(3)]
    del tensors
    assert mps.memory_allocated() == start
    assert mps.max_memory_allocated() - start == 12 * MEGABYTE
    assert mps.max_memory_reserved() >= 12 * MEGABYTE
    mps.reset_max_memory_allocated()
    assert mps.max_memory_allocated() == start


def test_reserved_covers_allocated_and_is_given_back(mps):
    tensor = make(64)
    assert mps.memory_reserved() >= mps.memory_allocated() >= 64 * MEGABYTE
    held = resident()
    del tensor
    assert mps.memory_reserved() >= 64 * MEGABYTE, "kept for the next tensor"
    mps.empty_cache()
    assert mps.memory_reserved() < 64 * MEGABYTE
    assert held - resident() > 48 * MEGABYTE, "the process holds on to it"


def test_a_thousand_shapes_stay_flat(mps):
    def step(rows):
        tensor = paddle.to_tensor(np.ones((rows, 37), dtype="float32"))
        return tensor + tensor

    step(1000)
    gc.collect()
    reserved, held = mps.memory_reserved(), resident()
    for rows in range(1, 1001):
        step(rows)
    assert mps.memory_reserved() - reserved <= 16 * MEGABYTE
    assert resident() - held < 32 * MEGABYTE


def test_values_survive_reuse(mps):
    kept = [make(1) * index for index in range(8)]
    for _ in range(20):
        make(1)
    for index, tensor in enumerate(kept):
        assert float(tensor.min()) == float(tensor.max()) == index


def test_training_steps_stay_flat(mps):
    layers = [paddle.nn.Conv2D(3, 8, 3), paddle.nn.BatchNorm2D(8), paddle.nn.ReLU(), paddle.nn.Flatten(), paddle.nn.Linear(288, 5)]
    net = paddle.nn.Sequential(*layers)
    optimizer = paddle.optimizer.AdamW(1e-3, parameters=net.parameters())
    images, labels = paddle.randn([4, 3, 8, 8]), paddle.randint(0, 5, [4])

    def step():
        loss = paddle.nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()

    for _ in range(3):
        step()
    gc.collect()
    allocated = mps.memory_allocated()
    mps.reset_max_memory_allocated()
    step()
    peak, reserved = mps.max_memory_allocated(), mps.memory_reserved()
    assert peak > allocated == mps.memory_allocated()
    for _ in range(50):
        step()
        assert mps.memory_allocated() == allocated
    assert (mps.max_memory_allocated(), mps.memory_reserved()) == (peak, reserved)


# Small results lie in blocks (runtime/small_blocks.cc) of 64 bytes to 4 KiB.
SIZES = [1, 15, 16, 17, 32, 33, 100, 256, 257, 1000, 1024, 1025, 4000]


def test_small_results_are_counted_to_the_unit_of_64_bytes(mps):
    sources = [paddle.ones([size]) for size in SIZES]
    start = mps.memory_allocated()
    mps.reset_max_memory_allocated()
    results = [source + source for source in sources]
    used = sum(-(-4 * size // 64) * 64 for size in SIZES)
    assert mps.memory_allocated() - start == used
    assert mps.max_memory_allocated() - start >= used
    assert mps.memory_reserved() >= mps.memory_allocated()
    for size, result in zip(SIZES, results, strict=True):
        support.compare(result, np.full([size], 2, dtype="float32"))
    del results, result
    assert mps.memory_allocated() == start
    assert mps.max_memory_allocated() - start >= used


def test_small_results_do_not_share_memory(mps):
    random = np.random.default_rng(7)
    kept = {}
    source = {size: paddle.ones([size]) for size in SIZES}
    for step in range(2000):
        size = int(random.choice(SIZES))
        kept[int(random.integers(300))] = (step, source[size] * float(step))
    for step, tensor in kept.values():
        assert (tensor.numpy() == step).all()
    addresses = sorted((tensor.data_ptr(), tensor.data_ptr() + 4 * tensor.size) for _, tensor in kept.values())
    assert all(end <= begin for (_, end), (begin, _) in zip(addresses, addresses[1:], strict=False))
    assert all(begin % 64 == 0 for begin, _ in addresses)


def test_small_results_are_given_back(mps):
    one = paddle.ones([200])
    tensors = [one + float(i) for i in range(5000)]
    mps.empty_cache()
    reserved = mps.memory_reserved()
    assert mps.memory_reserved() >= mps.memory_allocated() >= 5000 * 832
    kept = tensors[::500]
    del tensors
    mps.empty_cache()
    assert mps.memory_reserved() < reserved - 3 * MEGABYTE
    for i, tensor in enumerate(kept):
        assert float(tensor[0]) == 1 + 500 * i, "what is used stays"
    del kept, tensor
    mps.empty_cache()
    again = [one + float(i) for i in range(5000)]
    assert [float(tensor[-1]) for tensor in again[::1000]] == [1, 1001, 2001, 3001, 4001]


def test_small_results_of_one_thread_are_freed_by_another(mps):
    one, start = paddle.ones([16]), mps.memory_allocated()
    made, wrong = queue.Queue(100), []

    def produce(first):
        for i in range(first, first + 2000):
            made.put((i, one * float(i)))

    def consume():
        for _ in range(2000):
            i, tensor = made.get()
            if float(tensor[3]) != i:
                wrong.append(i)

    threads = [threading.Thread(target=produce, args=(10000 * i,)) for i in range(2)]
    threads += [threading.Thread(target=consume) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert mps.memory_allocated() == start


LIMITED = """
import paddle, json
paddle.set_device("mps")
facts = {"total": paddle.mps.get_device_properties().total_memory}
kept = paddle.ones([16 << 20 >> 2])
for name in ("ones", "empty"):
    try:
        getattr(paddle, name)([512 << 20 >> 2])
        facts[name] = None
    except MemoryError as error:
        facts[name] = str(error)
facts["after"] = float((kept + 1).sum()) / (16 << 20 >> 2)
# What Paddle caches is given back before it gives up.
del kept
for size in (96, 64, 90, 100):
    tensor = paddle.ones([size << 20 >> 2])
    del tensor
print(json.dumps(facts))
"""


def test_out_of_memory_is_an_error_and_nothing_more():
    result = support.run_python(LIMITED, MPS_MEMORY_LIMIT=str(160 * MEGABYTE))
    assert result.returncode == 0, result.stderr
    facts = json.loads(result.stdout)
    assert facts["total"] == 160 * MEGABYTE
    assert "Out of memory error on mps:0" in facts["empty"], "Paddle asks for memory"
    assert "ResourceExhausted" in facts["ones"], "the engine is asked to compute more than fits"
    assert facts["after"] == 2


def test_copies_are_counted(mps):
    from paddle_anymps import native

    before = native.copies()
    tensor = paddle.to_tensor(np.zeros(1000, dtype="float32"))
    tensor.numpy()
    after = native.copies()
    assert after["host_to_device"][1] - before["host_to_device"][1] == 4000
    assert 4000 <= after["device_to_host"][1] - before["device_to_host"][1] < 4096, "whole blocks of 64 bytes"


@pytest.mark.parametrize("name", ["memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved"])
def test_ways_to_name_the_device(mps, name):
    function = getattr(mps, name)
    assert function() == function(0) == function("mps") == function("mps:0") == function(paddle.MPSPlace(0))
    for wrong in (-1, 99, "mps:99", "mps:x", "cpu", 1.5, True):
        with pytest.raises((ValueError, TypeError)):
            function(wrong)
