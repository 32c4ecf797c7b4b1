# SPDX-License-Identifier: Apache-2.0
"""The table of cases that every server must answer alike."""
from . import connections, errors, health, repository, scheduling, settings, shared_memory, tensors

CASES = [*health.CASES, *tensors.CASES, *errors.CASES, *connections.CASES, *scheduling.CASES, *shared_memory.CASES, *settings.CASES, *repository.CASES]
assert len({c.name for c in CASES}) == len(CASES), "two cases have the same name"
