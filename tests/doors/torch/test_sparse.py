# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors in the layout COO, as upstream's MPS has them."""
import pytest
import torch

DENSE = torch.tensor([[0.0, 2, 0, 0], [3, 0, 4, 0], [0, 0, 0, 0], [-1, 0, 0, 5]])
OTHER = torch.tensor([[1.0, 2, 0, 0], [0, 0, 4, 7], [0, 1, 0, 0], [0, 0, 0, 5]])


def both(compute, *tensors):
    """The same on the device and on the CPU, dense or sparse."""
    there, here = (compute(*(t.clone().to(device) for t in tensors)) for device in ("mps", "cpu"))
    assert there.is_mps and there.layout == here.layout
    torch.testing.assert_close(there.cpu().to_dense() if there.layout != torch.strided else there.cpu(),
                               here.to_dense() if here.layout != torch.strided else here)


def repeated(x):
    """A tensor with a place twice, which is not coalesced."""
    places = torch.tensor([[1, 0, 1, 3], [2, 1, 2, 0]], device=x.device)
    return torch.sparse_coo_tensor(places, torch.tensor([1.0, 2, 3, 4], device=x.device), (4, 4))


def places(x, *numbers):
    return torch.tensor(numbers, dtype=torch.int64, device=x.device)


@pytest.mark.parametrize("compute", [
    lambda x, y: x.to_sparse() + y.to_sparse(), lambda x, y: x.to_sparse() - y.to_sparse() * 2, lambda x, y: x + y.to_sparse(),
    lambda x, y: x.to_sparse() * y.to_sparse(), lambda x, y: x.to_sparse() * y, lambda x, y: x.to_sparse() * 3, lambda x, y: x.to_sparse() / 2,
    lambda x, y: repeated(x) + repeated(y), lambda x, y: repeated(x) + x.to_sparse(), lambda x, y: repeated(x) * y.to_sparse(),
    lambda x, y: repeated(x).coalesce(), lambda x, y: repeated(x).to_dense(), lambda x, y: x.to_sparse().add_(y.to_sparse(), alpha=3),
    lambda x, y: x.clone().add_(repeated(y), alpha=0.5), lambda x, y: x.to_sparse().mul_(2), lambda x, y: -x.to_sparse(),
    lambda x, y: x.to_sparse().abs().sqrt(), lambda x, y: x.to_sparse().pow(2), lambda x, y: torch.tanh(x.to_sparse()),
    lambda x, y: x.to_sparse().relu_(), lambda x, y: x.to_sparse().t(), lambda x, y: torch.cat([x.to_sparse(), y.to_sparse()], 1),
    lambda x, y: x.to_sparse()[1], lambda x, y: x.to_sparse().unsqueeze(0), lambda x, y: x.to_sparse().double(),
    lambda x, y: torch.sparse.sum(x.to_sparse()), lambda x, y: torch.sparse.sum(x.to_sparse(), 1), lambda x, y: x.to_sparse().norm(),
    lambda x, y: x.to_sparse() @ y, lambda x, y: x.to_sparse() @ y.to_sparse(), lambda x, y: x @ y.to_sparse(),
    lambda x, y: x.to_sparse() @ y[0], lambda x, y: torch.addmm(x, x.to_sparse(), y, beta=2, alpha=3), lambda x, y: x.sparse_mask(y.to_sparse()),
    lambda x, y: x.to_sparse().sparse_mask(y.to_sparse()), lambda x, y: torch.zeros_like(x.to_sparse()), lambda x, y: x.to_sparse(1),
    lambda x, y: torch.sparse.softmax(x.to_sparse(), 0), lambda x, y: torch.sparse.softmax(repeated(x), -1),
    lambda x, y: torch.sparse.log_softmax(x.to_sparse(), 1), lambda x, y: torch.sparse.softmax(x.to_sparse(1), 1),
    lambda x, y: torch.sparse.log_softmax(x.to_sparse(1), 0), lambda x, y: x.to_sparse().index_select(0, places(x, 3, 1, 1)),
    lambda x, y: repeated(x).index_select(1, places(x, 2, 0, 2, -1)), lambda x, y: x.to_sparse(1).index_select(1, places(x, 0, 3)),
    lambda x, y: x.to_sparse().index_select(0, places(x)), lambda x, y: torch.bmm(torch.stack([x, y]).to_sparse(), torch.stack([y, x])),
    lambda x, y: torch.bmm(torch.zeros_like(x)[None].to_sparse(), y[None])])
def test_coo(compute):
    both(compute, DENSE, OTHER)


def test_empty_and_wrong():
    both(lambda x: x.to_sparse() * x.to_sparse() + x.to_sparse(), torch.zeros(3, 4))
    both(lambda x: x.to_sparse() @ x.t().to_sparse(), torch.zeros(3, 4))
    x = DENSE.to("mps").to_sparse()
    for wrong in (lambda: x + x[:2], lambda: x @ torch.ones(3, 2, device="mps"), lambda: x + DENSE.to("mps"),
                  lambda: x.index_select(0, torch.tensor([4], device="mps")), lambda: torch.sparse.softmax(x, 2),
                  lambda: torch.bmm(x[None], torch.ones(1, 3, 2, device="mps"))):
        with pytest.raises((RuntimeError, IndexError)):
            wrong()


@pytest.mark.parametrize("compute", [
    lambda x: torch.sparse.softmax(x, 0), lambda x: torch.sparse.softmax(x, 1), lambda x: torch.sparse.log_softmax(x, 0),
    lambda x: torch.sparse.log_softmax(x, 1), lambda x: torch.sparse.sum(x, 0), lambda x: torch.sparse.sum(x, [0, 1]), lambda x: torch.sparse.sum(x)],
    ids="softmax_0 softmax_1 log_softmax_0 log_softmax_1 sum_0 sum_01 sum".split())
@pytest.mark.parametrize("dense", [(), (2,)], ids=["numbers", "vectors"])
def test_gradients_along_an_axis(compute, dense):
    grads = []
    for device in ("mps", "cpu"):
        values = torch.linspace(-1, 2, 5 * (dense or (1,))[0]).reshape(5, *dense).to(device).requires_grad_()
        x = torch.sparse_coo_tensor(torch.tensor([[0, 0, 2, 3, 3], [1, 2, 0, 0, 3]], device=device), values, (4, 4, *dense))
        y = compute(x)
        y = y.to_dense() if y.layout != torch.strided else y
        (y * torch.arange(y.numel(), device=device).reshape(y.shape).cos()).sum().backward()
        grads.append(values.grad.cpu())
    torch.testing.assert_close(*grads)


def test_gradients():
    grads = []
    for device in ("mps", "cpu"):
        values = torch.tensor([1.0, 2, 3], device=device, requires_grad=True)
        other = OTHER.clone().to(device).requires_grad_()
        x = torch.sparse_coo_tensor(torch.tensor([[0, 1, 3], [1, 2, 0]], device=device), values, (4, 4))
        (torch.sparse.mm(x, other) * OTHER.to(device)).sum().backward()
        grads.append([values.grad.cpu(), other.grad.cpu()])
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("optimizer", [lambda p: torch.optim.SGD(p, lr=0.1), lambda p: torch.optim.SparseAdam(p, lr=0.1),
                                       lambda p: torch.optim.Adagrad(p, lr=0.1)], ids=["sgd", "sparse_adam", "adagrad"])
def test_embeddings_with_sparse_gradients(optimizer):
    found = []
    for device in ("mps", "cpu"):
        layer = torch.nn.Embedding(10, 3, sparse=True)
        with torch.no_grad():
            layer.weight.copy_(torch.arange(30.0).reshape(10, 3) / 10)
        layer.to(device)
        step = optimizer(layer.parameters())
        for _ in range(3):
            step.zero_grad()
            layer(torch.tensor([1, 7, 1], device=device)).square().sum().backward()
            assert layer.weight.grad.layout == torch.sparse_coo
            step.step()
        found.append(layer.weight.detach().cpu())
    torch.testing.assert_close(*found)


def test_compressed_layouts_are_refused():
    """PyTorch has a list of devices for them."""
    with pytest.raises(NotImplementedError):
        DENSE.to("mps").to_sparse_csr()
    with pytest.raises(NotImplementedError):
        torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), (1, 1), device="mps")
