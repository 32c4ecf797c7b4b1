# SPDX-License-Identifier: Apache-2.0
"""Which arguments operators change, from torch's schemas: the list that the importer's records are tested against.

    python tests/doors/executorch/test_export_schemas.py      writes the list again
"""

import pathlib
import sys

import pytest

pytest.importorskip("executorch.backends.apple.mps", reason="needs .venvs/executorch: scripts/env executorch")

LIST = pathlib.Path(__file__).resolve().parents[2] / "data" / "executorch" / "changed_arguments.txt"
HEADER = """\
# Operators that change arguments other than out-tensors, and the positions of these. Written by
# tests/doors/executorch/test_export_schemas.py from torch's schemas, "Tensor(a!)".
"""
NAMESPACES = ("aten", "dim_order_ops", "llama", "prims", "quantized_decomposed")


def changed_arguments():
    import executorch.exir.passes._quant_patterns_and_replacements  # noqa: F401 - registers quantized embeddings
    import executorch.kernels.quantized  # noqa: F401 - registers out-variants
    import torch
    from executorch.extension.llm.custom_ops import custom_ops  # noqa: F401 - registers llama's

    lines = []
    for schema in torch._C._jit_get_all_schemas():
        changed = [
            i
            for i, argument in enumerate(schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write and not argument.is_out
        ]
        tensors = any(isinstance(schema.arguments[i].type, torch.TensorType) for i in changed)
        if tensors and schema.name.split("::")[0] in NAMESPACES:
            overload = "." + schema.overload_name if schema.overload_name else ""
            lines.append(f"{schema.name}{overload} {' '.join(map(str, changed))}\n")
    return HEADER + "".join(sorted(lines))


def test_the_list_is_what_the_schemas_say():
    assert LIST.read_text() == changed_arguments()


if __name__ == "__main__":
    sys.exit(LIST.write_text(changed_arguments()) == 0)
