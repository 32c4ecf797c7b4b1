# SPDX-License-Identifier: Apache-2.0
"""The bytes of a bundled program. The wheel's own class takes tensors alone; a program may also give numbers and None."""

import torch
from executorch.devtools.bundled_program import schema
from executorch.devtools.bundled_program.serialize import serialize_from_bundled_program_to_flatbuffer
from executorch.devtools.bundled_program.version import BUNDLED_PROGRAM_SCHEMA_VERSION
from executorch.exir.tensor import scalar_type_enum

from .serialization import tensor_bytes

NUMBERS = {bool: schema.Bool, int: schema.Int, float: schema.Double}


def value(found):
    """A value of a test case as the schema has it; the elements of a tensor row by row, and not its storage, which may
    hold more."""
    if isinstance(found, torch.Tensor):
        return schema.Value(
            schema.Tensor(
                scalar_type=scalar_type_enum(found.dtype),
                sizes=list(found.shape),
                data=tensor_bytes(found),
                dim_order=list(range(found.dim())),
            )
        )
    if found is not None and type(found) not in NUMBERS:
        raise TypeError(f"a test case holds tensors, numbers and None, not a {type(found).__name__}")
    return schema.Value(None if found is None else NUMBERS[type(found)](found))


class Bundle:
    """A program's bytes and test cases {method: [(inputs, expected outputs), ...]}, all flat lists of values."""

    def __init__(self, program, cases):
        self.program, self.cases = program, cases

    def serialize_to_schema(self):
        suites = [
            schema.BundledMethodTestSuite(
                method_name=name,
                test_cases=[
                    schema.BundledMethodTestCase(
                        inputs=[value(v) for v in inputs], expected_outputs=[value(v) for v in expected]
                    )
                    for inputs, expected in cases
                ],
            )
            for name, cases in sorted(self.cases.items())
        ]
        return schema.BundledProgram(BUNDLED_PROGRAM_SCHEMA_VERSION, suites, self.program)

    def serialized(self):
        return bytes(serialize_from_bundled_program_to_flatbuffer(self))
