# SPDX-License-Identifier: Apache-2.0
"""Tensors and models on 'mps' are saved, loaded, copied and pickled like others, also to and from programs without the device."""
import copy
import io
import pickle

import pytest
import torch

from tests.doors.torch.alone import run_alone


def saved(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


@pytest.mark.parametrize("source, map_location, target", [
    ("mps", None, "mps"), ("mps", "cpu", "cpu"), ("cpu", "mps", "mps"), ("cpu", torch.device("mps:0"), "mps"),
    ("mps", {"mps": "cpu"}, "cpu"), ("mps", lambda storage, location: storage, "cpu")])
@pytest.mark.parametrize("weights_only", [True, False])
def test_save_and_load(source, map_location, target, weights_only):
    x = torch.arange(6.0, device=source).reshape(2, 3)
    back = torch.load(saved({"x": x, "view": x[1]}), map_location=map_location, weights_only=weights_only)
    assert back["x"].device.type == target and back["x"].tolist() == x.tolist()
    back["view"].fill_(9)
    assert back["x"].tolist() == [[0, 1, 2], [9, 9, 9]], "a view shares its storage still"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64, torch.bool, torch.complex64, torch.uint8])
def test_save_dtypes(dtype):
    x = torch.arange(5).to(dtype).to("mps")
    assert torch.equal(torch.load(saved(x)).cpu(), x.cpu())


def test_a_file_from_here_elsewhere(tmp_path):
    """A checkpoint of an mps model loads in a program without this device, and the other way round."""
    model = torch.nn.Linear(3, 2).to("mps")
    torch.save(model.state_dict(), tmp_path / "here.pt")
    run_alone(f"""
        import torch
        assert not torch.backends.mps.is_available()
        state = torch.load({str(tmp_path / 'here.pt')!r}, map_location="cpu")
        torch.nn.Linear(3, 2).load_state_dict(state)
        torch.save({{k: v + 1 for k, v in state.items()}}, {str(tmp_path / 'there.pt')!r})
    """, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    before = model.weight.detach().cpu().clone()
    model.load_state_dict(torch.load(tmp_path / "there.pt"))
    assert model.weight.is_mps and torch.equal(model.weight.detach().cpu(), before + 1)


def test_optimizer_state():
    def made():
        model = torch.nn.Linear(3, 2).to("mps")
        return model, torch.optim.AdamW(model.parameters(), lr=0.1)
    model, step = made()
    model(torch.ones(1, 3, device="mps")).sum().backward()
    step.step()
    other, again = made()
    other.load_state_dict(model.state_dict())
    again.load_state_dict(torch.load(saved(step.state_dict())))
    for m, s in ((model, step), (other, again)):
        m.zero_grad()
        m(torch.ones(1, 3, device="mps")).sum().backward()
        s.step()
    assert torch.equal(model.weight.cpu(), other.weight.cpu())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["deepcopy", "pickle"])
def test_copies(copied):
    x = torch.arange(6.0, device="mps").reshape(2, 3).t()
    y = copied(x)
    y += 1
    assert y.is_mps and y.stride() == x.stride() and torch.equal(y.cpu(), x.cpu() + 1)
    model = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3)).to("mps")
    twin = copied(model)
    assert all(p.is_mps for p in twin.parameters())
    assert all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(model.state_dict().values(), twin.state_dict().values()))


def test_storages():
    x = torch.arange(4.0, device="mps")
    storage = x.untyped_storage()
    assert storage.device.type == "mps" and storage.nbytes() == 16
    assert torch.empty(0, device="mps").set_(storage.clone(), 0, (4,)).tolist() == [0, 1, 2, 3]
    storage.resize_(32)
    assert storage.nbytes() == 32 and x.tolist() == [0, 1, 2, 3]
    made = torch.UntypedStorage(8, device="mps")
    assert made.device.type == "mps" and made.nbytes() == 8
    assert storage.cpu().device.type == "cpu"
