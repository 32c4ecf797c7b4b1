# SPDX-License-Identifier: Apache-2.0
"""One table of cases against the real tritonserver with our backend and against our own server: same answers, same
error codes and messages, same fields."""
import pytest

from .cases import CASES
from .sending import comparable, differences, problems
from ..servers import KINDS

# Where a server runs, and what it was started with.
PATHS = ("trace_file",)


def run(client, case):
    """Sends all steps, whatever becomes of one, so that a case leaves the server as it was; then tells the first problem."""
    answers, found = [], []
    for number, step in enumerate(case.steps):
        answer = client.answer(step)
        found += [f"{client.server.kind}, step {number}: {p}" for p in problems(step, answer)]
        answers.append(answer)
    return answers, found


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_case(case, pairs):
    pair, answers, found = pairs[case.on], {}, []
    for kind in KINDS:
        if case.only in ("", kind):
            answers[kind], new = run(pair.client(kind), case)
            found += new
    if len(answers) == 2:
        for number, step in enumerate(case.steps):
            ours, theirs = (without_paths(comparable(step, answers[k][number]), f"repository_{k}") for k in ("anymps", "triton"))
            found += [f"step {number}{d}" for d in differences(ours, theirs)]
    assert not found, "\n".join(found)


def without_paths(answer, repository):
    """Each server has a copy of the repository, which some messages name."""
    if isinstance(answer, dict):
        return {k: without_paths(v, repository) for k, v in answer.items() if k not in PATHS}
    if isinstance(answer, list):
        return [without_paths(v, repository) for v in answer]
    return answer.replace(repository, "repository") if isinstance(answer, str) else answer
