# SPDX-License-Identifier: Apache-2.0
"""DLPack with PyTorch itself. Where this Python has no torch, but the environment `executorch` has, the tests run
there; without either they are skipped."""
import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

import anymps

try:
    import torch
except ImportError:
    torch = None

ROOT = Path(__file__).resolve().parents[3]
OTHER = Path(os.environ.get("ANYMPS_VENV_DIR", ROOT / ".venvs")) / "executorch" / "bin" / "python"
needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")

# That environment has no pytest: this one's is used, after what is installed there.
RUNNER = "import sys; sys.path.append(sys.argv[1]); import pytest; sys.exit(pytest.main(sys.argv[2:]))"


@pytest.mark.skipif(torch is not None, reason="the tests below run here")
@pytest.mark.skipif(not OTHER.exists(), reason="no environment with torch")
def test_in_the_environment_that_has_torch():
    site = Path(pytest.__file__).resolve().parents[1]
    done = subprocess.run([str(OTHER), "-c", RUNNER, str(site), __file__, "-q", "-p", "no:cacheprovider"], cwd=ROOT,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "build" / "python")}, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout[-4000:] + done.stderr[-4000:]


def add_one():
    graph = anymps.Graph()
    graph.outputs(graph.input("x", "f32", ("N", "M")) + 1)
    return anymps.compile(graph)


DTYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "float64": "f64", "int8": "i8", "int16": "i16", "int32": "i32",
          "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "bool", "complex64": "c64",
          "complex128": "c128",
          "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2"}


@needs_torch
@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_both_ways_without_copies(name):
    dtype = getattr(torch, name)
    source = torch.arange(6).reshape(2, 3).to(dtype)
    tensor = anymps.from_dlpack(source)
    assert tensor.dtype == DTYPES[name] == anymps.dtype_name(dtype) and tensor.shape == (2, 3)
    back = torch.from_dlpack(tensor)
    assert back.dtype == dtype and back.data_ptr() == source.data_ptr()
    assert torch.equal(back.view(torch.uint8), source.view(torch.uint8))
    if name in ("float32", "bfloat16", "int64"):
        back[1, 2] = 77
        assert source[1, 2] == 77


STRIDED = {
    "transposed": lambda: torch.arange(6.0).reshape(2, 3).T,
    "steps": lambda: torch.arange(24.0).reshape(4, 6)[::2, 1::2],
    "expanded": lambda: torch.arange(3.0).expand(4, 3),
    "offset": lambda: torch.arange(24.0).reshape(4, 6)[1:3, 2:5],
    "permuted": lambda: torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1),
    "channels last": lambda: torch.arange(48.0).reshape(1, 3, 4, 4).contiguous(memory_format=torch.channels_last),
    "scalar": lambda: torch.tensor(3.5),
    "empty": lambda: torch.empty(0, 3),
}


@needs_torch
@pytest.mark.parametrize("case", STRIDED)
def test_strides(case):
    source = STRIDED[case]()
    tensor = anymps.from_dlpack(source)
    assert tensor.shape == tuple(source.shape)
    np.testing.assert_array_equal(tensor.numpy(), source.numpy())
    back = torch.from_dlpack(tensor)
    assert torch.equal(back, source)
    if source.numel():
        assert back.data_ptr() == source.data_ptr()
    if source.numel() > 1:
        assert back.stride() == source.stride()


@needs_torch
@pytest.mark.parametrize("case", [case for case in STRIDED if case not in ("permuted", "channels last", "scalar")])
def test_a_model_takes_tensors_and_gives_tensors(case):
    source = STRIDED[case]()
    result = add_one()(source)
    assert type(result) is torch.Tensor and torch.equal(result, source + 1)


@needs_torch
def test_a_models_results_are_not_copied():
    model = add_one()
    target = torch.zeros(2, 3)
    source = torch.arange(6.0).reshape(2, 3)
    result, = model.run([source], results=[target])
    assert torch.equal(target, source + 1)
    assert torch.from_dlpack(result).data_ptr() == target.data_ptr()


@needs_torch
def test_tensors_with_gradients():
    model = add_one()
    leaf = torch.arange(6.0).reshape(2, 3).requires_grad_()
    parameter = torch.nn.Parameter(torch.ones(2, 3))
    for tensor in (leaf, leaf * 2, parameter):
        result = model(tensor)
        assert not result.requires_grad and torch.equal(result, tensor.detach() + 1)
        assert anymps.tensor(tensor).numpy().ctypes.data == tensor.data_ptr()
    with pytest.raises(BufferError, match="gradient"):
        anymps.from_dlpack(leaf)  # nobody said that the gradient may be dropped
    leaf.sum().backward()
    assert torch.equal(leaf.grad, torch.ones(2, 3))


@needs_torch
def test_kinds_of_torch_tensors():
    class Special(torch.Tensor):
        pass
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(torch.as_tensor(add_one()(x.as_subclass(Special))), x + 1)
    assert isinstance(add_one()(x.as_subclass(Special)), torch.Tensor)
    bf16 = anymps.Graph()
    bf16.outputs(bf16.input("x", torch.bfloat16, (3,)) * 2)
    result = anymps.compile(bf16)(torch.tensor([1, 2, 3], dtype=torch.bfloat16))
    assert result.dtype == torch.bfloat16 and result.tolist() == [2, 4, 6]


@needs_torch
@pytest.mark.parametrize("make", [
    lambda: torch.tensor([1 + 2j]).conj(),
    lambda: torch.sparse_coo_tensor([[0]], [1.0], (3,), check_invariants=True),
    lambda: torch.empty(3, device="meta"),
    lambda: torch.zeros(1, dtype=torch.complex32),
], ids=["conj", "sparse", "meta", "complex32"])
def test_what_cannot_be_shared_is_an_exception(make):
    with pytest.raises((BufferError, RuntimeError, ValueError, TypeError)):
        anymps.from_dlpack(make())


@needs_torch
def test_dtypes_that_do_not_fit_are_named():
    with pytest.raises(anymps.InvalidArgument, match="input 'x' must be f32"):
        add_one()(torch.ones(2, 3, dtype=torch.float64))


@needs_torch
def test_memory_lives_as_long_as_somebody_uses_it():
    memory = np.arange(6, dtype=np.float32)
    alive = weakref.ref(memory)
    tensor = anymps.from_dlpack(torch.from_numpy(memory))
    del memory
    gc.collect()
    assert alive() is not None
    back = torch.from_dlpack(tensor)
    del tensor
    gc.collect()
    assert alive() is not None and back.tolist() == [0, 1, 2, 3, 4, 5]
    view = back[2:]
    del back
    gc.collect()
    assert alive() is not None and view.tolist() == [2, 3, 4, 5]
    del view
    gc.collect()
    assert alive() is None


@needs_torch
def test_a_result_outlives_its_model():
    results = [add_one()(torch.full((64, 64), float(i))) for i in range(20)]
    gc.collect()
    anymps.device().clear_caches()
    anymps.empty_cache()
    for i, result in enumerate(results):
        assert (result == i + 1).all()


@needs_torch
def test_memory_is_kept_while_a_stream_uses_it():
    model = add_one()
    with anymps.stream() as stream:
        results = [model.submit(torch.full((64, 64), float(i)), stream=stream)[0] for i in range(20)]
    for i, result in enumerate(results):
        assert (torch.from_dlpack(result) == i + 1).all()


@needs_torch
def test_threads():
    from concurrent.futures import ThreadPoolExecutor
    model = add_one()

    def work(i):
        return (model(torch.full((8, 8), float(i))) == i + 1).all().item()
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(200)))
