# SPDX-License-Identifier: Apache-2.0
"""The backend `anymps` of torch.compile: whole graphs, forward and backward, as executables of the engine."""

import torch
from torch._dynamo.backends.common import aot_autograd

from .compiler import compile_graph


def _compiler(module, example_inputs):
    return compile_graph(module)


def _inference_compiler(module, example_inputs):
    """Without a backward pass: parameters and buffers that the graph does not change may be constants."""
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context else None
    if metadata is None:
        return compile_graph(module)
    inputs = metadata.input_info
    return compile_graph(module, [i for i in metadata.static_input_indices if i < len(inputs) and not inputs[i].mutates_data])


anymps = aot_autograd(fw_compiler=_compiler, bw_compiler=_compiler, inference_compiler=_inference_compiler)
