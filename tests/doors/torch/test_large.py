# SPDX-License-Identifier: Apache-2.0
"""A tensor of more than 2^31 elements: places and offsets that take 64 bits. Its memory is untouched but for the ends, so the test is
small; what passes over all elements is left to machines that have the memory."""
import pytest
import torch

COUNT = 2**31 + 50


@pytest.fixture
def x():
    x = torch.empty(COUNT, dtype=torch.uint8, device="mps")
    x[:4] = torch.tensor([1, 2, 3, 4], dtype=torch.uint8)
    x[-4:] = torch.tensor([5, 6, 7, 8], dtype=torch.uint8, device="mps")
    return x


READ = {
    "views": lambda x: x[-4:] + 1, "item": lambda x: x[COUNT - 2].item(), "steps": lambda x: x[COUNT - 1 - 2**31::2**31][1:] * 1,
    "as_strided": lambda x: x.as_strided((2, 2), (2, 1), COUNT - 4).sum(0), "rows": lambda x: x.view(2, -1)[:, -2:].clone()[1],
    "index_select": lambda x: x.index_select(0, torch.tensor([COUNT - 1, 0, COUNT - 4], device=x.device)),
    "index": lambda x: x[torch.tensor([-1, 3, COUNT - 2], device=x.device)], "take": lambda x: x.take(torch.tensor([COUNT - 3], device=x.device)),
    "gather": lambda x: x.gather(0, torch.tensor([COUNT - 1, 1], device=x.device)), "to the host": lambda x: x[-3:].cpu(),
    "embedding": lambda x: torch.nn.functional.embedding(torch.tensor([(COUNT // 2) - 1], device=x.device), x.view(-1, 2)),
}
EXPECTED = {
    "views": [6, 7, 8, 9], "item": 7, "steps": [8], "as_strided": [12, 14], "rows": [7, 8], "index_select": [8, 1, 5], "index": [8, 4, 7],
    "take": [6], "gather": [8, 2], "to the host": [6, 7, 8], "embedding": [[7, 8]],
}


@pytest.mark.parametrize("name", READ)
def test_reading(name, x):
    found = READ[name](x)
    assert (found.tolist() if isinstance(found, torch.Tensor) else found) == EXPECTED[name]


WRITTEN = {
    "fill": lambda x, at: x[-2:].fill_(9), "index_put": lambda x, at: x.index_put_((at,), torch.tensor([9, 9], dtype=torch.uint8, device=x.device)),
    "index_fill": lambda x, at: x.index_fill_(0, at, 9), "scatter": lambda x, at: x.scatter_(0, at, 9), "masked_fill": lambda x, at: x[-4:].masked_fill_(x[-4:] > 6, 9),
    "index_copy": lambda x, at: x.index_copy_(0, at, torch.tensor([9, 9], dtype=torch.uint8, device=x.device)),
    "index_add": lambda x, at: x.index_add_(0, at, torch.tensor([2, 1], dtype=torch.uint8, device=x.device)),
    "put": lambda x, at: x.put_(at, torch.tensor([9, 9], dtype=torch.uint8, device=x.device)),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_writing(name, x):
    WRITTEN[name](x, torch.tensor([COUNT - 2, COUNT - 1], device="mps"))
    assert x[-4:].tolist() == [5, 6, 9, 9] and x[:4].tolist() == [1, 2, 3, 4]
