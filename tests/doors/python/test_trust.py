# SPDX-License-Identifier: Apache-2.0
"""The bounds that docs/python/quickstart.md names under "What may come from strangers", each tried."""
import os
import pickle

import numpy as np
import pytest
from onnx import TensorProto, helper

import anymps

X = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
Y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)


def model(nodes, constants=(), inputs=(X,)):
    graph = helper.make_graph(nodes, "g", list(inputs), [Y], list(constants))
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def outside(location):
    """A model whose weights lie in another file."""
    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", "0"), ("length", "8")):
        weights.external_data.add(key=key, value=value)
    return model([helper.make_node("Add", ["x", "w"], ["y"])], [weights])


def test_weights_stay_in_the_models_folder(tmp_path):
    (tmp_path / "model").mkdir()
    secret = tmp_path / "secret.bin"
    secret.write_bytes(np.float32([1, 2]).tobytes())
    (tmp_path / "model" / "link.bin").symlink_to(secret)
    for location in ("../secret.bin", str(secret), "link.bin", "/etc/hostname", "a\0b"):
        path = tmp_path / "model" / "model.onnx"
        path.write_bytes(outside(location).SerializeToString())
        with pytest.raises(anymps.Error):
            anymps.load(path)
    (tmp_path / "model" / "own.bin").write_bytes(secret.read_bytes())
    (tmp_path / "model" / "model.onnx").write_bytes(outside("own.bin").SerializeToString())
    np.testing.assert_array_equal(anymps.load(tmp_path / "model" / "model.onnx")([1, 1]), [2, 3])


def test_a_model_from_memory_reads_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.bin").write_bytes(bytes(8))
    with pytest.raises(anymps.Error):
        anymps.load(outside("own.bin").SerializeToString())


def test_a_file_is_data_and_never_code():
    class Trap:
        def __reduce__(self):
            return os.abort, ()
    with pytest.raises(anymps.Corrupt):
        anymps.load(pickle.dumps(Trap()))
    with pytest.raises(anymps.InvalidArgument):  # objects are no elements, whatever their methods do
        anymps.tensor(np.array([Trap()]))


def test_few_bytes_that_ask_for_much_memory_meet_the_limit():
    huge = helper.make_tensor("shape", TensorProto.INT64, [2], [1 << 20, 1 << 14])
    fill = helper.make_node("ConstantOfShape", ["shape"], ["f"])
    first = helper.make_node("ReduceSum", ["f"], ["y"])
    shaped = model([fill, first], [huge], inputs=())
    try:
        anymps.set_memory_limit(anymps.memory_stats()["reserved"] + (64 << 20))
        with pytest.raises(anymps.Error):
            anymps.load(shaped.SerializeToString())()
        with pytest.raises(anymps.OutOfMemory):
            anymps.ops.expand(np.zeros(1, np.float32), shape=[1 << 30])
    finally:
        anymps.set_memory_limit(0)


def test_arrays_are_read_where_they_lie_and_no_further():
    whole = np.arange(12, dtype=np.float32)
    view = np.lib.stride_tricks.as_strided(whole[2:], (3,), (8,))
    np.testing.assert_array_equal(anymps.ops.neg(view), -view)
    tensor = anymps.tensor(whole)
    for dims, strides, offset in (([13], [1], 0), ([2], [12], 0), ([1 << 62], [1 << 3], 0), ([2], [-1], 0), ([1], [1], 12)):
        with pytest.raises(anymps.InvalidArgument):
            tensor._view(dims, strides, offset)
    capsule = tensor.__dlpack__()
    anymps.from_dlpack(capsule)
    with pytest.raises(Exception, match="dlpack|taken|used"):
        anymps.from_dlpack(capsule)
