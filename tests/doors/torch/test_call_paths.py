# SPDX-License-Identifier: Apache-2.0
"""The short ways of small calls: numbers, types and memory are those of the long ways."""
import gc
import itertools
import operator
import threading

import pytest
import torch


def test_types_of_operands_and_numbers():
    """Tensors of one type go by a rule of their own, and all others by PyTorch's: the results have the CPU's types either way."""
    tensors = [torch.full(shape, 3, dtype=dtype) for shape in ((), (2,))
               for dtype in (torch.float32, torch.float16, torch.float64, torch.int64, torch.bool, torch.complex64)]
    numbers = [2, 2.5, True, 1 + 2j]
    for a, b in itertools.product(tensors, tensors + numbers):
        for f in (torch.add, torch.mul, torch.true_divide, torch.eq):
            if f is torch.true_divide and torch.result_type(a, b) == torch.complex32:  # which the CPU does not divide
                continue
            expected = f(a, b)
            for _ in range(2):  # the second time it is remembered
                got = f(a.to("mps"), b.to("mps") if isinstance(b, torch.Tensor) else b)
                assert got.dtype == expected.dtype, (f, a.dtype, a.shape, b)
                torch.testing.assert_close(got.cpu(), expected, rtol=1e-3, atol=1e-3)
    # A number of the CPU that is a tensor counts as one.
    x = torch.tensor(1.5)
    for y in (torch.tensor(2.0, dtype=torch.float64), torch.tensor(2)):
        assert (x.to("mps") * y).dtype == (x * y).dtype


def test_in_place_forms_return_what_they_change():
    a, b = torch.ones(3, device="mps"), torch.full((3,), 2.0, device="mps")
    for _ in range(3):
        assert a.add_(b, alpha=2) is a
    assert a.tolist() == [13.0] * 3
    assert a.relu_() is a and a.sub_(1) is a and a.mul_(b) is a
    assert a.tolist() == [24.0] * 3
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        torch.ones(1, device="mps").add_(b)
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.ones(3, dtype=torch.int32, device="mps").add_(b)


def test_small_products_of_any_strides():
    generator = torch.Generator().manual_seed(0)
    for rows, depth, columns in itertools.product((1, 5, 16), (1, 7, 16), (1, 16, 33, 70)):
        a, b = torch.randn(rows, depth, generator=generator), torch.randn(depth, columns, generator=generator)
        wide = torch.randn(depth, 2 * columns + 1, generator=generator)
        row = torch.randn(1, columns, generator=generator)
        for other in (b, b.t().contiguous().t(), wide[:, 1::2], row.expand(depth, columns)):
            # The same strides on the device: a copy of the storage, seen in the same way.
            storage = other.as_strided((other.untyped_storage().nbytes() // 4,), (1,), 0).to("mps")
            moved = storage.as_strided(other.size(), other.stride(), other.storage_offset())
            torch.testing.assert_close(torch.mm(a.to("mps"), moved).cpu(), a @ other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("count", [1, 16, 17, 1024, 1025])
def test_small_memory_counts_as_free(count):
    gc.collect()
    torch.mps.empty_cache()
    before = torch.mps.current_allocated_memory()
    kept = [torch.zeros(count, device="mps") for _ in range(40)]
    assert torch.mps.current_allocated_memory() - before >= 40 * 4 * count
    pointers = {x.data_ptr() for x in kept}
    assert len(pointers) == 40
    kept.clear()
    assert torch.mps.current_allocated_memory() == before
    again = torch.full((count,), 7.0, device="mps")
    other = torch.full((count,), 8.0, device="mps")
    assert again.tolist() == [7.0] * count and other.tolist() == [8.0] * count


def test_small_memory_of_threads_that_end():
    gc.collect()
    before = torch.mps.current_allocated_memory()
    held = []

    def work():
        made = [torch.full((i,), float(i), device="mps") for i in range(1, 200)]
        held.append(made[7] + 1)

    for _ in range(10):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert all(x.tolist() == [9.0] * 8 for x in held)
    held.clear()
    assert torch.mps.current_allocated_memory() == before


def test_gradients_are_computed_on_the_calling_thread():
    seen = []
    x = torch.ones(4, device="mps", requires_grad=True)
    y = x * 2
    y.register_hook(lambda grad: seen.append(threading.get_ident()))
    y.sum().backward()
    assert seen == [threading.get_ident()] and x.grad.tolist() == [2.0] * 4
    assert torch.autograd.is_multithreading_enabled()

    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("not today")

    with pytest.raises(ValueError, match="not today"):
        Fails.apply(x).sum().backward()
    assert torch.autograd.is_multithreading_enabled()


def test_compiled_graphs_return_results_and_arguments():
    def several(x, y):
        z = x + y
        return z, x, z, z * 2

    run = torch.compile(several, backend="anymps")
    a, b = torch.ones(3, device="mps"), torch.full((3,), 2.0, device="mps")
    for _ in range(3):
        assert [t.tolist() for t in run(a, b)] == [[3.0] * 3, [1.0] * 3, [3.0] * 3, [6.0] * 3]
    x = torch.ones(3, device="mps", requires_grad=True)
    step = torch.compile(lambda x, y: operator.mul(x, y).sum(), backend="anymps")
    for _ in range(3):
        assert torch.autograd.grad(step(x, b), x)[0].tolist() == [2.0] * 3
