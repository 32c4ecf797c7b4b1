# SPDX-License-Identifier: Apache-2.0
"""Runs one case: all samples of an op in one dtype, forward, with gradients, or called in another way."""
import contextlib
import re
import warnings

import torch
from torch.utils import _pytree as pytree

from . import samples
from .compare import TIES, UNINITIALISED, Differs, as_exact_as_cpu, compare, dim_of, leaves, ties
from .exact import ByDigits, nudged, within_rounding
from .rounded import WIDEST, RoundedSteps
from .tolerances import UNSTABLE, tolerance

WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.float32: torch.float64,
         torch.complex64: torch.complex128}
HALVES = (torch.float16, torch.bfloat16)
REFUSES = re.compile(r"not (currently |yet )?(implemented|supported)|n't (currently )?support|only supports|unsupported|cannot run|could not run", re.I)
MISSING = (re.compile(r"'(aten::[\w.]+)'"), re.compile(r"'([a-z]\w*::[\w.]+)'"), re.compile(r"^\[(\w+)\]"),
           re.compile(r"\"(\w+)\" not implemented for"))


class CpuCannot(Exception):
    """The reference itself has no result for a sample."""


def call(op, sample):
    return op(sample.input, *sample.args, **sample.kwargs)


@contextlib.contextmanager
def seeded(seed):
    """Random numbers from this seed. Some ops of op_db set one themselves: theirs is moved by it."""
    original = torch.manual_seed

    def manual_seed(own):
        torch.mps.manual_seed(own + seed)  # torch.manual_seed leaves this device out in a process that was forked
        return original(own + seed)
    manual_seed(0)
    torch.manual_seed = manual_seed
    try:
        yield
    finally:
        torch.manual_seed = original


def differentiable(tree):
    return [t for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor) and t.requires_grad]


class Case:
    def __init__(self, op, short, dtype, kind):
        self.op, self.short, self.dtype, self.kind = op, short, dtype, kind
        self.notes, self.compared = set(), 0

    # One sample on one device: the results to compare.
    def compute(self, sample, weights):
        if self.kind == "gradient":
            return self.gradients(sample, weights)
        if self.kind in ("out", "inplace"):
            with torch.no_grad():
                return self.into_out(sample) if self.kind == "out" else self.in_place(sample)
        return call(self.op, sample)

    def in_place(self, sample):
        x = sample.input.clone()
        if self.op.inplace_variant(x, *sample.args, **sample.kwargs) is not x:
            raise Differs("in place, but another tensor came back")
        return x

    def gradients(self, sample, weights):
        """The gradients of all inputs for output gradients that `weights` keeps, so that every device gets the same ones."""
        outputs = differentiable(sample.output_process_fn_grad(call(self.op, sample)))
        inputs = differentiable((sample.input, sample.args, sample.kwargs))
        if not outputs or not inputs:
            return None
        while len(weights) < len(outputs):
            like = outputs[len(weights)]
            made = torch.rand(like.shape, dtype=torch.complex128 if like.is_complex() else torch.float64,
                              generator=torch.Generator().manual_seed(len(weights)))
            # Numbers that the narrowest type holds, so that a wider one begins with the same.
            weights.append(made.to(like.dtype).to(self.dtype) if self.dtype in HALVES else made.to(like.dtype))
        seeds = [w.to(o.dtype).to(o.device) for w, o in zip(weights, outputs)]
        return ["unused" if g is None else g
                for g in torch.autograd.grad(outputs, inputs, grad_outputs=seeds, allow_unused=True)]

    def into_out(self, sample):
        """Into tensors of the right shape, then into empty ones that must grow."""
        made = call(self.op, sample)
        tensors = leaves(made)
        results = []
        for sizes in ([t.shape for t in tensors], [(0,)] * len(tensors)):
            out = [torch.full(size, 1, dtype=t.dtype, device=t.device) for size, t in zip(sizes, tensors)]
            given = out[0] if isinstance(made, torch.Tensor) else tuple(out)
            returned = leaves(call_out(self.op, sample, given))
            if [t.data_ptr() for t in returned] != [t.data_ptr() for t in out]:
                raise Differs("out= was not what came back")
            results += out
        return results

    def wanted(self, sample):
        if self.kind == "inplace":
            return isinstance(sample.input, torch.Tensor) and not sample.broadcasts_input
        return True

    def reference(self, sample, weights):
        """The CPU's results; where it has none in the dtype itself, those of the next wider one, rounded."""
        try:
            return self.compute(samples.to_device(self.op, sample, "cpu"), weights)
        except Exception as error:
            if not isinstance(error, NotImplementedError) or self.dtype not in WIDER:
                raise CpuCannot(str(error)) from None
        wide = WIDER[self.dtype]
        made = self.on_cpu(sample, weights, {self.dtype: wide})
        return pytree.tree_map(lambda t: t.to(self.dtype) if isinstance(t, torch.Tensor) and t.dtype == wide else t, made)

    def on_cpu(self, sample, weights, widened):
        try:
            return self.compute(samples.to_device(self.op, sample, "cpu", widened), weights)
        except Exception as error:
            raise CpuCannot(str(error)) from None

    def exact(self, sample, weights):
        """The CPU's results with every float in f64, those that integers become too."""
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            # Not of complex numbers, which it does not compute: under such a mode PyTorch's gradient of lstsq is another.
            with contextlib.nullcontext() if self.dtype.is_complex else ByDigits():
                return self.on_cpu(sample, weights, WIDEST)
        finally:
            torch.set_default_dtype(before)

    def run(self, sample):
        weights = []
        try:
            if self.kind == "noncontiguous":
                sample = noncontiguous(sample)
            with seeded(0):
                theirs = self.reference(sample, weights)
        except CpuCannot as error:
            self.notes.add(f"the CPU refuses: {error}"[:120])
            return
        if theirs is None and self.kind == "gradient":
            return
        with seeded(0):
            moved = samples.to_device(self.op, sample, "mps")
            ours = self.compute(moved, weights)
        if samples.names_device(moved) and any(isinstance(t, torch.Tensor) and t.device.type != "mps" for t in leaves(ours)):
            raise Differs("the result is not on mps")
        if ours is None and self.kind == "gradient":
            raise Differs("no output requires a gradient")
        self.compared += 1
        limits = tolerance(self.op, self.short, self.kind, sample.kwargs)
        try:
            compare(ours, theirs, limits, "gradient" if self.kind == "gradient" else "output", self.op.name not in UNINITIALISED)
        except Differs as difference:
            if not self.excused(sample, ours, theirs, limits, weights):
                raise difference from None

    def excused(self, sample, ours, theirs, limits, weights):
        """Random numbers, a choice among equals, or a result as exact as the CPU's own."""
        with contextlib.suppress(CpuCannot):  # first: the rest computes a sample many times
            if as_exact_as_cpu(ours, theirs, self.exact(sample, weights), limits):
                self.notes.add("as exact as the CPU")
                return True
        try:
            if self.is_random(sample, weights, theirs):
                self.random_agrees(sample, ours, theirs, weights)
                self.notes.add("random")
                return True
            if self.ties(sample, ours, theirs, weights, limits):
                self.notes.add("ties")
                return True
            if self.gauge_agrees(sample, ours, theirs, limits):
                self.notes.add("up to sign or phase")
                return True
            if self.as_rounded(sample, ours, weights, limits):
                self.notes.add("as exact as its steps")
                return True
            if self.within_rounding(sample, ours, weights):
                self.notes.add("within rounding")
                return True
        except CpuCannot:
            pass
        return False

    def as_rounded(self, sample, ours, weights, limits):
        """Whether ours is what the same steps give when none of them has an error but that of its rounding."""
        with RoundedSteps():
            steps = self.on_cpu(sample, weights, {})
        try:
            compare(ours, steps, limits)
        except Differs:
            return False
        return True

    def within_rounding(self, sample, ours, weights):
        """Whether ours is as near to the exact result as numbers of the type let it be."""
        if self.dtype not in WIDEST:
            return False
        moved = [self.exact(nudged(sample, self.dtype, seed), weights) for seed in range(4)]
        narrow = [self.on_cpu(nudged(sample, self.dtype, seed, wide=False), weights, {}) for seed in range(4)]
        worst = UNSTABLE.get(self.op.name) if self.kind == "gradient" else None
        return within_rounding(ours, self.exact(sample, weights), moved, narrow, self.dtype, worst)

    def ties(self, sample, ours, theirs, weights, limits):
        """A choice among equals: of the result, or, for a gradient, of the elements that it belongs to."""
        if self.kind != "gradient":
            return ties(self.op, sample, ours, theirs, limits)
        if self.op.name not in TIES:
            return False
        results = [chosen(self.op, samples.to_device(self.op, sample, device)) for device in ("mps", "cpu")]
        if None in results or not ties(self.op, sample, *results, limits):
            return False
        there = samples.to_device(self.op, sample, "cpu")
        values = gathered(there.input, results[0][1].cpu(), dim_of(self.op, sample))
        seed = weights[0].to(values.dtype)
        try:
            compare(ours, torch.autograd.grad(values, there.input, grad_outputs=seed), limits)
        except Differs:
            return False
        return True

    def is_random(self, sample, weights, theirs):
        """Whether the CPU itself computes something else when its seed is another."""
        return any(self.changes(theirs, lambda: self.reference(sample, weights), seed) for seed in range(1, 17))

    @staticmethod
    def changes(before, compute, seed):
        try:
            with seeded(seed):
                compare(compute(), before, (0, 0))
        except Differs:
            return True
        return False

    def random_agrees(self, sample, ours, theirs, weights):
        """Same form as on the CPU, finite where that is, the same again with the same seed and not with another."""
        compare(ours, theirs, None, values=False)
        compute = lambda: self.compute(samples.to_device(self.op, sample, "mps"), weights)
        with seeded(0):
            compare(compute(), ours, (0, 0), "output with the same seed")
        if not any(self.changes(ours, compute, seed) for seed in range(1, 9)):
            raise Differs("the same numbers whatever the seed")
        for a, b in zip(leaves(ours), leaves(theirs)):
            if isinstance(a, torch.Tensor) and a.is_floating_point() and b.isfinite().all() and not a.cpu().isfinite().all():
                raise Differs("not finite")

    def gauge_agrees(self, sample, ours, theirs, limits):
        """Decompositions have results that are free up to a sign or a phase; op_db gives a function that removes it."""
        if self.kind == "gradient" or "lambda x: x" in str(sample.output_process_fn_grad) or not isinstance(ours, tuple):
            return False
        to_cpu = pytree.tree_map(lambda t: t.detach().cpu() if isinstance(t, torch.Tensor) else t, ours)
        try:
            processed = [sample.output_process_fn_grad(r) for r in (to_cpu, theirs)]
            if processed[0] is to_cpu:
                return False
            compare(*processed, limits or (1e-4, 1e-4))
        except (Differs, RuntimeError, TypeError, AttributeError):
            return False
        return True


def chosen(op, sample):
    """(values, indices) of an op that chooses elements, or None."""
    with torch.no_grad():
        made = torch.sort(sample.input, 0) if op.name == "msort" else call(op, sample)
    return tuple(made) if isinstance(made, tuple) and len(made) == 2 else None


def gathered(x, indices, dim):
    """The elements of x that indices name along dim, which a reduction has dropped."""
    return x.gather(dim, indices) if indices.dim() == x.dim() else x.gather(dim, indices.unsqueeze(dim)).squeeze(dim)


def noncontiguous(sample):
    try:
        return sample.noncontiguous()
    except RuntimeError as error:  # sparse tensors have no strides
        raise CpuCannot(str(error)) from None


def call_out(op, sample, out):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return op(sample.input, *sample.args, **sample.kwargs, out=out)


def first_missing(message):
    for pattern in MISSING:
        if found := pattern.search(message):
            return found[1]
    return ""


def run_case(op, short, dtype, kind, made):
    """{outcome, reason, missing, notes} of a case; `made` are its samples."""
    case, index, sample = Case(op, short, dtype, kind), 0, None
    answer = {"outcome": "pass", "reason": "", "missing": ""}
    try:
        for index, sample in enumerate(made):
            if case.wanted(sample):
                case.run(sample)
        if not case.compared:
            answer.update(outcome="skipped", reason="; ".join(case.notes) or "no sample has such a result")
    except Differs as difference:
        answer.update(outcome="wrong", reason=f"sample {index}: {difference}")
    except Exception as error:
        text = " ".join(str(error).split())
        refused = isinstance(error, NotImplementedError) or isinstance(error, (RuntimeError, TypeError)) and REFUSES.search(text)
        answer.update(outcome="refused" if refused else "error", reason=f"sample {index}: {type(error).__name__}: {text}"[:400],
                      missing=first_missing(text) if refused else "")
    answer["notes"] = sorted(case.notes)
    return answer
