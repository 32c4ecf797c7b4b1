# SPDX-License-Identifier: Apache-2.0
"""Streams, events and the time between them; the profiler, which shows the same kernels."""

import json
import time

import numpy as np
import paddle
import pytest


def work(size=400):
    x = paddle.ones([size, size], dtype="float32")
    for _ in range(5):
        x = x * 1.001 + x
    return x


def test_time_between_events(mps):
    start, end = mps.Event(), mps.Event()
    began = time.perf_counter()
    start.record()
    work()
    end.record()
    end.synchronize()
    passed = (time.perf_counter() - began) * 1000
    assert start.query() and end.query()
    assert 0 < start.elapsed_time(end) <= passed


def test_events_that_have_no_time(mps):
    recorded, never = mps.Event(), mps.Event()
    recorded.record()
    with pytest.raises(RuntimeError, match="recorded"):
        recorded.elapsed_time(never)
    with pytest.raises(ValueError, match="enable_timing"):
        recorded.elapsed_time(mps.Event(enable_timing=False))
    with pytest.raises(NotImplementedError):
        mps.Event(interprocess=True)
    assert never.query(), "nothing to wait for"
    never.synchronize()


def test_an_event_can_be_recorded_again(mps):
    first, second = mps.Event(), mps.Event()
    first.record()
    work()
    second.record()
    once = first.elapsed_time(second)
    work()
    second.record()
    assert first.elapsed_time(second) > once


def test_streams_order_work(mps):
    side = mps.Stream()
    assert side.query()
    main = mps.current_stream()
    x = work()
    side.wait_stream(main)
    with mps.stream_guard(side):
        assert mps.current_stream().stream_base.raw_stream == side.stream_base.raw_stream
        y = x + 1
    done = side.record_event()
    main.wait_event(done)
    np.testing.assert_array_equal((y - x).numpy(), np.ones([400, 400], dtype="float32"))
    assert mps.current_stream().stream_base.raw_stream == main.stream_base.raw_stream
    side.synchronize()
    mps.synchronize()
    assert done.query()


def test_paddle_device_has_the_same(mps):
    stream = paddle.device.Stream("mps:0")
    event = paddle.device.Event()
    event.record(stream)
    event.synchronize()
    stream.synchronize()
    paddle.device.synchronize("mps")
    paddle.device.synchronize("mps:0")
    assert stream.query() and event.query()


def test_profiler(mps, tmp_path):
    from paddle import profiler

    targets = [profiler.ProfilerTarget.CPU, profiler.ProfilerTarget.CUSTOM_DEVICE]
    ready = profiler.export_chrome_tracing(str(tmp_path))
    with profiler.Profiler(targets=targets, custom_device_types=["mps"], on_trace_ready=ready) as profile:
        x = work()
        profile.step()
    assert float(x[0, 0]) > 0
    (path,) = tmp_path.glob("*.json")
    events = json.loads(path.read_text())["traceEvents"]
    kernels = [event for event in events if event.get("cat") == "Kernel"]
    assert len(kernels) >= 5, "five sums at least"
    assert "add" in {event["name"].split("[")[0] for event in kernels}
    assert all(event["dur"] >= 0 for event in kernels)
