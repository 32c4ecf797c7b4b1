# SPDX-License-Identifier: Apache-2.0
"""Broadcasts of tensors on the device, and with them paddle.DataParallel, which begins with one. Gloo takes tensors of the
host and of the device for all other collectives; for this one Paddle refuses the device, so that it goes by the host."""

import sys

from .places import is_mps


def allow_broadcasts():
    module = sys.modules["paddle.distributed.communication.stream.broadcast"]  # the package has a function of that name
    broadcast = module._broadcast_in_dygraph

    def by_the_host(tensor, src_rank_in_group, group, sync_op, use_calc_stream):
        if not is_mps(tensor.place) or group.process_group.name() != "GLOO":
            return broadcast(tensor, src_rank_in_group, group, sync_op, use_calc_stream)
        copy = tensor.cpu()
        task = broadcast(copy, src_rank_in_group, group, True, False)
        tensor.copy_(copy, True)
        return task

    module._broadcast_in_dygraph = by_the_host
