# SPDX-License-Identifier: Apache-2.0
"""Decides whether this package may make the device mps of this PyTorch, and does so.

`import torch` calls `autoload`: nothing here may fail, or PyTorch does not start.
"""

import os
import sys


STRICT = ("", "0", "1", "2.13", "2.15")


def reason_not_to(torch):
    """None, or why the device is not made here."""
    from .version import TORCH

    if os.environ.get("ANYMPS_TORCH", "1") == "0":
        return ""
    if torch._C._has_mps and torch._C._mps_is_available():
        return ""  # a Mac with a device of its own
    if (asked := os.environ.get("ANYMPS_STRICT_MPS", "")) not in STRICT:
        return f"ANYMPS_STRICT_MPS={asked}: it is 1, or a version of PyTorch whose kernels are known ({', '.join(STRICT[3:])})"
    version = torch.__version__.split("+")[0]
    if version != TORCH:
        return f"it is built for PyTorch {TORCH}, and this is {version}: the device mps is not there"
    return None


def autoload():
    try:
        import torch
    except ImportError as error:
        print(f"torch_anymps: there is no PyTorch here, and no device mps: {error}", file=sys.stderr)
        return
    reason = reason_not_to(torch)
    if reason is not None:
        if reason:
            print(f"torch_anymps: {reason}", file=sys.stderr)
        return
    try:
        from . import native

        native.load()
        status = native.set_cuda_aside()
        if status == 1:
            print("torch_anymps: PyTorch has a CUDA device, and takes one accelerator: the device mps is not there", file=sys.stderr)
            return
        if status == 2:
            print("torch_anymps: this PyTorch is laid out in a way that is not known: the device mps is not there", file=sys.stderr)
            return
        from . import interface

        interface.install(torch)
    except Exception as error:  # whatever it is, PyTorch must start
        print(f"torch_anymps: the device mps is not there: {str(error).splitlines()[0]}", file=sys.stderr)
