# SPDX-License-Identifier: Apache-2.0
"""Between Python's arrays and the engine's tensors: numpy, anything with DLPack, lists, numbers, strings, and the
containers (sequences, optionals, maps). Memory is shared wherever it can be, never copied behind the user's back for
anything but what has no memory of its own (lists, numbers, strings) or cannot be addressed (unaligned arrays)."""
import operator
import os

import numpy as np

from . import _core

TENSOR, SEQUENCE, OPTIONAL, OPTIONAL_SEQUENCE, MAPS = range(5)

# Short name -> numpy dtype. Types that numpy lacks come from ml_dtypes, where that is installed.
NUMPY_DTYPES = {
    "f32": np.dtype(np.float32), "f16": np.dtype(np.float16), "f64": np.dtype(np.float64),
    "i8": np.dtype(np.int8), "i16": np.dtype(np.int16), "i32": np.dtype(np.int32), "i64": np.dtype(np.int64),
    "u8": np.dtype(np.uint8), "u16": np.dtype(np.uint16), "u32": np.dtype(np.uint32), "u64": np.dtype(np.uint64),
    "bool": np.dtype(np.bool_), "c64": np.dtype(np.complex64), "string": np.dtype(object),
}
_ML_DTYPES = {
    "bf16": "bfloat16", "i4": "int4", "u4": "uint4", "i2": "int2", "u2": "uint2", "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2", "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e8m0": "float8_e8m0fnu", "f4e2m1": "float4_e2m1fn",
}
try:
    import ml_dtypes
except ImportError:
    pass
else:
    for _name, _attribute in _ML_DTYPES.items():
        if hasattr(ml_dtypes, _attribute):
            NUMPY_DTYPES[_name] = np.dtype(getattr(ml_dtypes, _attribute))
NAMES = {dtype: name for name, dtype in NUMPY_DTYPES.items()}
_LONG_NAMES = {"float": "f32", "float32": "f32", "float16": "f16", "half": "f16", "float64": "f64", "double": "f64",
               "complex64": "c64", "boolean": "bool", "str": "string",
               **{f"{kind}{bits}": f"{kind[0]}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
               **{long: short for short, long in _ML_DTYPES.items()}}
# The numbers that integers of few bits can be.
_NARROW_LIMITS = {"i4": (-8, 7), "u4": (0, 15), "i2": (-2, 1), "u2": (0, 3)}
# What the buffer of a type that numpy lacks is made of.
_CARRIERS = {name: np.dtype(np.uint16 if name == "bf16" else np.uint8) for name in _ML_DTYPES}


def dtype_name(dtype):
    """The engine's short name ('f32') of a numpy or ml_dtypes dtype, a Python type, or a long or short name."""
    if isinstance(dtype, str):
        name = text(_LONG_NAMES.get(dtype, dtype), "dtype")
        _core.dtype_size(name)  # raises for what it does not know
        return name
    shown = str(dtype)
    if shown.startswith(("torch.", "paddle.")):
        return dtype_name(shown.split(".")[1])
    try:
        found = np.dtype(dtype)
    except TypeError:
        raise _core.InvalidArgument(f"[dtype] {dtype!r} is no dtype") from None
    if found.kind in "US":
        return "string"
    name = NAMES.get(found.newbyteorder("=") if found.kind in "fiuc" else found)
    if name is None:
        raise _core.InvalidArgument(f"[dtype] the engine has no element type for {found}")
    return name


def numpy_dtype(name):
    """The numpy dtype of a short name; an exception where that comes from ml_dtypes, which is not installed."""
    name = dtype_name(name)
    if name not in NUMPY_DTYPES:
        raise _core.Unsupported(f"[dtype] numpy has no {name}: install ml_dtypes, or use "
                                "anymps.tensor(…, 'f32') to have the numbers in another dtype")
    return NUMPY_DTYPES[name]


def text(value, what):
    """A name for the engine, which is UTF-8; the extension refuses one with a NUL (c_text, core.h)."""
    if not isinstance(value, str):
        raise TypeError(f"[{what}] a name must be a str, not {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _core.InvalidArgument(f"[{what}] {value!r} cannot be written in UTF-8") from None
    return value


def path(value, what):
    """A path for the engine: a str, bytes or anything with __fspath__."""
    return text(os.fsdecode(value), what)


def whole(value, what, low=-(1 << 63), high=(1 << 63) - 1):
    """A whole number between the bounds; a float is a TypeError, as for Python's own sizes."""
    number = operator.index(value)
    if not low <= number <= high:
        raise _core.InvalidArgument(f"[{what}] {number if abs(number) < 1 << 99 else 'the number'} is not "
                                    f"between {low} and {high}")
    return number


def extent(value, what):
    """An extent of a shape."""
    return whole(value, what, 0)


def cast(tensor, dtype):
    """The tensor's numbers in another dtype."""
    return tensor.device.eager("cast", [tensor], [("dtype", "dtype", dtype)], 1)[0]


def from_numpy(array, device):
    """A tensor that shares the array's memory."""
    if array.dtype.kind in "OUST":
        return from_strings(array, device)
    name = NAMES.get(array.dtype) or dtype_name(array.dtype)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.aligned:
        array = array.copy()
    if name in _CARRIERS:
        array = array.view(_CARRIERS[name])
    return _core.from_buffer(array, name, device)


def from_strings(array, device):
    texts = []
    for item in array.ravel().tolist():
        if isinstance(item, str):
            texts.append(item.encode("utf-8", "surrogateescape"))
        elif isinstance(item, bytes):
            texts.append(item)
        else:
            raise _core.InvalidArgument(f"[tensor] an array of objects must hold strings, not {type(item).__name__}")
    return _core.from_strings(texts, list(array.shape), device)


def from_dlpack(source, device):
    """A tensor that shares the memory of anything with __dlpack__, or of a DLPack capsule."""
    if type(source).__name__ == "PyCapsule":
        return _core.Tensor._from_capsule(source, device)
    try:
        kind = source.__dlpack_device__()[0]
    except AttributeError:
        raise TypeError(f"[dlpack] {type(source).__name__} has no __dlpack__") from None
    if kind != 1:
        raise _core.Unsupported(f"[dlpack] the tensor is on a device of type {int(kind)}, "
                                "not in the host's memory: move it there first")
    try:
        capsule = source.__dlpack__(max_version=(1, 0))
    except TypeError:  # a producer from before DLPack 1.0
        capsule = source.__dlpack__()
    return _core.Tensor._from_capsule(capsule, device)


def to_tensor(value, device, dtype=None, container=TENSOR):
    """Anything as a tensor (or a list of tensors) of the device; `dtype` is for what has none of its own."""
    if isinstance(value, _core.Tensor):
        return value
    if container != TENSOR:
        return _to_container(value, device, dtype, container)
    if isinstance(value, (np.ndarray, np.generic)):
        if value.dtype.kind == "O" and dtype not in (None, "string"):
            return _from_numbers(_as_array(value.tolist()), device, dtype)
        return from_numpy(np.asarray(value), device)
    if hasattr(value, "__dlpack__"):
        if getattr(value, "requires_grad", False):
            value = value.detach()
        return from_dlpack(value, device)
    if dtype == "string" or isinstance(value, (str, bytes)):
        return from_strings(np.asarray(value, object), device)
    if value is None:
        raise _core.InvalidArgument("[tensor] None is given where a tensor is needed")
    return _from_numbers(_as_array(value), device, dtype)


def shared(value, device, what, dtype=None):
    """An array as a tensor over its very memory, where what is written to it is seen."""
    tensor = to_tensor(value, device) if hasattr(value, "__dlpack__") or isinstance(value, _core.Tensor) else None
    array = isinstance(value, np.ndarray)
    if tensor is None or array and not (value.dtype.isnative and value.flags.aligned) or tensor.dtype == "string":
        raise _core.InvalidArgument(f"[{what}] only an array has memory to share, {type(value).__name__} given: copy it")
    if dtype is not None and tensor.dtype != dtype:
        raise _core.InvalidArgument(f"[{what}] the array is {tensor.dtype}: as {dtype} it must be copied")
    return tensor


def _as_array(value):
    try:
        return np.asarray(value)
    except (ValueError, OverflowError) as error:  # lists of several lengths
        raise _core.InvalidArgument(f"[tensor] {error}") from None


def _from_numbers(array, device, dtype):
    """A tensor of what Python's numbers and lists are as an array."""
    if array.dtype == object:
        if not all(isinstance(item, (int, float, complex)) for item in array.flat):
            return from_strings(array, device)
        array = _large_numbers(array, dtype)
    if dtype is None:
        narrow = {"float64": np.float32, "complex128": np.complex64}.get(array.dtype.name)
        return from_numpy(array if narrow is None else array.astype(narrow), device)
    if dtype in NUMPY_DTYPES:
        return from_numpy(_exactly(array, dtype), device)
    return cast(from_numpy(_exactly(array, dtype, np.dtype(np.float32)), device), dtype)


def _large_numbers(array, dtype):
    """Numbers among which are integers of more than 64 bits: floats, if these are asked for."""
    floats = dtype in ("f16", "bf16", "f32", "f64", "c64")
    try:
        return array.astype(np.complex128 if dtype == "c64" else np.float64) if floats else _too_large(dtype or "i64")
    except (OverflowError, TypeError):
        _too_large(dtype)


def _too_large(dtype):
    raise _core.InvalidArgument(f"[tensor] numbers are given that {dtype} cannot hold")


def _exactly(array, dtype, wanted=None):
    """Python's numbers as the given dtype; what does not fit is an error, never another number."""
    wanted = numpy_dtype(dtype) if wanted is None else wanted
    whole_numbers = dtype[0] in "iu" or dtype == "bool"
    if array.size and array.dtype.kind == "c" and dtype != "c64":
        raise _core.InvalidArgument(f"[tensor] complex numbers are given where {dtype} is needed")
    if array.size and array.dtype.kind == "f" and whole_numbers and not (array == np.floor(array)).all():
        raise _core.InvalidArgument(f"[tensor] fractions are given where {dtype} is needed")
    if array.size and array.dtype.kind in "iuf" and whole_numbers:
        low, high = _limits(dtype)
        if not np.isfinite(array).all() or int(array.min()) < low or int(array.max()) > high:
            _too_large(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        result = array.astype(wanted)
    if result.size and not whole_numbers and array.dtype.kind in "iufc" and (
            np.isfinite(array) & ~np.isfinite(result)).any():
        _too_large(dtype)
    return result


def _limits(dtype):
    if dtype == "bool":
        return 0, 1
    if dtype in _NARROW_LIMITS:
        return _NARROW_LIMITS[dtype]
    info = np.iinfo(NUMPY_DTYPES[dtype])
    return info.min, info.max


def _to_container(value, device, dtype, container):
    if value is None:
        if container not in (OPTIONAL, OPTIONAL_SEQUENCE):
            raise _core.InvalidArgument("[tensor] None is given where a sequence is needed")
        return _core.make_nothing(container, dtype, device)
    if container == MAPS:
        return _to_maps(value, device, dtype)
    if container == OPTIONAL:
        items = [value]
    elif isinstance(value, (list, tuple)):
        items = list(value)
    else:
        raise _core.InvalidArgument(f"[tensor] a list of tensors is needed, not {type(value).__name__}")
    return _core.make_list([to_tensor(item, device, dtype) for item in items], container, dtype, device)


def _to_maps(value, device, dtype):
    """A dict, or a list of dicts that have the same keys."""
    maps = [value] if isinstance(value, dict) else value
    if not isinstance(maps, (list, tuple)) or not maps or not all(isinstance(m, dict) for m in maps):
        raise _core.InvalidArgument(f"[tensor] a dict is needed, not {type(value).__name__}")
    keys = list(maps[0])
    if any(m.keys() != maps[0].keys() for m in maps):
        raise _core.InvalidArgument("[tensor] the dicts must have the same keys")
    if not all(isinstance(key, str) for key in keys) and not all(isinstance(key, (int, np.integer)) for key in keys):
        raise _core.InvalidArgument("[tensor] the keys of a dict must be strings, or integers")
    strings = not keys or isinstance(keys[0], str)
    table = np.empty((len(maps), len(keys)), object)
    for row, m in zip(table, maps):
        row[:] = [m[key] for key in keys]
    items = [to_tensor(np.array(keys, object if strings else np.int64), device), to_tensor(table, device, dtype)]
    return _core.make_list(items, MAPS, dtype, device)


def to_numpy(tensor):
    """A numpy array that shares the tensor's memory; a list for a sequence, None for an optional that holds nothing, a
    list of dicts for maps. Numpy has bf16 and the narrow dtypes from ml_dtypes; without it, they are an exception."""
    return _shared(tensor, tensor.dtype) if tensor._container == TENSOR else _items(tensor, to_numpy)


def to_array(tensor):
    """What `to_numpy` gives, but the tensor itself where numpy lacks the dtype."""
    if tensor._container != TENSOR:
        return _items(tensor, to_array)
    name = tensor.dtype
    return _shared(tensor, name) if name in NUMPY_DTYPES else tensor


def to_readable(tensor):
    """The numbers as a numpy array, in f32 where numpy lacks the dtype: for people, and for Python's numbers."""
    if tensor._container != TENSOR:
        return _items(tensor, to_readable)
    return to_numpy(tensor if tensor.dtype in NUMPY_DTYPES else cast(tensor, "f32"))


def _shared(tensor, name):
    if name == "string":
        array = np.empty(len(texts := tensor._strings()), object)
        array[:] = [item.decode("utf-8", "surrogateescape") for item in texts]
        return array.reshape(tensor.shape)
    return plain_array(tensor).view(numpy_dtype(name)) if name in _CARRIERS else np.asarray(memoryview(tensor))


def plain_array(tensor):
    """The memory as an array; of types that numpy may lack, as the integers of their size."""
    return np.asarray(memoryview(tensor._carrier() if tensor.dtype in _CARRIERS else tensor))


def _items(tensor, give):
    items = tensor._items()
    if items is None:
        return None
    container, items = tensor._container, [give(item) for item in items]
    if container == OPTIONAL:
        return items[0]
    if container == MAPS:
        keys = items[0].tolist()
        return [dict(zip(keys, row)) for row in items[1].reshape(-1, len(keys)).tolist()]
    return items
