# SPDX-License-Identifier: Apache-2.0
"""ETRecords: what the Inspector needs to link a profile (ETDump) of a program with the module that it was made of."""

import copy

from .files import new_file


class Recorder:
    """Keeps the edge program as it is before it is lowered (`on_edge` of lowering.lower), and writes the record."""

    def __init__(self):
        self.edge = None

    def __call__(self, edge):
        self.edge = copy.deepcopy(edge)

    def write(self, path, lowered):
        from executorch.devtools import generate_etrecord

        with new_file(path) as name:
            generate_etrecord(name, self.edge, lowered.program)
