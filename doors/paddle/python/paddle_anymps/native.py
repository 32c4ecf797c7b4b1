# SPDX-License-Identifier: Apache-2.0
"""What Paddle has no slot for: functions of the library of kernels, which Paddle has loaded already."""

import ctypes
import functools
import os


@functools.cache
def library():
    path = os.environ.get("ANYMPS_PADDLE_KERNELS") or os.path.join(os.path.dirname(__file__), "libpaddle_anymps_kernels.so")
    loaded = ctypes.CDLL(path)
    loaded.anymps_paddle_elapsed.restype = ctypes.c_double
    loaded.anymps_paddle_elapsed.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    loaded.anymps_paddle_copies.restype = None
    loaded.anymps_paddle_copies.argtypes = [ctypes.POINTER(ctypes.c_uint64)]
    loaded.anymps_paddle_describe.restype = ctypes.c_char_p
    loaded.anymps_paddle_describe.argtypes = [ctypes.c_int]
    loaded.anymps_paddle_memory.restype = None
    loaded.anymps_paddle_memory.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_uint64)]
    loaded.anymps_paddle_empty_cache.restype = None
    loaded.anymps_paddle_empty_cache.argtypes = []
    return loaded


def elapsed_time(start, end):
    """Milliseconds between two recorded events of Paddle; NaN if one was never recorded."""
    return library().anymps_paddle_elapsed(start.raw_event, end.raw_event)


def copies():
    """(count, bytes) of the copies so far: host to device, device to host, between devices."""
    numbers = (ctypes.c_uint64 * 6)()
    library().anymps_paddle_copies(numbers)
    return {
        "host_to_device": (numbers[0], numbers[1]),
        "device_to_host": (numbers[2], numbers[3]),
        "device_to_device": (numbers[4], numbers[5]),
    }


def describe(index):
    return library().anymps_paddle_describe(index).decode()


def memory(index):
    """(total, free, threads) of a device."""
    numbers = (ctypes.c_uint64 * 3)()
    library().anymps_paddle_memory(index, numbers)
    return tuple(numbers)


def empty_cache():
    library().anymps_paddle_empty_cache()
