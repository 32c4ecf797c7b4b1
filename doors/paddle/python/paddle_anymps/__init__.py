# SPDX-License-Identifier: Apache-2.0
"""PaddlePaddle's device `mps` on any machine, computed by AnyMPS. There is nothing to import: `import paddle` is enough
once this package is installed. Everything is in `paddle.mps`."""
