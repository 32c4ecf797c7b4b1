# SPDX-License-Identifier: Apache-2.0
"""Makes bundles of the sets in this package, and refuses one that is not what it says."""

import contextlib
from dataclasses import dataclass

import torch

from .. import models
from ..checking import differences, tolerance
from ..lowering import Method, lower
from ..visitors.arithmetic import Binary

# The example models that can be made without a network, the quick ones first.
EXAMPLES = """mul linear add add_mul softmax conv1d sdpa lstm resnet8 ds_cnn deep_autoencoder mobilenet_v1_025 mv2
mv3 resnet18 resnet50 edsr w2l ic3 ic4 dl3 vit deit_tiny mobilebert emformer_join
emformer_transcribe efficient_sam""".split()
# Those that are exported as halves, too.
HALVES = """mul linear add add_mul softmax conv1d lstm resnet8 ds_cnn deep_autoencoder mobilenet_v1_025 mv2 mv3 resnet18
deit_tiny""".split()


@dataclass
class Made:
    data: bytes
    delegates: list
    outside: dict
    difference: float
    fp16: bool

    def row(self):
        """What the table says of it."""
        return {
            "delegates": [sum(kinds.values()) for kinds in self.delegates],
            "outside": {target: count for target, (count, _) in sorted(self.outside.items())},
            "fp16": self.fp16,
        }


def finish(lowered, cases, fp16, compare=True):
    """Bundles what was lowered, once the written nodes give what torch gives."""
    cases = cases or {name: [m.inputs] for name, m in lowered.methods.items()}
    worst = 0.0
    if compare:
        for name, inputs in ((n, i) for n, all_inputs in cases.items() for i in all_inputs):
            worst = max([worst, *differences(lowered, name, inputs)])
    if not worst <= tolerance(lowered, fp16):
        raise RuntimeError(f"the written nodes differ from torch by {worst:.2g}")
    reports = lowered.reports.values()
    delegates = [kinds for r in reports for kinds in r.delegates]
    outside = {target: entry for r in reports for target, entry in r.outside.items()}
    return Made(lowered.bundle(cases), delegates, outside, worst, fp16)


@contextlib.contextmanager
def chosen_kinds(kinds):
    """Lets the exporter write other kinds than it would for some targets."""
    old = dict(Binary.kinds)
    Binary.kinds.update(kinds)
    try:
        yield
    finally:
        Binary.kinds.clear()
        Binary.kinds.update(old)


def make_kind(kind, case, fp16):
    from .kinds import Of

    with chosen_kinds(case.kinds):
        lowered = lower(Method(Of(case.function, case.constants), case.inputs), fp16=fp16, preserve_ops=case.preserve)
    report = lowered.reports["forward"]
    if not report.kinds()[kind] or report.outside:
        raise RuntimeError(f"no {kind} was written, or not everything is in the delegate:\n{report}")
    return finish(lowered, {"forward": [case.inputs, *case.more_inputs]}, fp16)


def kinds_jobs():
    from .kinds import KINDS

    for kind, case in KINDS.items():
        for fp16 in (False, True) if case.fp16 else (False,):
            yield f"{kind}_{suffix(fp16)}.pte", lambda k=kind, c=case, h=fp16: make_kind(k, c, h)


def small_jobs():
    from .small import FLOAT32_ONLY, SMALL

    for name, build in SMALL.items():
        for fp16 in (False,) if name in FLOAT32_ONLY else (False, True):
            yield f"{name}_{suffix(fp16)}.pte", lambda b=build, h=fp16: finish(lower(b(), fp16=h), {}, h)


def programs_jobs():
    from .programs import PROGRAMS

    for name, build in PROGRAMS.items():
        yield f"{name}.pte", lambda b=build: finish(*b(), False)


def models_jobs():
    for names, fp16 in ((EXAMPLES, False), (HALVES, True)):
        for name in names:
            yield f"{name}_{suffix(fp16)}.pte", lambda n=name, h=fp16: make_model(n, h)


def make_model(name, fp16):
    example = models.example(name)
    for note in example.notes:
        print(f"{name}: {note}")
    cases = {"forward": [example.inputs]}
    if all(isinstance(v, torch.Tensor) and v.unique().numel() == 1 for v in example.inputs):
        torch.manual_seed(1)  # a second case where the example's inputs are all ones
        cases["forward"].append(tuple(torch.randn_like(v) for v in example.inputs))
    return finish(lower(Method(example.module, example.inputs), fp16=fp16), cases, fp16)


def suffix(fp16):
    return "f16" if fp16 else "f32"
