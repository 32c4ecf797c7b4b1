# SPDX-License-Identifier: Apache-2.0
"""DLPack in both directions, with numpy and with capsules made by hand: memory is shared, lives as long as somebody
uses it, is given back once; and a capsule that lies is an exception."""
import ctypes
import gc
import sys

import numpy as np
import pytest

import anymps


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    pass


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Producer:
    """A capsule over numpy memory; `deleted` counts calls of the deleter."""

    def __init__(self, array, name=b"dltensor", **changes):
        self.array, self.deleted = array, 0
        self.shape = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
        self.strides = (ctypes.c_int64 * max(1, array.ndim))(*[s // array.itemsize for s in array.strides])
        tensor = DLTensor(array.ctypes.data, 1, 0, array.ndim, 2, 32, 1, self.shape, self.strides, 0)
        for field, value in changes.items():
            setattr(tensor, field, value)
        self.deleter = DELETER(self.delete)
        self.managed = Managed(tensor, None, self.deleter)
        self.capsule = new_capsule(ctypes.addressof(self.managed), name, None)

    def delete(self, _):
        self.deleted += 1


def floats():
    return np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("array", [floats(), floats().T, floats()[:, ::2], np.array(5, np.float32),
                                   np.zeros((0, 3), np.float32), np.arange(4, dtype=np.int64), np.array([True, False]),
                                   np.array([1 + 2j], np.complex64), np.array([1 + 2j]), np.arange(3, dtype=np.uint16)],
                         ids=lambda a: f"{a.dtype}{a.shape}")
def test_numpy_both_ways_without_copies(array):
    tensor = anymps.from_dlpack(array)
    assert tensor.shape == array.shape
    np.testing.assert_array_equal(tensor.numpy(), array)
    back = np.from_dlpack(tensor)
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)
    if array.size:
        assert np.shares_memory(tensor.numpy(), array) and np.shares_memory(back, array)


def test_the_producer_is_told_once_and_only_when_nobody_uses_the_memory():
    producer = Producer(floats())
    tensor = anymps.from_dlpack(producer.capsule)
    view = tensor.numpy()
    capsule = tensor.__dlpack__(max_version=(1, 0))
    del tensor
    gc.collect()
    assert producer.deleted == 0
    np.testing.assert_array_equal(view, floats())
    del view
    gc.collect()
    assert producer.deleted == 0, "a capsule that nobody took yet keeps the memory, too"
    del capsule
    gc.collect()
    assert producer.deleted == 1


def test_memory_is_kept_while_a_stream_uses_it():
    graph = anymps.Graph()
    x = graph.input("x", "f32", ("N", "N"))
    graph.outputs((x @ x).reduce_sum())
    model = anymps.compile(graph)
    with anymps.stream() as stream:
        results = []
        for i in range(20):
            producer = Producer(np.full((64, 64), i, np.float32))
            results.append((i, model.submit(anymps.from_dlpack(producer.capsule), stream=stream)[0], producer))
    for i, result, _ in results:
        assert result.item() == 64 ** 3 * i * i


def test_a_result_outlives_its_model():
    graph = anymps.Graph()
    graph.outputs(graph.input("x", "f32", (3,)) + 1)
    result = np.from_dlpack(anymps.compile(graph)(anymps.tensor(np.float32([1, 2, 3]))))
    del graph
    gc.collect()
    anymps.device().clear_caches()
    anymps.empty_cache()
    assert result.tolist() == [2, 3, 4]


def test_a_capsule_can_be_taken_once():
    producer = Producer(floats())
    tensor = anymps.from_dlpack(producer.capsule)
    with pytest.raises(anymps.InvalidArgument, match="took already"):
        anymps.from_dlpack(producer.capsule)
    del tensor
    assert producer.deleted == 1
    own = anymps.tensor(floats()).__dlpack__()
    anymps.from_dlpack(own)
    with pytest.raises(anymps.InvalidArgument, match="took already"):
        anymps.from_dlpack(own)


NULL = ctypes.POINTER(ctypes.c_int64)()


@pytest.mark.parametrize("changes, error, text", [
    ({"device_type": 2}, anymps.Unsupported, "device of type 2"),
    ({"code": 99}, anymps.InvalidArgument, "code 99"),
    ({"bits": 24}, anymps.InvalidArgument, "24 bits"),
    ({"bits": 4}, anymps.InvalidArgument, "4 bits"),
    ({"lanes": 4}, anymps.InvalidArgument, "4 lanes"),
    ({"lanes": 0}, anymps.InvalidArgument, "0 lanes"),
    ({"ndim": -1}, anymps.InvalidArgument, "shape makes no sense"),
    ({"ndim": 2 ** 30}, anymps.InvalidArgument, "shape makes no sense"),
    ({"shape": NULL}, anymps.InvalidArgument, "shape makes no sense"),
    ({"shape": (ctypes.c_int64 * 2)(-1, 3)}, anymps.InvalidArgument, "shape makes no sense"),
    ({"shape": (ctypes.c_int64 * 2)(2 ** 62, 2 ** 62)}, anymps.InvalidArgument, "shape makes no sense"),
    ({"data": None}, anymps.InvalidArgument, "no data"),
    ({"byte_offset": 1}, anymps.InvalidArgument, "aligned"),
    ({"shape": (ctypes.c_int64 * 2)(2 ** 40, 2 ** 22)}, anymps.Error, "."),
])
def test_a_capsule_that_lies_is_refused_and_stays_with_its_owner(changes, error, text):
    producer = Producer(floats(), **changes)
    with pytest.raises(error, match=text):
        anymps.from_dlpack(producer.capsule)
    assert producer.deleted == 0


@pytest.mark.parametrize("name", [b"used_dltensor", b"something", None])
def test_capsules_of_other_kinds(name):
    with pytest.raises(anymps.InvalidArgument, match="holds no tensor"):
        anymps.from_dlpack(Producer(floats(), name=name).capsule)


@pytest.mark.parametrize("thing", [3, "text", None, object(), [1, 2]])
def test_what_has_no_dlpack(thing):
    with pytest.raises(TypeError, match="no __dlpack__"):
        anymps.from_dlpack(thing)


class OnAnotherDevice:
    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **_):
        raise AssertionError("nobody may ask for the capsule")


class Broken(OnAnotherDevice):
    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        raise RuntimeError("broken producer")


class NoCapsule(Broken):
    def __dlpack__(self, **_):
        return 42


class Old(Broken):
    """A producer from before version 1.0: it takes no max_version."""

    def __dlpack__(self, stream=None):
        return Producer(floats()).capsule


def test_producers_of_all_kinds():
    with pytest.raises(anymps.Unsupported, match="move it there first"):
        anymps.from_dlpack(OnAnotherDevice())
    with pytest.raises(RuntimeError, match="broken producer"):
        anymps.from_dlpack(Broken())
    with pytest.raises(TypeError):
        anymps.from_dlpack(NoCapsule())


def test_an_old_producer():
    kept = Producer(floats())

    class Source(Old):
        def __dlpack__(self, stream=None):
            return kept.capsule
    np.testing.assert_array_equal(anymps.from_dlpack(Source()).numpy(), floats())


def test_read_only_memory_stays_read_only():
    array = floats()
    array.flags.writeable = False
    tensor = anymps.tensor(array)
    assert tensor.readonly and not tensor.numpy().flags.writeable
    assert not np.from_dlpack(tensor).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        tensor.__dlpack__()


def test_requests_that_cannot_be_met():
    tensor = anymps.tensor(floats())
    assert tensor.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError):
        tensor.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError):
        tensor.__dlpack__(stream=1)
    with pytest.raises(anymps.InvalidArgument, match="strings"):
        anymps.tensor(np.array(["a"], object)).__dlpack__()
    copied = np.from_dlpack(tensor, copy=True)
    assert not np.shares_memory(copied, tensor.numpy())


def test_references_are_given_back():
    array = floats()
    before = sys.getrefcount(array)
    for _ in range(100):
        tensor = anymps.tensor(array)
        np.from_dlpack(tensor)
        tensor.__dlpack__()
        memoryview(tensor)
        del tensor
    gc.collect()
    assert sys.getrefcount(array) == before
