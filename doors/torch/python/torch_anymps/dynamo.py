# SPDX-License-Identifier: Apache-2.0
"""The backend `anymps` of torch.compile: whole graphs, forward and backward, as executables of the engine."""

from torch._dynamo.backends.common import aot_autograd

from .compiler import compile_graph


def _compiler(module, example_inputs):
    return compile_graph(module)


anymps = aot_autograd(fw_compiler=_compiler, bw_compiler=_compiler)

