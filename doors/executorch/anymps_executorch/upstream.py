# SPDX-License-Identifier: Apache-2.0
"""The wheel's MPS exporter, imported without its deprecation warnings and without its log of every node."""

import logging
import warnings

logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
warnings.filterwarnings("ignore", message=r"(?s).*MPS.*deprecated.*")
warnings.filterwarnings("ignore", message=r"(?s).*(read_binary|LeafSpec|treespec|isinstance\(treespec).*deprecated.*")

import executorch.kernels.quantized  # noqa: E402, F401  (registers what programs of quantized modules call)
from executorch.backends.apple.mps import MPSBackend  # noqa: E402
from executorch.backends.apple.mps.operators import node_visitor  # noqa: E402
from executorch.backends.apple.mps.partition import MPSPartitioner  # noqa: E402
from executorch.backends.apple.mps.serialization import mps_graph_schema as schema  # noqa: E402
from executorch.backends.apple.mps.utils import mps_utils  # noqa: E402
from executorch.exir.dialects._ops import ops as exir_ops  # noqa: E402

edge = exir_ops.edge.aten

__all__ = ["MPSBackend", "MPSPartitioner", "edge", "exir_ops", "mps_utils", "node_visitor", "schema"]
