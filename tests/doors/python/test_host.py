# SPDX-License-Identifier: Apache-2.0
"""The extension as a guest of a Python process: memory goes back, nothing waits for the interpreter's lock while it holds
it, no list is read past its end. What may hang or crash runs in a process of its own."""
import pytest

from alone import run_alone


def test_an_idle_program_gives_memory_back():
    run_alone("""
        import time, anymps
        anymps.empty((4 << 20,))
        anymps.empty((8,))
        assert anymps.memory_stats()["pooled"] >= 24 << 20, anymps.memory_stats()
        time.sleep(0.02)
        anymps.trim()
        assert anymps.memory_stats()["reserved"] == 0, anymps.memory_stats()
    """, MPS_MAX_BUFFER_AGE="10")


MODEL = """
    import sys, threading, numpy as np, anymps
    graph = anymps.Graph()
    x = graph.input("x", "f32", [256, 256])
    for _ in range(20):
        x = anymps.ops.matmul(x, x)
    graph.outputs(x)
    model = anymps.compile(graph)
"""


def test_a_stream_with_work_in_flight_may_be_dropped():
    """The feeds are numpy's: the stream's thread needs the interpreter's lock to let go of them."""
    run_alone(MODEL + """
    for _ in range(5):
        stream = anymps.stream()
        for i in range(8):
            model.submit(np.zeros((256, 256), np.float32), stream=stream)
        del stream
    """)


def test_an_event_with_work_in_flight_may_be_waited_for():
    run_alone(MODEL + """
    stream = anymps.stream()
    start = stream.record()
    for i in range(8):
        model.submit(np.zeros((256, 256), np.float32), stream=stream)
    end = stream.record()
    assert start.milliseconds_until(end) > 0
    other = anymps.stream()
    other.wait(end)
    other.synchronize()
    """)


@pytest.mark.parametrize("kept", ["", "sys.kept = stream", "stream.itself = stream", "builtins = sys.modules['builtins']; builtins.kept = stream"])
def test_the_interpreter_may_end_with_work_in_flight(kept):
    run_alone(MODEL + f"""
    stream = anymps.stream()
    for i in range(8):
        model.submit(np.zeros((256, 256), np.float32), stream=stream)
    {kept}
    """)


def test_capsules_end_on_any_thread():
    run_alone(MODEL + """
    for i in range(200):
        tensor = anymps.tensor(np.zeros(1000, np.float32))
        held = [np.from_dlpack(tensor), anymps.from_dlpack(np.zeros(10, np.float32))]
        del tensor
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()
    """)


def test_the_shapes_of_a_plan_are_counted():
    """A list that was too short was read past its end."""
    run_alone("""
        import numpy as np, anymps
        graph = anymps.Graph()
        graph.outputs(anymps.ops.relu(graph.input("x", "f32", ["N", 3])))
        core = graph._core.compile(anymps.device("cpu"), 0, 1, False, "", 0, False)
        for wrong in ([], [2], [2, 3, 4], [-2, 3], [2, 4], [1 << 62, 3]):
            try:
                core.text("plan", wrong)
            except anymps.Error:
                continue
            raise SystemExit(f"{wrong} was taken")
        assert "relu" in core.text("plan", [2, 3])
    """)


def test_a_zero_ends_no_name():
    run_alone("""
        import anymps
        for call in (lambda: anymps.load("model.onnx\\0.txt"), lambda: anymps.device("cpu\\0x"),
                     lambda: anymps.Graph().input("a\\0b", "f32", [1]), lambda: anymps.empty([1], "f32\\0"),
                     lambda: anymps.Graph("g\\0"), lambda: anymps.Graph().input("a", "f32", ["N\\0"]),
                     lambda: anymps.ops.gelu(anymps.tensor([1.0]), approximate="tanh\\0")):
            try:
                call()
            except anymps.InvalidArgument as error:
                assert "NUL" in str(error), error
            else:
                raise SystemExit("a zero was taken")
    """)
