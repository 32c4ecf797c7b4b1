# SPDX-License-Identifier: Apache-2.0
"""Between Python's arrays and the engine's tensors: numpy, anything with DLPack, lists, numbers, strings, and the
containers (sequences, optionals, maps). Memory is shared wherever it can be, never copied behind the user's back for
anything but what has no memory of its own (lists, numbers, strings) or cannot be addressed (unaligned arrays)."""
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
# What the buffer of a type that numpy lacks is made of.
_CARRIERS = {name: np.dtype(np.uint16 if name == "bf16" else np.uint8) for name in _ML_DTYPES}


def dtype_name(dtype):
    """The engine's short name ('f32') of a numpy or ml_dtypes dtype, a Python type, or a long or short name."""
    if isinstance(dtype, str):
        name = _LONG_NAMES.get(dtype, dtype)
        _core.dtype_size(name)  # raises for what it does not know
        return name
    text = str(dtype)
    if text.startswith(("torch.", "paddle.")):
        return dtype_name(text.split(".")[1])
    found = np.dtype(dtype)
    if found.kind in "US":
        return "string"
    name = NAMES.get(found.newbyteorder("=") if found.kind in "fiuc" else found)
    if name is None:
        raise _core.InvalidArgument(f"[dtype] the engine has no element type for {found}")
    return name


def numpy_dtype(name):
    """The numpy dtype of a short name; the carrier (bytes, words) where ml_dtypes is not installed."""
    return NUMPY_DTYPES.get(name) or _CARRIERS[name]


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
            value = np.asarray(value.tolist(), numpy_dtype(dtype))
        return from_numpy(np.asarray(value), device)
    if hasattr(value, "__dlpack__"):
        if getattr(value, "requires_grad", False):
            value = value.detach()
        return from_dlpack(value, device)
    if dtype == "string" or isinstance(value, (str, bytes)):
        return from_strings(np.asarray(value, object), device)
    if value is None:
        raise _core.InvalidArgument("[tensor] None is given where a tensor is needed")
    array = np.asarray(value)
    if array.dtype == object:
        return from_strings(array, device)
    if dtype is not None:
        array = _exactly(array, dtype)
    elif array.dtype == np.float64:
        array = array.astype(np.float32)
    return from_numpy(array, device)


def _exactly(array, dtype):
    """Python's numbers as the given dtype; what does not fit is an error, never another number."""
    wanted = numpy_dtype(dtype)
    if array.size and array.dtype.kind == "f" and wanted.kind in "iub" and not (array == np.floor(array)).all():
        raise _core.InvalidArgument(f"[tensor] fractions are given where {dtype} is needed")
    if array.size and array.dtype.kind in "iuf" and wanted.kind in "iu":
        info = np.iinfo(wanted)
        if array.min() < info.min or array.max() > info.max:
            raise _core.InvalidArgument(f"[tensor] numbers are given that {dtype} cannot hold")
    return array.astype(wanted)


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
    list of dicts for maps."""
    container = tensor._container
    if container == TENSOR:
        name = tensor.dtype
        if name == "string":
            array = np.empty(len(texts := tensor._strings()), object)
            array[:] = [text.decode("utf-8", "surrogateescape") for text in texts]
            return array.reshape(tensor.shape)
        array = np.asarray(memoryview(tensor))
        return array.view(numpy_dtype(name)) if name in _CARRIERS else array
    items = tensor._items()
    if items is None:
        return None
    items = [to_numpy(item) for item in items]
    if container == OPTIONAL:
        return items[0]
    if container == MAPS:
        keys = items[0].tolist()
        return [dict(zip(keys, row)) for row in items[1].reshape(-1, len(keys)).tolist()]
    return items
