# SPDX-License-Identifier: Apache-2.0
"""The process in which one op is measured: a target as JSON on stdin, rows as JSON on stdout.

    python -m mps_fallback_bench.worker fallback|native SECONDS TIMER

`fallback` measures the op as if it had no MPS kernel (with AnyMPS its kernels are switched off, on a Mac it is as it is),
`native` with the kernel that there is, if there is one.
"""

import json
import os
import sys

import torch

from . import samples, timing
from .environment import has_door
from .observer import observe


def load_device(mode, calls):
    """The door was not loaded with torch: what is to be switched off is known only now."""
    if has_door():
        if mode == "fallback":
            off = set(filter(None, os.environ.get("ANYMPS_DISABLE_OPS", "").split(",")))
            os.environ["ANYMPS_DISABLE_OPS"] = ",".join(sorted(off.union(*map(samples.parts, calls))))
        import torch_anymps

        torch_anymps.autoload()
    if not torch.backends.mps.is_available():
        raise RuntimeError("there is no device mps: this is neither a Mac with MPS nor a machine with torch_anymps (doors/torch)")


def one_line(error):
    text = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {text[0]}"[:300]


def measure(call, mode, seconds, timer):
    on_mps = call.to("mps")
    with torch.no_grad():
        call()
        seen = observe(on_mps)
    times = timing.measure({"cpu": timing.BLOCKS[timer](call, "cpu"), "mps": timing.BLOCKS[timer](on_mps, "mps")}, seconds)
    if mode == "native":
        return {"native_median_us": times["mps"].median_us, "native_iqr_us": times["mps"].iqr_us}
    row = {"fell_back": bool(seen.ops), "fallback_ops": sorted(seen.ops), "bytes_copied": seen.bytes_copied, "timer": timer}
    for which, found in times.items():
        row |= {f"{which}_median_us": found.median_us, f"{which}_iqr_us": found.iqr_us, "samples": found.blocks}
    return row


def rows(target, mode, seconds, timer):
    cases = []
    for dtype in target["dtypes"]:
        cases += [(dtype, shape, call) for shape, call in samples.calls(target["op"], target["shapes"], dtype)]
    works = [call for _, _, call in cases if not isinstance(call, Exception) and samples.works(call)]
    load_device(mode, works)
    for dtype, shape, call in cases:
        row = {"op": target["op"], "shape": shape, "dtype": dtype, "status": "ok"}
        try:
            if isinstance(call, Exception):
                raise call
            row |= measure(call, mode, seconds, timer)
        except Exception as error:  # whatever an op does, its row says so and the next one comes
            row["status"] = one_line(error)
        yield row


def main():
    mode, seconds, timer = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    target = json.load(sys.stdin)
    try:
        for row in rows(target, mode, seconds, timer):
            print(json.dumps(row), flush=True)
    except Exception as error:
        print(json.dumps({"op": target["op"], "status": one_line(error)}), flush=True)


if __name__ == "__main__":
    main()
