# SPDX-License-Identifier: Apache-2.0
"""Indices of a graph's values, as numpy means them: numbers, slices, `...`, None, and one array of indices or one mask.
What cannot be said in a graph is an exception, never another selection."""
import operator

import numpy as np

from . import _convert, _core, ops

_INT64 = np.iinfo(np.int64)


def index(value, key):
    """The part of a value that `value[key]` means."""
    keys = list(key) if isinstance(key, tuple) else [key]
    if value.ndim is None:
        raise _core.InvalidArgument(f"[index] the rank of '{value.name}' is not known")
    keys = [_known_key(value, k) for k in keys]
    if sum(k is Ellipsis for k in keys) > 1:
        raise _core.InvalidArgument("[index] only one … may be given")
    if sum(_is_array(k) for k in keys) > 1:
        raise _core.Unsupported("[index] one array of indices at a time: use anymps.ops.gather_nd")
    # Numbers count as arrays beside an array: where they do not stand side by side, its axis comes first.
    advanced = [i for i, k in enumerate(keys) if _is_array(k) or _is_number(k)]
    apart = any(map(_is_array, keys)) and advanced[-1] - advanced[0] >= len(advanced)
    used = sum(_axes_of(k) for k in keys)
    if used > value.ndim:
        raise _core.InvalidArgument(f"[index] {used} indices for the {value.ndim} axes of '{value.name}'")
    at = next((i for i, k in enumerate(keys) if k is Ellipsis), None)
    if at is not None:
        keys[at:at + 1] = [slice(None)] * (value.ndim - used)
    value, keys = _flatten_mask(value, keys)
    starts, ends, axes, steps, drop, insert, array = [], [], [], [], [], [], None
    axis = place = 0
    for k in keys:
        if k is None:
            insert.append(place)
            place += 1
            continue
        if _is_number(k):
            extent = value.shape[axis]
            if not (-extent <= k < extent if isinstance(extent, int) else _INT64.min < k < _INT64.max):
                raise _core.InvalidArgument(f"[index] {k} is outside axis {axis} of '{value.name}', which has {extent}")
            starts.append(k), ends.append(k + 1 if k != -1 else _INT64.max)
            axes.append(axis), steps.append(1), drop.append(axis)
            place -= 1
        elif isinstance(k, slice):
            if (k.start, k.stop, k.step) != (None, None, None):
                step = 1 if k.step is None else _bounded(k.step)
                starts.append(_bounded(k.start, _INT64.max if step < 0 else 0))
                ends.append(_bounded(k.stop, _INT64.min if step < 0 else _INT64.max))
                axes.append(axis), steps.append(step)
        else:
            array = axis, k
        axis += 1
        place += 1
    result = value
    if axes:
        result = ops.slice(result, [int(s) for s in starts], [int(e) for e in ends], axes, steps)
    if array:
        result = _choose(result, *array, alone=not drop and not insert)
    if drop:
        result = ops.squeeze(result, axes=drop)
    if apart:
        if insert:
            raise _core.Unsupported("[index] None beside an array and numbers that stand apart: index in two steps")
        first = array[0] - sum(axis < array[0] for axis in drop)
        result = ops.transpose(result, perm=[first, *(i for i in range(result.ndim) if i != first)])
    if insert:
        result = ops.unsqueeze(result, axes=insert)
    return result


def _is_number(key):
    return isinstance(key, int)


def _is_array(key):
    return key is not None and key is not Ellipsis and not isinstance(key, (int, slice))


def _is_mask(key):
    return _is_array(key) and key.dtype in ("bool", np.bool_)


def _axes_of(key):
    if key is None or key is Ellipsis:
        return 0
    return key.ndim if _is_mask(key) else 1


def _known_key(value, key):
    """A key as an int, a slice, None, `...`, an array of int64 or bool, or a value of these."""
    if key is None or key is Ellipsis or isinstance(key, slice):
        return key
    if isinstance(key, (bool, np.bool_)):
        raise TypeError("[index] True and False are no indices: a mask is an array of bools")
    if isinstance(key, (int, np.integer)):
        return int(key)
    if hasattr(key, "_anymps_value"):
        if key.dtype != "bool" and key.dtype not in ("i8", "i16", "i32", "i64", "u8", "u16", "u32"):
            raise _core.InvalidArgument(f"[index] indices must be integers or bools, '{key.name}' is {key.dtype}")
        if key.ndim is None or key.dtype == "bool" and key.ndim == 0:
            raise _core.InvalidArgument(f"[index] the value '{key.name}' of {key.dtype} must have axes that are known")
        return key
    array = np.asarray(_convert.to_numpy(key) if isinstance(key, _core.Tensor) else key)
    if array.size == 0 and isinstance(key, (list, tuple)):
        array = array.astype(np.int64)  # numpy makes floats of an empty list
    if array.dtype.kind not in "biu":
        raise _core.InvalidArgument(f"[index] indices must be integers or bools, {array.dtype} given")
    if array.ndim == 0:
        return _known_key(value, array[()])
    if array.dtype.kind == "u" and array.size and int(array.max()) > _INT64.max:
        raise _core.InvalidArgument(f"[index] {int(array.max())} is outside every axis")
    return array if array.dtype.kind == "b" else array.astype(np.int64)


def _flatten_mask(value, keys):
    """A mask over several axes makes one of them; what it masks must have its extents."""
    axis = 0
    for i, key in enumerate(keys):
        if not _is_mask(key):
            axis += key is not None
            continue
        last = axis + key.ndim
        have, wanted = tuple(key.shape), tuple(value.shape[axis:last])
        if have != wanted or None in have:
            raise _core.InvalidArgument(f"[index] the mask's shape {have} must be that of the axes {axis} to {last - 1} of "
                                        f"'{value.name}', {wanted}: give dynamic extents that are equal the same name")
        if key.ndim == 1:
            return value, keys
        around = [*value.shape[:axis], -1, *value.shape[last:]]
        if not all(isinstance(extent, int) for extent in around):
            raise _core.Unsupported("[index] a mask over several axes beside dynamic ones: reshape the value first")
        value = ops.reshape(value, around)
        keys[i] = ops.reshape(key, [-1]) if hasattr(key, "_anymps_value") else key.reshape(-1)
        return value, keys
    return value, keys


def _choose(value, axis, key, alone):
    """What an array of indices or a mask of one axis takes from an axis."""
    if hasattr(key, "_anymps_value") and key.dtype == "bool":
        return ops.compress(value, key, axes=[axis])
    if _is_mask(key):
        key = np.flatnonzero(key)
    if key.ndim != 1 and not alone:
        raise _core.Unsupported("[index] an array of indices beside numbers or None must have one axis")
    extent = value.shape[axis]
    if not hasattr(key, "_anymps_value"):
        if isinstance(extent, int) and key.size and not (-extent <= key.min() and key.max() < extent):
            wrong = key.min() if key.min() < -extent else key.max()
            raise _core.InvalidArgument(f"[index] {wrong} is outside axis {axis} of '{value.name}', which has {extent}")
        key = value._graph.constant(key)
    elif key.dtype not in ("i32", "i64"):
        key = ops.cast(key, dtype="i64")
    return ops.gather(value, key, axis=axis)


def _bounded(number, otherwise=0):
    """A bound of a slice within 64 bits: what lies beyond is cut off there, as by every axis."""
    return int(otherwise) if number is None else min(max(operator.index(number), int(_INT64.min)), int(_INT64.max))
