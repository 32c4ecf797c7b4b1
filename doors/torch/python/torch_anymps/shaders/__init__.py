# SPDX-License-Identifier: Apache-2.0
"""torch.mps.compile_shader: Metal shaders, compiled for the CPU and run on its threads."""

from .library import MetalKernel, ShaderLibrary

__all__ = ["MetalKernel", "ShaderLibrary", "compile_shader"]


def compile_shader(source, *, device_type=None, before_launch=None):
    """Compiles a shader's source; its kernels are attributes of the result.

    `device_type` refuses tensors of other devices, as upstream does ('mps'). `before_launch` is called with a kernel's
    tensors before they are read, for a device whose work is queued.
    """
    return ShaderLibrary(source, device_type, before_launch)
