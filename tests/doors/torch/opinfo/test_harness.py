# SPDX-License-Identifier: Apache-2.0
"""The harness itself can fail: it finds wrong numbers, crashes and hangs, and a page that claims too much."""
import os
import time
from types import SimpleNamespace

import pytest
import torch

from tests.doors.torch.opinfo import cases, compare, exact, pool, report, run_case, samples
from tests.doors.torch.opinfo.rounded import RoundedSteps


def fake(function, **fields):
    """An op of op_db that computes `function` on mps and doubles on the CPU."""
    def op(x, *args, **kwargs):
        return function(x) if x.is_mps else x * 2
    op.name, op.variant_test_name, op.test_conjugated_samples = "fake", "", False
    op.supports_autograd, op.inplace_variant = True, None
    op.__dict__.update(fields)
    op.sample_inputs = lambda *_, **__: [samples.SampleInput(torch.arange(1.0, 5.0, requires_grad=True))]
    return op


def refuse(x):
    raise NotImplementedError("The operator 'aten::mul.out' is not currently implemented for the MPS device.")


def broken(x):
    raise KeyError("no")


@pytest.mark.parametrize("function, kind, outcome, reason", [
    (lambda x: (x.cpu() * 2).to("mps"), "forward", "pass", ""),
    (lambda x: (x.cpu() * 2.001).to("mps"), "forward", "wrong", "output[0] of (4,): 2.00"),
    (lambda x: (x.cpu() * 2).half().to("mps"), "forward", "wrong", "dtype"),
    (lambda x: (x.cpu() * 2)[:3].to("mps"), "forward", "wrong", "shape"),
    (lambda x: x.cpu() * 2, "forward", "wrong", "not on mps"),
    (lambda x: (x.cpu() * 2 + torch.rand(4)).to("mps"), "forward", "wrong", "output"),
    (lambda x: (x.detach().cpu() * 2).to("mps"), "gradient", "wrong", "no output requires a gradient"),
    (lambda x: (x.cpu() * 3 - x.detach().cpu()).to("mps"), "gradient", "wrong", "gradient[0]"),
    (lambda x: (x.cpu() * 2).to("mps"), "gradient", "pass", ""),
    (refuse, "forward", "refused", "aten::mul.out"), (broken, "forward", "error", "KeyError")],
    ids="pass value dtype shape device random nograd gradient gradient_pass refused error".split())
def test_outcomes(function, kind, outcome, reason):
    op = fake(function)
    answer = run_case.run_case(op, "f32", torch.float32, kind, op.sample_inputs())
    assert answer["outcome"] == outcome and reason in answer["reason"]
    assert answer["missing"] == ("aten::mul.out" if outcome == "refused" else "")


@pytest.mark.parametrize("draw, outcome", [
    (lambda: torch.rand(4), "pass"), (lambda: torch.rand(3), "wrong"), (lambda: torch.full((4,), 0.5), "wrong"),
    (lambda: torch.tensor(list(os.urandom(4))).float(), "wrong"), (lambda: torch.rand(4) / 0, "wrong")],
    ids="good shape constant unseeded infinite".split())
def test_random_ops(draw, outcome):
    def op(x):
        return draw().to("mps") if x.is_mps else torch.rand(4)
    op.name = op.variant_test_name = "fake"
    answer = run_case.run_case(op, "f32", torch.float32, "forward", [samples.SampleInput(torch.zeros(4))])
    assert answer["outcome"] == outcome, answer


def test_ties_may_be_broken_in_any_way():
    sample, values = samples.SampleInput(torch.tensor([2.0, 1.0, 1.0])), torch.tensor([1.0, 1.0, 2.0])
    op, cpu = SimpleNamespace(name="sort"), (values, torch.tensor([1, 2, 0]))
    for indices, good in (([2, 1, 0], True), ([1, 1, 0], False), ([0, 1, 2], False), ([1, 2, 3], False)):
        assert compare.ties(op, sample, (values, torch.tensor(indices)), cpu, None) is good
    assert not compare.ties(op, sample, (values + 1, torch.tensor([2, 1, 0])), cpu, None)


def test_second_opinion_has_bounds():
    exact = torch.tensor([1.0, 2.0], dtype=torch.float64)
    cpu = torch.tensor([1.01, 2.0])
    assert compare.as_exact_as_cpu(torch.tensor([1.0, 2.00001]), cpu, exact, None)
    assert not compare.as_exact_as_cpu(torch.tensor([1.0, 2.01]), cpu, exact, None)
    assert not compare.as_exact_as_cpu(torch.tensor([1.0, float("nan")]), cpu, exact, None)


def test_samples_keep_strides_offsets_and_identity():
    base = torch.arange(24.0).reshape(4, 6)
    strided, wide = base[1:, ::2].t(), torch.ones(3, 1).expand(3, 4)
    conjugated = torch.randn(3, dtype=torch.complex64).conj()
    sample = samples.SampleInput(strided, args=(wide, strided, [conjugated]), kwargs={"device": "cpu", "dim": 1})
    moved = samples.to_device(SimpleNamespace(name="fake"), sample, "mps")
    for ours, theirs in ((moved.input, strided), (moved.args[0], wide), (moved.args[2][0], conjugated)):
        assert ours.is_mps and ours.stride() == theirs.stride() and torch.equal(ours.cpu(), theirs)
        assert ours.storage_offset() == theirs.storage_offset() and ours.is_conj() == theirs.is_conj()
    assert moved.args[1] is moved.input and moved.kwargs == {"device": torch.device("mps"), "dim": 1}


def test_crashes_and_hangs_end_one_case(monkeypatch):
    def crash(x):
        os.kill(os.getpid(), 11)

    good = lambda x: (x.cpu() * 2).to("mps")
    ops = {"a": fake(good), "b": fake(crash), "c": fake(lambda x: time.sleep(60)), "d": fake(good)}
    monkeypatch.setattr(cases, "OPS", ops)
    units = [cases.Unit(name, "f32", ("forward", "noncontiguous")) for name in ops]
    results = pool.run_all(units, 2, 3, 0, lambda *_: None)
    assert len(results) == 8
    for (name, _, _), answer in results.items():
        assert answer["outcome"] == {"a": "pass", "b": "crash", "c": "timeout", "d": "pass"}[name], answer
    assert "SIGSEGV" in results["b", "f32", "forward"]["reason"]


def answer(outcome, xfail=False, missing=""):
    return {"outcome": outcome, "reason": "because", "missing": missing, "notes": [], "xfail": xfail}


def test_page_and_verify():
    results = {("add", "f32", "forward"): answer("pass"), ("sub", "f32", "forward"): answer("refused", missing="aten::sub.out"),
               ("sub", "f16", "forward"): answer("refused", missing="aten::sub.out"), ("mul", "f16", "gradient"): answer("wrong", True),
               ("div", "f16", "gradient"): answer("pass", True), ("abs", "bool", "forward"): {**answer("skipped"), "reason": report.ABSENT}}
    text = report.page(results, {}, "2.15.0")
    assert "| sub | forward | refused | f32 f16 | aten::sub.out |" in text and "| mul | gradient | xfail (wrong) | f16 |" in text
    assert "| forward | f32 | 1 | 0 | 1 | 0 | 0 | 0 | 0 | 0 | 50.0 |" in text
    assert "| gradient | f16 | 1 | 0 | 0 | 0 | 0 | 0 | 1 | 1 | 100.0 |" in text
    assert set(report.listed(text)) == {("sub", "f32", "forward"), ("sub", "f16", "forward"), ("mul", "f16", "gradient")}
    assert report.verify(results, text) == []
    for outcome in ("refused", "wrong", "crash", "error", "timeout", "skipped"):
        assert len(report.verify({**results, ("add", "f32", "forward"): answer(outcome)}, text)) == 1
    assert len(report.verify({**results, ("sub", "f32", "forward"): answer("wrong")}, text)) == 1
    assert report.verify(results, "") and report.missing(results)[0].split()[:2] == ["2", "aten::sub.out"]


def test_upstreams_expectations():
    """Facts of torch's own lists, and that reading them leaves op_db as it was."""
    before = cases.OPS["argsort"].decorators
    assert ("forward", "f16") in cases.upstream_expects(cases.OPS["argsort"])
    assert ("forward", "f32") not in cases.upstream_expects(cases.OPS["argsort"])
    assert ("gradient", "f32") in cases.upstream_expects(cases.OPS["linalg.lstsq"])
    assert cases.upstream_expects(cases.OPS["add"]) == set(), "float64 is expected to work here"
    assert cases.OPS["argsort"].decorators == before


def test_selection():
    units, _ = cases.select("add", ["f32", "bool"], ["forward", "gradient", "out", "inplace", "noncontiguous"])
    assert [(u.op, u.dtype, u.kinds) for u in units] == [
        ("add", "f32", ("forward", "gradient", "out", "inplace", "noncontiguous")), ("add", "bool", ("forward",))]
    whole = cases.select(None, ["f32"], ["forward"])[0]
    parts = [cases.select(None, ["f32"], ["forward"], (i, 3))[0] for i in range(3)]
    assert sorted(u.op for part in parts for u in part) == sorted(u.op for u in whole) and all(parts)


def test_an_op_that_the_cpu_refuses_is_not_random():
    """The CPU computes it in a wider type, with the same output gradients, and rounds."""
    def op(x):
        if x.is_cpu and x.dtype == torch.bfloat16:
            raise NotImplementedError("not here")
        return x * x
    op.name = op.variant_test_name = "fake"
    made = samples.SampleInput(torch.arange(1.0, 500.0).bfloat16().requires_grad_())
    for kind in ("forward", "gradient"):
        answer = run_case.run_case(op, "bf16", torch.bfloat16, kind, [made])
        assert answer["outcome"] == "pass" and not answer["notes"], answer


def test_rounded_steps():
    x = torch.tensor([0.1, 3.3, -7.7], dtype=torch.bfloat16)
    with RoundedSteps():
        y = (x + 1.7).exp().sum()
    step = (x.double() + 1.7).bfloat16().double().exp().bfloat16()
    assert y.dtype == torch.bfloat16 and y == step.double().sum().bfloat16()


def test_gradients_of_a_choice_among_equals():
    """What belongs to equal elements may lie at another of them, but nowhere else."""
    x = torch.tensor([2.0, 1.0, 2.0, 0.0], requires_grad=True)
    for order, outcome in (([3, 1, 2, 0], "pass"), ([1, 3, 2, 0], "wrong")):
        def op(x, order=order):
            i = torch.tensor(order if x.is_mps else [3, 1, 0, 2], device=x.device)
            return x.gather(0, i), i
        op.name, op.variant_test_name = "sort", ""
        answer = run_case.run_case(op, "f32", torch.float32, "gradient", [samples.SampleInput(x)])
        assert answer["outcome"] == outcome, answer


def test_digits_where_f64_is_not_exact():
    x = torch.tensor([-5.4215280659972755, 3.0], dtype=torch.float64, requires_grad=True)
    with exact.ByDigits():
        y = torch.special.bessel_j0(x)
        y.sum().backward()
        slope = (torch.special.bessel_j0(x.detach() + 1e-6) - torch.special.bessel_j0(x.detach() - 1e-6)) / 2e-6
    assert y.tolist() == pytest.approx([-0.033781312788260555, -0.2600519549019334], rel=1e-14)
    assert x.grad.tolist() == pytest.approx(slope.tolist(), rel=1e-8)


@pytest.mark.parametrize("scale, kept", [(1.0, False), (1e3, True)])
def test_rounding_excuses_what_it_moves(scale, kept):
    """exp(scale * x): at 1 an error of 2e-6 is wrong; at 1,000 the last digit of x moves the result by as much."""
    sample = samples.SampleInput(torch.tensor([0.0101, 0.0102]))
    compute = lambda s: torch.exp(s.input.double() * scale)
    right = compute(sample)
    moved = [compute(exact.nudged(sample, torch.float32, seed)) for seed in range(4)]
    narrow = [torch.exp(exact.nudged(sample, torch.float32, seed, wide=False).input * scale) for seed in range(4)]
    assert exact.within_rounding((right * (1 + 2e-6)).float(), right, moved, narrow, torch.float32) is kept
    assert not exact.within_rounding((right * 1.01).float(), right, moved, narrow, torch.float32)
    assert not exact.within_rounding(right.float() * float("nan"), right, moved, narrow, torch.float32)


def test_a_page_is_read_as_it_was_printed():
    answer = lambda outcome, xfail=False, reason="": {"outcome": outcome, "reason": reason, "missing": "", "notes": [], "xfail": xfail}
    results = {("a", "f32", "forward"): answer("pass"), ("b", "f32", "forward"): answer("pass", True), ("c", "f16", "gradient"): answer("wrong", True, "1 | 2"),
               ("c", "bf16", "gradient"): answer("wrong", True, "1 | 2"), ("d", "i64", "forward"): answer("refused", False, "no such op")}
    text = report.page(results, {}, "2.15")
    assert report.page(report.as_printed(text, results, lambda key: results[key]["xfail"]), {}, "2.15") == text


def test_the_exact_gradient_of_complex_numbers():
    """It is the CPU's in c128: of lstsq, whose gradient is another one under a dispatch mode."""
    from torch.testing._internal.common_methods_invocations import op_db
    case = run_case.Case(next(op for op in op_db if op.name == "linalg.lstsq" and op.variant_test_name == "grad_oriented"), "c64", torch.complex64, "gradient")
    weights, sample = [], samples.make(case.op, torch.complex64, 0)[2]
    narrow = case.reference(sample, weights)
    for near, wide in zip(narrow, case.exact(sample, weights)):
        assert wide.dtype == torch.complex128
        torch.testing.assert_close(near.to(torch.complex128), wide, rtol=1e-3, atol=1e-3)
