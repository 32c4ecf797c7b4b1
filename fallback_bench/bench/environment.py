# SPDX-License-Identifier: Apache-2.0
"""What a run was made with. Nothing here imports torch: the process that starts the measurements stays light."""

import importlib.metadata
import importlib.util
import os
import platform
import sys


def has_door():
    """Whether the device mps is that of AnyMPS: a package of its own, which PyTorch loads by itself."""
    return sys.platform != "darwin" and importlib.util.find_spec("torch_anymps") is not None


def torch_version():
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return "none"


def system():
    name = f"macOS {platform.mac_ver()[0]}" if sys.platform == "darwin" else f"{platform.system()} {platform.release()}"
    return f"{name}, {platform.machine()}"


def transfer():
    """How a fallback's tensors get to the CPU and back, in words."""
    if not has_door():
        return "Metal's own copies"
    if os.environ.get("ANYMPS_TRANSFER", "shared") != "copy":
        return "shared memory, nothing is copied"
    return f"copies, {os.environ.get('ANYMPS_TRANSFER_GBPS', '25')} GB/s, {os.environ.get('ANYMPS_TRANSFER_LATENCY_US', '10')} µs each"


def describe():
    return {
        "torch": torch_version(),
        "os": system(),
        "device": "AnyMPS, on the CPU" if has_door() else "MPS",
        "transfer": transfer(),
    }
