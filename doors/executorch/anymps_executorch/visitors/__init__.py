# SPDX-License-Identifier: Apache-2.0
"""Visitors of ops that the wheel writes wrongly or not at all.

A visitor turns one node of the edge graph into nodes of the MPS schema. `apply` registers these over the wheel's own;
what none of them can express is refused before (support.py), with the reason in the report.
"""

import functools

from ..upstream import node_visitor
from . import arithmetic, constants, reductions, shapes

REGISTRY = node_visitor._node_visitor_dict


@functools.cache
def apply():
    for family in (arithmetic, constants, reductions, shapes):
        for visitor, targets in family.VISITORS:
            for target in targets:
                REGISTRY[target if isinstance(target, str) else target.__name__] = visitor
