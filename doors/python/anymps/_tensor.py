# SPDX-License-Identifier: Apache-2.0
"""Tensors for Python: numpy and DLPack without copies, reprs, and streams."""
from . import _convert, _core
from ._executable import device as find_device


def tensor(data, dtype=None, device="", copy=False):
    """A tensor of anything that holds numbers or strings. Memory is shared unless `copy` says otherwise; a dtype other
    than the data's own makes a copy, too."""
    where = find_device(device)
    made = _convert.to_tensor(data, where, None if dtype is None else _convert.dtype_name(dtype))
    if dtype is not None and made.dtype != (wanted := _convert.dtype_name(dtype)):
        made, copy = _convert.cast(made, wanted), False
    if copy and made.dtype != "string":
        made = _copied(made)
    return made


def _copied(tensor):
    return _core.from_buffer(_convert.plain_array(tensor).copy(), tensor.dtype, tensor.device)


def empty(shape, dtype="f32", device=""):
    """A tensor whose elements are not set yet."""
    return _core.empty([_convert.extent(extent, "empty") for extent in shape], _convert.dtype_name(dtype), find_device(device))


def from_dlpack(source, device=""):
    """A tensor that shares the memory of anything with `__dlpack__` (torch, paddle, jax, numpy) or of a capsule.

    What is wrong with a capsule is an exception: one that was taken already, a device other than the CPU, an element
    type that the engine lacks.
    """
    return _convert.from_dlpack(source, find_device(device))


def asarray(value):
    """A numpy array that shares the tensor's memory."""
    return _convert.to_numpy(value) if isinstance(value, _core.Tensor) else _convert.np.asarray(value)


def _dlpack(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    """A DLPack capsule that shares the tensor's memory and keeps it alive."""
    if stream is not None:
        raise BufferError("[dlpack] the memory is the host's: stream must be None")
    if dl_device is not None and tuple(dl_device) != (1, 0):
        raise BufferError(f"[dlpack] the memory is the host's, not that of device {tuple(dl_device)}")
    source = _copied(self) if copy else self
    return source._dlpack(max_version is not None and max_version[0] >= 1)


def _array(self, dtype=None, copy=None):
    array = _convert.to_numpy(self)
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(f"[tensor] {array.dtype} cannot be seen as {dtype} without a copy")
        return array.astype(dtype)
    return array.copy() if copy else array


def _repr(self):
    if self._container != _convert.TENSOR:
        return f"<anymps.Tensor: {['', 'sequence', 'optional', 'optional sequence', 'maps'][self._container]} of {self.dtype}>"
    return f"<anymps.Tensor {self.dtype}[{','.join(map(str, self.shape))}] on {self.device.name}\n{_convert.to_readable(self)}>"


def _numpy(self):
    """A numpy array that shares the memory; sequences give a list, an empty optional None, maps a list of dicts. A dtype
    that numpy lacks (bf16 without ml_dtypes) is an exception."""
    return _convert.to_numpy(self)


def _plain(method):
    def wrapped(self, *args):
        return getattr(_convert.to_readable(self), method)(*args)
    wrapped.__name__ = method
    return wrapped


_core.Tensor.__dlpack__ = _dlpack
_core.Tensor.__dlpack_device__ = lambda self: (1, 0)
_core.Tensor.__array__ = _array
_core.Tensor.__repr__ = _repr
_core.Tensor.numpy = _numpy
_core.Tensor.ndim = property(lambda self: len(self.shape), doc="The number of axes.")
for _name in ("tolist", "item", "__len__", "__float__", "__int__", "__bool__"):
    setattr(_core.Tensor, _name, _plain(_name))
_core.Device.__repr__ = lambda self: f"<anymps.Device {self.name}: {self.description}>"


class Stream:
    """A queue of work. Runs submitted to it start in order; leaving the `with` block waits for them.

        with anymps.stream() as s:
            start = s.record()
            (y,) = model.submit(x, stream=s)
            end = s.record()
        print(start.milliseconds_until(end), y.numpy())
    """

    def __init__(self, device=""):
        self.device = find_device(device)
        self._core = self.device.create_stream()

    def synchronize(self):
        """Waits for the work; an error of a run is raised here."""
        self._core.synchronize()

    def wait(self, event):
        """What is submitted from now on waits for the event."""
        self._core.wait(event)

    def record(self):
        """An event after the work submitted so far."""
        return self._core.record()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.synchronize()


def stream(device=""):
    """A new stream of the device; see Stream."""
    return Stream(device)
