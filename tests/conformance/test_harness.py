# SPDX-License-Identifier: Apache-2.0
"""The runner of the ONNX suite tells a pass, a refusal, a wrong output, a crash and a hang apart."""
import os
import signal
import time
import unittest

import numpy as np
import pytest

from tests.conformance import cases, onnx_backend, report
from tests.conformance.backends import Staged


class Fake(Staged):
    """Does what the model's name says."""

    @classmethod
    def load(cls, model):
        if model == "refuse":
            raise NotImplementedError("no such op")

        def run(inputs):
            if model == "abort":
                os.kill(os.getpid(), signal.SIGKILL)
            if model == "exit":
                os._exit(0)
            if model == "hang":
                time.sleep(60)
            if model == "refuse in run":
                raise ValueError("bad shape")
            if model == "other dtype":
                return (inputs,)
            return inputs + (model == "wrong")
        return run


def case(what, name=None):
    def func(_):
        if what == "skip":
            raise unittest.SkipTest("not here")
        result = Fake.prepare(what).run(np.zeros(2))
        assert isinstance(result, np.ndarray)
        np.testing.assert_allclose(result, np.zeros(2))
    return cases.Case(name or what, "Node", "Op", func)


EXPECTED = {"pass": "passed", "refuse": "refused", "refuse in run": "refused", "wrong": "wrong", "abort": "crashed",
            "exit": "crashed", "hang": "crashed", "skip": "skipped"}


@pytest.fixture(scope="module")
def result():
    tests = {what: case(what) for what in EXPECTED}
    tests["test_bernoulli"] = case("wrong", "test_bernoulli")
    tests["test_bernoulli_double"] = case("pass", "test_bernoulli_double")
    tests["test_bernoulli_seed"] = case("other dtype", "test_bernoulli_seed")
    results = onnx_backend.run_all(tests, Fake, 2, 3, lambda done, total: None)
    return report.Report("anymps", tests, results, 1.0)


def test_each_end_is_told_apart(result):
    assert {name: row[2] for name, row in result.rows.items() if name in EXPECTED} == EXPECTED
    assert result.rows["refuse"][3] == "NotImplementedError: no such op"


def test_what_nobody_can_pass_is_told_apart_from_a_wrong_output(result):
    assert result.rows["test_bernoulli"][2:] == ("unpassable", cases.UNPASSABLE["test_bernoulli"][1])
    assert result.rows["test_bernoulli_double"][2] == "unpassable", "equal random numbers are luck"
    assert result.rows["test_bernoulli_seed"][2] == "wrong", "other random numbers are excused, nothing else"


def test_counts(result):
    data = result.json()
    assert (data["total"], data["passed"], data["failed"], data["skipped"], data["wrong_output"]) == (11, 1, 9, 1, 2)
    assert data["unpassable"] == 2 and data["crashed"] == 3 and data["refused"] == 2
    assert data["ops"]["Op"] == {"passed": 1, "failed": 9, "skipped": 1, "wrong_output": 2}


def test_the_page_lists_what_is_open_and_is_verified(result):
    tests = {f"test_{what.replace(' ', '_')}": case(what) for what in EXPECTED}
    results = {f"test_{what.replace(' ', '_')}": (status, "/usr/lib/a|b", 0) for what, status in EXPECTED.items()}
    ours = report.Report("anymps", tests, results, 1.0)
    text = report.page(ours, report.Report("onnxruntime", tests, results, 1.0))
    assert "| test_wrong | Op | wrong | a\\|b |" in text and "/usr" not in text
    rows = [line.count("|") for line in text.splitlines() if line.startswith(("| |", "| AnyMPS", "| ONNX Runtime"))]
    assert len(rows) == 3 and len(set(rows)) == 1, "a row has as many cells as its head"
    assert report.verify(ours, text) == 0
    results["test_pass"] = ("refused", "", 0)
    assert report.verify(report.Report("anymps", tests, results, 1.0), text) == 1
    assert report.verify(ours, "") == 1
