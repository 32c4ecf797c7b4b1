# SPDX-License-Identifier: Apache-2.0
"""A short version of `python -m tests.doors.server.soak`; and that it sees what it must."""
import numpy as np

from .__main__ import check_memory, soak
from .jobs import Job, is_right, jobs


def test_bears_mixed_load(tmp_path):
    text, problems = soak("anymps", 20, 1, tmp_path / "server.log")
    assert not problems, "\n".join([text, *problems])


def test_sees_wrong_numbers():
    x = np.float32([[1, 2]])
    job = Job("m", [], [{"y": x}, {"y": x + 1}])
    assert is_right(job, {"y": x.copy()}) and is_right(job, {"y": x + 1})
    assert not is_right(job, {"y": x + 2}) and not is_right(job, {"y": x[:, :1]}) and not is_right(job, {})


def test_sees_memory_that_grows():
    assert check_memory([100.0] * 40) == []
    assert check_memory([100.0 + 5 * i for i in range(40)])


def test_jobs_are_the_same_for_a_seed():
    first, second = jobs(3), jobs(3)
    for _ in range(50):
        a, b = next(first), next(second)
        assert a.model == b.model and is_right(a, a.right[0]) and is_right(b, a.right[0])
