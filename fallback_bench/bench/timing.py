# SPDX-License-Identifier: Apache-2.0
"""How long a call takes: blocks of calls, those of all devices in turn, until the medians hold still.

Two timers measure a block. Python's works everywhere; the native one, part of AnyMPS, has no Python between the calls.
"""

import itertools
import resource
import statistics
import time
from dataclasses import dataclass

import torch

BLOCK_SECONDS = 5e-4  # long enough for the clock, and so short that other work on the machine disturbs few of them
FEWEST, MOST = 12, 400  # blocks
TRIES, SHORT = 4, 5e-3  # a block of less than so many seconds is measured again if other work came between
STABLE = 0.02  # how well the median must be known, of itself


@dataclass
class Times:
    median_us: float
    iqr_us: float
    blocks: int


def _wait(device):
    if device == "mps":
        torch.mps.synchronize()


def python_block(call, device):
    """A function that makes n calls and says how many seconds they took, with what they started on the device."""
    op, args, kwargs = call.op, call.args, call.kwargs

    def block(n):
        _wait(device)
        start = time.perf_counter()
        for _ in itertools.repeat(None, n):
            op(*args, **kwargs)
        _wait(device)
        return time.perf_counter() - start

    return block


def native_block(call, device):
    from torch_anymps.native import time_calls

    return lambda n: time_calls(call.op, call.args, call.kwargs, n)


BLOCKS = {"python": python_block, "native": native_block}


def _calls_per_block(block):
    """Warms up, and finds how many calls a block takes."""
    n = 1
    while True:
        taken = min(block(n) for _ in range(2))
        if taken >= BLOCK_SECONDS / 2 or n >= 1 << 16:
            return max(1, round(n * BLOCK_SECONDS / taken)) if taken < BLOCK_SECONDS else n
        n = min(max(2 * n, int(n * BLOCK_SECONDS / max(taken, 1e-7))), 1 << 16)


def _interruptions():
    """How often this thread had to wait for other work on the machine."""
    return resource.getrusage(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)).ru_nivcsw


def _undisturbed(block, n):
    for _ in range(TRIES):
        before = _interruptions()
        taken = block(n)
        if taken > SHORT or _interruptions() == before:
            break
    return taken


def _summary(samples):
    quarters = statistics.quantiles(samples, n=4)
    return Times(quarters[1] * 1e6, (quarters[2] - quarters[0]) * 1e6, len(samples))


def _is_stable(times):
    # The width of a notch in a box plot: how far a median of so many samples may be off.
    return 1.57 * times.iqr_us / times.blocks**0.5 <= STABLE * times.median_us


def measure(blocks, seconds):
    """Times of each block function; about `seconds` altogether at most, and up to four times that for the fewest blocks."""
    with torch.no_grad():
        counts = {name: _calls_per_block(block) for name, block in blocks.items()}
        samples = {name: [] for name in blocks}
        start = time.perf_counter()
        for i in range(1, MOST + 1):
            for name, block in blocks.items():
                samples[name].append(_undisturbed(block, counts[name]) / counts[name])
            taken = time.perf_counter() - start
            if i >= FEWEST and (taken > seconds or all(_is_stable(_summary(s)) for s in samples.values())):
                break
            if i >= 3 and taken > 4 * seconds:
                break
    return {name: _summary(s) for name, s in samples.items()}
