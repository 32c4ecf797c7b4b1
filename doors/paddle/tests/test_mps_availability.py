# SPDX-License-Identifier: Apache-2.0
"""Is the device there? `python test_mps_availability.py`, or with pytest."""

import sys

import support  # noqa: F401  strict mode
import numpy as np
import paddle


def test_compiled_and_available():
    assert paddle.is_compiled_with_mps() is True
    assert paddle.mps.is_available() is True
    assert paddle.mps.device_count() >= 1


def test_all_that_the_original_has():
    assert set(paddle.mps.__all__) >= {
        *("is_available", "device_count", "set_device", "current_device", "get_device_properties", "get_device_name"),
        *("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved"),
        *("reset_max_memory_allocated", "reset_max_memory_reserved", "empty_cache", "synchronize"),
        *("Stream", "Event", "stream_guard", "get_rng_state", "set_rng_state", "manual_seed"),
    }
    assert all(callable(getattr(paddle.mps, name)) for name in paddle.mps.__all__)


def test_properties():
    properties = paddle.mps.get_device_properties()
    assert properties.name == paddle.mps.get_device_name() != ""
    assert properties.total_memory > 0
    assert properties.multi_processor_count >= 1


def test_set_device():
    before = paddle.get_device()
    try:
        for device in (0, "mps", "mps:0", paddle.MPSPlace(0)):
            paddle.mps.set_device(device)
            assert paddle.get_device() == "mps:0"
            assert paddle.mps.current_device() == 0
            assert paddle.to_tensor([1.0]).place == paddle.MPSPlace(0)
    finally:
        paddle.set_device(before)


def test_a_tensor_goes_there_and_back():
    values = np.arange(6, dtype="float32").reshape(2, 3)
    tensor = paddle.to_tensor(values, place="mps")
    assert isinstance(tensor.place, paddle.MPSPlace)
    np.testing.assert_array_equal(tensor.numpy(), values)
    np.testing.assert_array_equal(tensor.cpu().numpy(), values)
    np.testing.assert_array_equal(paddle.to_tensor(values, place="cpu").mps().numpy(), values)


def main():
    print(support.Report.LINE + "\nMPS Availability Test\n" + support.Report.LINE)
    failed = 0
    for name, function in list(globals().items()):
        if name.startswith("test_"):
            try:
                function()
                print(f"✓ {name[5:].replace('_', ' ')}")
            except Exception as error:  # the next one still runs
                failed += 1
                print(f"✗ {name[5:].replace('_', ' ')}: {error}")
    print(f"\nDevice: {paddle.mps.get_device_name() if paddle.mps.is_available() else 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
