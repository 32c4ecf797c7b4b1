# SPDX-License-Identifier: Apache-2.0
"""Makes bundles of the cases in this package, and refuses one that is not what it says."""
import contextlib

from .. import visitors
from ..checking import differences
from ..lowering import Method, lower
from .kinds import Of


@contextlib.contextmanager
def chosen_kinds(kinds):
    """Lets the exporter write other kinds than it would for some targets."""
    old = dict(visitors.Binary.kinds)
    visitors.Binary.kinds.update(kinds)
    try:
        yield
    finally:
        visitors.Binary.kinds.clear()
        visitors.Binary.kinds.update(old)


def kind_bundle(kind, case, fp16):
    """(bytes, nodes of each kind) of a bundle whose only delegate has nodes of the kind."""
    method = Method(Of(case.function, case.constants), case.inputs)
    with chosen_kinds(case.kinds):
        lowered = lower(method, fp16=fp16, preserve_ops=case.preserve)
    report = lowered.reports["forward"]
    if not report.kinds()[kind]:
        raise RuntimeError(f"no {kind} was written:\n{report}")
    for inputs in (case.inputs, *case.more_inputs):
        worst = max(differences(lowered, inputs=inputs))
        if worst > (2e-2 if fp16 else 1e-5):
            raise RuntimeError(f"the written nodes differ from torch by {worst:.2g}")
    return lowered.bundle({"forward": [case.inputs, *case.more_inputs]}), report.kinds()
