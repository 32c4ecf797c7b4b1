# SPDX-License-Identifier: Apache-2.0
"""Indices, masks and reductions where torch's op database does not look: errors, memory, NaN, sparse tensors."""
import math

import pytest
import torch


def both(compute, *tensors):
    """The same on the device and on the CPU, each with copies of its own."""
    there = compute(*(t.clone().to("mps") for t in tensors))
    here = compute(*(t.clone() for t in tensors))
    torch.testing.assert_close(there.cpu(), here, equal_nan=True)


@pytest.mark.parametrize("index", [4, -5])
@pytest.mark.parametrize("pick", [
    lambda x, i: x[i], lambda x, i: x[:, i, i], lambda x, i: x.index_put_((i,), x[0]), lambda x, i: x.take(i * 16),
    lambda x, i: x.index_select(0, i), lambda x, i: x.index_add_(0, i, x[:1]), lambda x, i: x.index_fill_(0, i, 1),
    lambda x, i: x.gather(0, i.view(1, 1, 1)), lambda x, i: x.scatter_(0, i.view(1, 1, 1), 1.0)])
def test_an_index_that_there_is_none_of_is_an_error(pick, index):
    x = torch.arange(64.0, device="mps").view(4, 4, 4)
    with pytest.raises((IndexError, RuntimeError)):
        pick(x, torch.tensor([index], device="mps"))
    assert x.cpu().equal(torch.arange(64.0).view(4, 4, 4))


@pytest.mark.parametrize("pick", [lambda x, i: x.gather(0, i.view(1, 1)), lambda x, i: x.scatter(0, i.view(1, 1), 1.0),
                                  lambda x, i: x.index_select(0, i), lambda x, i: x.index_copy(0, i, x[:1])])
def test_indices_that_count_from_zero_are_not_negative(pick):
    with pytest.raises((IndexError, RuntimeError)):
        pick(torch.zeros(3, 3, device="mps"), torch.tensor([-1], device="mps"))


def test_a_mask_has_the_shape_of_what_it_masks():
    x = torch.zeros(4, 5, device="mps")
    for mask in (torch.ones(3, dtype=torch.bool), torch.ones(4, 6, dtype=torch.bool, device="mps")):
        with pytest.raises(IndexError):
            x[mask]
        with pytest.raises(IndexError):
            x.index_put_((mask,), torch.tensor(1.0, device="mps"))


def test_a_dim_that_there_is_none_of():
    for x in (torch.tensor(1.0, device="mps"), torch.ones(2, device="mps")):
        for reduce in (torch.var, torch.std, torch.nansum, torch.count_nonzero, torch.median):
            with pytest.raises(IndexError):
                reduce(x, 1)
    with pytest.raises(RuntimeError, match="multiple times"):
        torch.var(torch.ones(2, 2, device="mps"), (0, 0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.bool, torch.complex64])
def test_writing_in_place(dtype):
    x, places = torch.arange(120).view(4, 5, 6).to(dtype), torch.tensor([[0, 3], [1, 2]])
    both(lambda x, i: x.put_(i, x.flatten()[3:7].view(2, 2).clone()), x, places)
    both(lambda x, i: x.transpose(0, 2).index_put_((i[:, 0], i[:, 1]), x[0, 0, 0].clone()), x, places)
    both(lambda x, i: x.index_put_((i, i), x[:2, :2].clone(), accumulate=True), x, places)
    both(lambda x, i: x.scatter_(1, i.unsqueeze(-1), 1), x, places)


def test_writing_in_place_leaves_the_memory_where_it_is():
    x = torch.zeros(64, 64, device="mps")
    before = x.data_ptr()
    x[torch.tensor([1, 2], device="mps"), torch.tensor([3, 4], device="mps")] = 1.0
    x.scatter_(1, torch.zeros(1, 1, dtype=torch.int64, device="mps"), 2.0)
    assert x.data_ptr() == before and x.sum().item() == 4


def test_each_nan_is_one_of_its_own():
    x = torch.tensor([math.nan, 1.0, math.nan, 1.0, -0.0, 0.0])
    for results in range(3):
        both(lambda x: torch.unique(x, return_inverse=True, return_counts=True)[results], x)
        both(lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True)[results], x)


@pytest.mark.parametrize("correction", [0, 1, 2, 5, 100, 0.5])
def test_a_variance_is_never_negative(correction):
    both(lambda x: x.var(0, correction=correction), torch.arange(15.0).view(5, 3) ** 2)


def test_results_as_long_as_the_elements_say_go_to_memory_with_strides():
    def compute(x):
        out = torch.zeros(2, 4, dtype=torch.int64, device=x.device).t()
        return torch.nonzero(x, out=out)
    both(compute, torch.tensor([[0.0, 1, 1, 1, 1]]))


def test_whole_numbers_are_exact():
    both(lambda x: torch.arange(2**60, 2**60 + 5, device=x.device), torch.zeros(1))
    both(lambda x: torch.full((2,), 2**62 + 1, device=x.device), torch.zeros(1))


def test_sparse_coo():
    dense = torch.tensor([[0.0, 2, 0], [3, 0, 4]])
    both(lambda x: x.to_sparse().to_dense(), dense)
    both(lambda x: torch.sparse.mm(x.to_sparse(), x.t()), dense)
    both(lambda x: torch.sparse.mm(x.t().to_sparse(), x), dense)

    def twice(x):
        places = torch.tensor([[1, 0, 1], [2, 1, 2]], device=x.device)
        made = torch.sparse_coo_tensor(places, torch.tensor([1.0, 2, 3], device=x.device), (2, 3)).coalesce()
        assert made.is_coalesced() and made._nnz() == 2
        return torch.cat([made.indices().to(torch.float32), made.values().unsqueeze(0)])
    both(twice, dense)
