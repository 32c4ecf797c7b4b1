# SPDX-License-Identifier: Apache-2.0
"""Rewrites of the edge graph before it is partitioned, so that less is left outside and nothing is guarded in vain."""

import math

import torch

from . import visitors
from .support import is_symbolic, reason
from .upstream import edge

# What a score passes through between the product that makes it and the softmax that takes it.
SAME_FINITENESS = (edge.view_copy.default, edge.clone.default, edge.expand_copy.default, edge.mul.Scalar)
PRODUCTS = (edge.mm.default, edge.bmm.default, edge.addmm.default)


def apply(program):
    visitors.apply()
    for rewrite in (edge_ops, drop_softmax_guards, open_extents):
        rewrite(program)
    program.graph.eliminate_dead_code()
    program.graph_module.recompile()


def edge_ops(program):
    """Calls of ATen itself become calls of the edge dialect: the wheel leaves scalar_tensor as it was traced, and finds
    no visitor for it."""
    for node in program.graph.nodes:
        target = node.target
        if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
            continue
        if any(isinstance(r.type, torch.TensorType) for r in target._schema.returns):  # and no sym_size
            _, name = target._schema.name.split("::")
            node.target = getattr(getattr(edge, name), target._overloadname or "default")


def open_extents(program):
    """Extents that are symbols become -1 in views and expansions, so that no delegate has a number as its input."""
    for node in program.graph.nodes:
        if node.target in (edge.view_copy.default, edge.expand_copy.default) and not reason(node):
            shape = [-1 if is_symbolic(s) else s for s in node.args[1]]
            node.args = (node.args[0], shape, *node.args[2:])


def drop_softmax_guards(program):
    """where(all scores are -inf, 0, softmax(scores)) -> softmax(scores) where no mask has touched the scores.

    Torch writes attention with a guard for rows that are masked out altogether. Without a mask there are none, and the
    guard costs a delegate its unity: it reduces with `any`."""
    for node in list(program.graph.nodes):
        if node.target == edge.where.self and is_idle_guard(node):
            node.replace_all_uses_with(node.args[2])


def is_idle_guard(node):
    condition, zeros, softmax = node.args
    if softmax.target != edge._softmax.default or zeros.target != edge.full_like.default or zeros.args[1] != 0:
        return False
    chain = (edge.logical_not.default, edge.any.dim, edge.logical_not.default, edge.eq.Scalar)
    for target in chain:
        if condition.target != target:
            return False
        last, condition = condition, condition.args[0]
    scores = condition
    if scores is not softmax.args[0] or not math.isinf(last.args[1]):
        return False
    while scores.target in SAME_FINITENESS:
        scores = scores.args[0]
    return scores.target in PRODUCTS
