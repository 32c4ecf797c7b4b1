# SPDX-License-Identifier: Apache-2.0
"""Models as a Python user runs them: what may go in, what comes out, and in which type."""
import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import anymps
from alone import run_alone


def onnx_model(nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def info(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


@pytest.fixture
def relu_file(tmp_path):
    path = tmp_path / "relu.onnx"
    onnx.save(onnx_model([helper.make_node("Relu", ["x"], ["y"])], [info("x", ["N", 3])], [info("y", ["N", 3])]), path)
    return path


def test_load_from_path_string_and_bytes(relu_file):
    x = np.array([[-1, 0, 2]], np.float32)
    for source in (relu_file, str(relu_file), relu_file.read_bytes(), bytearray(relu_file.read_bytes())):
        np.testing.assert_array_equal(anymps.load(source)(x), [[0, 0, 2]])


def test_inputs_and_outputs_say_what_they_are(relu_file):
    model = anymps.load(relu_file)
    (x,), (y,) = model.inputs, model.outputs
    assert (x.name, x.dtype, x.shape) == ("x", "f32", ("N", 3))
    assert (y.name, y.dtype) == ("y", "f32")
    assert repr(model) == "<anymps.Executable on cpu: (x: f32[N,3]) -> (y: f32[N,3])>"


@pytest.mark.parametrize("feed", [
    np.array([[1, 2, 3, 4]], np.float32),
    [[1, 2, 3, 4]],
    ((1.0, 2, 3, 4),),
    np.asfortranarray(np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.float32)),
    np.arange(24, dtype=np.float32).reshape(3, 8)[:, ::2],
    np.arange(8, dtype=np.float32).reshape(2, 4)[::-1, ::-1],
    np.broadcast_to(np.float32(1), (3, 4)),
    np.zeros((0, 4), np.float32),
    np.arange(8, dtype=">f4").reshape(2, 4),
    np.frombuffer(b"\0" + np.arange(4, dtype=np.float32).tobytes(), np.uint8)[1:].view(np.float32).reshape(1, 4),
], ids=["array", "list", "tuple", "fortran", "strided", "negative strides", "broadcast", "empty", "big-endian",
        "unaligned, read-only"])
def test_every_kind_of_array(mlp, feed):
    model, twin, _ = mlp
    expected = twin(feed)
    for result in (model(feed), model(x=feed)):
        assert isinstance(result, np.ndarray) and result.dtype == np.float32
        np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_numpy_arrays_are_not_copied():
    x = np.ones((2, 3), np.float32)
    tensor = anymps.tensor(x)
    assert np.shares_memory(tensor.numpy(), x)
    assert np.shares_memory(np.asarray(tensor), x)
    assert not np.shares_memory(anymps.tensor(x, copy=True).numpy(), x)


def test_results_can_be_written_to_and_do_not_change_later(mlp):
    model, twin, _ = mlp
    x = np.ones((2, 4), np.float32)
    first = model(x)
    kept = first.copy()
    model(x * 3)
    np.testing.assert_array_equal(first, kept)
    first[:] = 7
    np.testing.assert_allclose(model(x), twin(x), rtol=1e-5)


@pytest.mark.parametrize("kind", ["input", "weights"])
def test_a_result_is_never_the_memory_of_an_input_or_of_weights(kind):
    """A graph that hands through what it got: writing to the result must change neither."""
    graph = anymps.Graph()
    x = graph.input("x", "f32", (3,))
    graph.outputs(x, graph.constant(np.float32([1, 2, 3])))
    model = anymps.compile(graph)
    feed = np.float32([4, 5, 6])
    for result in model(feed):
        result[:] = 0
    np.testing.assert_array_equal(feed, [4, 5, 6])
    np.testing.assert_array_equal(model(feed)[kind == "weights"], [1, 2, 3] if kind == "weights" else [4, 5, 6])


def test_results_written_to_given_memory(mlp):
    model, twin, _ = mlp
    x, out = np.ones((2, 4), np.float32), np.empty((2, 3), np.float32)
    (tensor,) = model.run([x], results=[out])
    np.testing.assert_allclose(out, twin(x), rtol=1e-5)
    assert np.shares_memory(tensor.numpy(), out)
    out.flags.writeable = False
    with pytest.raises(anymps.InvalidArgument, match="read-only"):
        model.run({"x": x}, results=[out])


def test_numpy_scalars_and_python_numbers():
    model = anymps.load(onnx_model([helper.make_node("Add", ["a", "b"], ["y"])], [info("a", []), info("b", [])],
                                   [info("y", [])]).SerializeToString())
    for a in (np.float32(2), np.array(2, np.float32), 2, 2.0):
        assert model(a, np.float32(3)) == 5


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8,
                                   np.uint16, np.uint32, np.uint64, np.bool_, np.complex64, np.complex128,
                                   ml_dtypes.bfloat16])
def test_dtypes_go_through(dtype):
    graph = anymps.Graph()
    x = graph.input("x", dtype, (2, 2))
    graph.outputs(anymps.ops.transpose(x))
    data = np.array([[0, 1], [1, 0]]).astype(dtype)
    result = anymps.compile(graph)(data)
    assert result.dtype == data.dtype
    np.testing.assert_array_equal(result, data.T)


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
                                  "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn"])
def test_narrow_dtypes_go_in_and_out(name):
    data = np.array([1, 1, 1]).astype(getattr(ml_dtypes, name))
    tensor = anymps.tensor(data)
    assert tensor.nbytes == 3 and tensor.numpy().dtype == data.dtype
    np.testing.assert_array_equal(tensor.numpy(), data)


@pytest.mark.parametrize("data", [np.array([["a", "längst"], ["", "日本"]], object), np.array(["x", "yz"]),
                                  np.array([b"bytes", b"\xff\xfe"]), "one"])
def test_strings_go_in_and_out(data):
    result = anymps.tensor(data).numpy()
    expected = [t if isinstance(t, str) else t.decode("utf-8", "surrogateescape")
                for t in np.asarray(data, object).ravel().tolist()]
    assert result.dtype == object and result.ravel().tolist() == expected


def test_several_results_are_a_tuple():
    graph = anymps.Graph()
    x = graph.input("x", "f32", ("N",))
    graph.outputs(x + 1, x * 2)
    a, b = anymps.compile(graph)([1.0, 2.0])
    assert a.tolist() == [2, 3] and b.tolist() == [2, 4]


def test_tensors_in_tensors_out(mlp):
    model, twin, _ = mlp
    x = np.ones((2, 4), np.float32)
    result = model(anymps.tensor(x))
    assert isinstance(result, anymps.Tensor)
    np.testing.assert_allclose(result.numpy(), twin(x), rtol=1e-5)
    assert result.shape == (2, 3) and result.dtype == "f32" and result.ndim == 2 and len(result) == 2
    assert "f32[2,3] on cpu" in repr(result)


def test_compile_options(mlp):
    _, twin, graph = mlp
    x = np.ones((2, 4), np.float32)
    for options in ({"threads": 1}, {"optimization_level": 0}, {"check": True}, {"device": "reference"},
                    {"without_passes": ["layout"]}, {"without_passes": "layout"}, {"plan_cache": 1}):
        np.testing.assert_allclose(anymps.compile(graph, **options)(x), twin(x), rtol=1e-5)


@pytest.mark.parametrize("options, told", [
    ({"threads": -1}, "-1 threads"), ({"optimization_level": 9}, "optimization level 9"), ({"without_passes": ["nope"]}, "no pass 'nope'")])
def test_compile_options_that_mean_nothing(mlp, options, told):
    with pytest.raises(anymps.InvalidArgument, match=told):
        anymps.compile(mlp[2], **options)


def test_save_and_load(mlp, tmp_path):
    model, twin, graph = mlp
    x = np.ones((2, 4), np.float32)
    graph.save(tmp_path / "graph.mps")
    model.save(tmp_path / "model.mps")
    for name in ("graph.mps", "model.mps"):
        np.testing.assert_allclose(anymps.load(tmp_path / name)(x), twin(x), rtol=1e-5)


def test_texts_of_a_model(mlp):
    model, _, graph = mlp
    assert model._repr_svg_().startswith("<svg") and graph._repr_svg_().startswith("<svg")
    assert "softmax" in graph.text() and "matmul" in model.text("plan", [(2, 4)])
    model(np.ones((2, 4), np.float32))
    assert model.plan_cache()["entries"] >= 1
    model.clear_plans()
    assert model.plan_cache()["entries"] == 0


def test_profiler(mlp, tmp_path):
    model, _, _ = mlp
    with anymps.profile() as profile:
        model(np.ones((2, 4), np.float32))
    assert "softmax" in str(profile) and "softmax" in profile._repr_html_()
    profile.save_trace(tmp_path / "trace.json")
    assert "softmax" in (tmp_path / "trace.json").read_text()
    before = profile.table
    model(np.ones((2, 4), np.float32))
    assert profile.table == before, "a run outside of the block was measured"


def test_streams_and_events(mlp):
    model, twin, _ = mlp
    x = np.ones((2, 4), np.float32)
    with anymps.stream() as stream:
        start = stream.record()
        results = [model.submit(x * i, stream=stream)[0] for i in range(8)]
        end = stream.record()
    assert end.done and start.milliseconds_until(end) >= 0
    for i, result in enumerate(results):
        np.testing.assert_allclose(result.numpy(), twin(x * i), rtol=1e-5)
    other = anymps.stream()
    other.wait(end)
    other.synchronize()


def test_devices_and_memory():
    assert {"cpu", "reference"} <= set(anymps.devices())
    device = anymps.device("cpu")
    assert device.max_threads >= 1 and "cpu" in repr(device)
    before = anymps.memory_stats()["allocated"]
    tensor = anymps.empty((1024, 1024))
    assert anymps.memory_stats()["allocated"] - before >= 4 << 20
    del tensor
    anymps.empty_cache()
    assert anymps.memory_stats()["allocated"] == before
    anymps.synchronize()
    assert "devices" in anymps.doctor()


def test_threads_of_a_device():
    """How many compute is set at any time and changes no bit; the times are those of all callers."""
    run_alone("""
        import time, anymps, numpy as np
        device = anymps.device("cpu")
        x = np.random.default_rng(1).standard_normal((256, 256), np.float32)
        graph = anymps.Graph()
        graph.outputs(anymps.ops.softmax(graph.input("x", "f32", x.shape) @ x, axis=1))
        model = anymps.compile(graph)
        assert device.max_threads == 1
        alone = model(x)
        assert device.thread_times() == (0, 0)
        device.max_threads = 3
        assert device.max_threads == 3
        end = time.monotonic() + 50
        while device.thread_times()[0] == 0 and time.monotonic() < end:  # the others come when they have a core
            assert np.array_equal(model(x), alone)
        helped, waited = device.thread_times()
        assert helped > 0 and waited >= 0
        for bad in (0, -1, 1025, 2**40, -2**40):
            try:
                device.max_threads = bad
            except anymps.InvalidArgument as error:
                assert "1 to 1024 can be asked for" in str(error)
            else:
                raise AssertionError(bad)
        assert device.max_threads == 3
        reference = anymps.device("reference")
        try:
            reference.max_threads = 2
        except anymps.Unsupported as error:
            assert "has one thread" in str(error)
        else:
            raise AssertionError("two threads of the reference driver")
        assert reference.max_threads == 1 and reference.thread_times() == (0, 0)
    """, ANYMPS_NUM_THREADS="1")


def sequence(name):
    return helper.make_tensor_sequence_value_info(name, TensorProto.FLOAT, None)


def test_sequences_are_lists():
    model = anymps.load(onnx_model([helper.make_node("SequenceInsert", ["s", "x"], ["y"])],
                                   [sequence("s"), info("x", None)], [sequence("y")]).SerializeToString())
    a, b = np.float32([1, 2]), np.float32([[3]])
    result = model([a], b)
    assert isinstance(result, list) and len(result) == 2
    np.testing.assert_array_equal(result[0], a)
    np.testing.assert_array_equal(result[1], b)
    assert len(model([], b)) == 1
    for wrong in (None, a, 3):
        with pytest.raises(anymps.InvalidArgument, match="'s'"):
            model(wrong, b)
    with pytest.raises(anymps.Error):
        model([np.float64([1])], b)


def test_optionals_are_none_or_a_value():
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    x = helper.make_value_info("x", kind)
    model = anymps.load(onnx_model([helper.make_node("OptionalHasElement", ["x"], ["has"]),
                                    helper.make_node("Identity", ["x"], ["y"])],
                                   [x], [info("has", [], TensorProto.BOOL), helper.make_value_info("y", kind)])
                        .SerializeToString())
    has, y = model(None)
    assert not has and y is None
    has, y = model(np.float32([1, 2]))
    assert has and y.tolist() == [1, 2]
