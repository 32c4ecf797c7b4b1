# SPDX-License-Identifier: Apache-2.0
"""What the schema cannot express stays outside with a reason, and the program is right all the same."""

import pytest

pytest.importorskip("executorch.backends.apple.mps", reason="needs .venvs/executorch: scripts/env executorch")

import torch  # noqa: E402

from anymps_executorch.bundles.kinds import floats, integers  # noqa: E402
from anymps_executorch.checking import differences  # noqa: E402

F = torch.nn.functional
X = floats(3, 5)

CASES = {
    "transposed": (lambda p, w: F.conv_transpose2d(p, w), (floats(1, 2, 5, 4), floats(2, 3, 2, 2)), "transposed"),
    "three dims": (lambda p, w: F.conv3d(p, w), (floats(1, 2, 4, 4, 4), floats(3, 2, 2, 2, 2)), "3 spatial dims"),
    "doubles": (lambda x: x * 2, (X.double(),), "no float64"),
    "accumulate": (
        lambda x, i, v: torch.index_put(x, (i,), v, accumulate=True),
        (X, torch.tensor([1, 1]), floats(2, 5)),
        "does not accumulate",
    ),
    "crop": (lambda x: F.pad(x, (-1, 1)), (X,), "does not crop"),
    "ints": (lambda i: i @ i.t(), (integers(3, 4),), "multiplies floats"),
    "large ints": (lambda i: i + torch.full((3,), 2**40), (integers(3, dtype=torch.int64),), "too large"),
    "no node": (lambda x: torch.cumsum(x, 1), (X,), "no such node"),
    "outputs of one outside": (lambda x: torch.topk(x, 2)[0], (X,), "no such node"),
}


def test_slice_of_an_open_extent(lowered):
    """The wheel would write the extent of the example as the end."""
    length = torch.export.Dim("length", min=3, max=9)
    made = lowered(lambda x: torch.relu(x[:, 1:]), floats(2, 5), dynamic_shapes=(({1: length},),))
    assert "fixed end" in str(made.reports["forward"])
    for extent in (3, 9):
        assert max(differences(made, inputs=(floats(2, extent),))) == 0


@pytest.mark.parametrize("name", CASES)
def test_case(lowered, name):
    function, inputs, reason = CASES[name]
    made = lowered(function, *inputs)
    outside = made.reports["forward"].outside
    assert any(reason in why for _, why in outside.values()), outside
    assert reason in str(made.reports["forward"])
    assert max(differences(made)) <= 1e-6
