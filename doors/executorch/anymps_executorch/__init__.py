# SPDX-License-Identifier: Apache-2.0
"""Exports torch modules to ExecuTorch programs (.pte) lowered to MPSBackend.

Works over pip's executorch 1.4.1, the last release with the MPS delegate's exporter. What that exporter gets wrong is
put right from here; the wheel itself stays as it is.
"""

import logging

logging.getLogger("torch.utils._pytree").setLevel(logging.ERROR)  # warns of a class in torchao
