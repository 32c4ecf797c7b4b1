# SPDX-License-Identifier: Apache-2.0
"""The documented interface of the device: PyTorch's MPS notes, torch.mps, torch.backends.mps and torch.accelerator."""
import gc

import pytest
import torch
from torch import nn

from tests.doors.torch.alone import run_alone


@pytest.fixture(autouse=True)
def default_seed():
    torch.manual_seed(0)


def test_the_notes(capsys):
    """The program of the notes: check that the device is there, make tensors on it, compute, move a model to it."""
    if not torch.backends.mps.is_available():
        if not torch.backends.mps.is_built():
            print("MPS not available because the current PyTorch install was not built with MPS enabled.")
        else:
            print("MPS not available because the current macOS version is not 15.0+ "
                  "and/or you do not have an MPS-enabled device on this machine.")
    else:
        mps_device = torch.device("mps")

        x = torch.ones(5, device=mps_device)
        x = torch.ones(5, device="mps")

        y = x * 2

        class YourFavoriteNet(nn.Sequential):
            def __init__(self):
                super().__init__(nn.Linear(5, 3), nn.ReLU(), nn.Linear(3, 2))

        model = YourFavoriteNet()
        model.to(mps_device)

        pred = model(x)
        assert y.tolist() == [2.0] * 5 and pred.device.type == "mps" and pred.shape == (2,)
        torch.testing.assert_close(pred.cpu(), model.cpu()(x.cpu()))
    assert capsys.readouterr().out == ""


def test_available_and_built():
    assert torch.backends.mps.is_built() is True
    assert torch.backends.mps.is_available() is True
    assert torch.mps.is_available() and torch.mps.device_count() == 1
    assert isinstance(torch.backends.mps.get_name(), str) and torch.backends.mps.get_name()
    assert torch.backends.mps.get_core_count() >= 1
    assert torch.backends.mps.is_macos13_or_newer() is True


def test_printing():
    assert repr(torch.ones(2, device="mps")) == "tensor([1., 1.], device='mps:0')"
    assert str(torch.arange(3, device="mps")) == "tensor([0, 1, 2], device='mps:0')"
    assert torch.device("mps").type == "mps" and torch.ones(1, device="mps").device == torch.device("mps:0")
    assert torch.ones(1, device="mps").is_mps and not torch.ones(1).is_mps


def test_factories_and_moves():
    x = torch.arange(6.0).reshape(2, 3)
    for made in (x.to("mps"), x.mps() if hasattr(x, "mps") else x.to("mps"), torch.tensor(x.tolist(), device="mps")):
        assert made.is_mps and torch.equal(made.cpu(), x)
    assert x.to("mps").to("cpu", torch.float16).dtype == torch.float16
    assert x.to("mps").numpy(force=True).tolist() == x.tolist()
    with pytest.raises(TypeError, match="mps"):
        x.to("mps").numpy()
    with torch.device("mps"):
        assert torch.zeros(2).is_mps and nn.Linear(2, 2).weight.is_mps


def test_default_device():
    torch.set_default_device("mps")
    try:
        assert torch.ones(2).is_mps and torch.get_default_device().type == "mps"
    finally:
        torch.set_default_device(None)


def test_devices_do_not_mix():
    with pytest.raises(RuntimeError, match="device"):
        torch.ones(2, device="mps") + torch.ones(2)
    assert (torch.ones(2, device="mps") + torch.tensor(1.0)).tolist() == [2.0, 2.0]  # a number on the CPU may


def test_seeds():
    torch.mps.manual_seed(5)
    first = torch.rand(4, device="mps").tolist()
    assert first != torch.rand(4, device="mps").tolist()
    torch.mps.manual_seed(5)
    assert torch.rand(4, device="mps").tolist() == first
    torch.manual_seed(5)
    assert torch.rand(4, device="mps").tolist() == first
    torch.mps.seed()
    assert torch.rand(4, device="mps").tolist() != first


def test_rng_state():
    torch.rand(3, device="mps")
    state = torch.mps.get_rng_state()
    assert state.dtype == torch.uint8 and state.device.type == "cpu"
    first = torch.randn(5, device="mps").tolist()
    torch.mps.set_rng_state(state)
    assert torch.randn(5, device="mps").tolist() == first
    torch.mps.set_rng_state(state)
    torch.rand(1, device="mps")
    assert torch.randn(5, device="mps").tolist() != first


def test_generators():
    one, other = (torch.Generator(device="mps").manual_seed(3) for _ in range(2))
    assert one.device.type == "mps" and one.initial_seed() == 3
    first = torch.rand(4, device="mps", generator=one).tolist()
    assert torch.rand(4, device="mps", generator=other).tolist() == first
    state = one.get_state()
    again = torch.rand(4, device="mps", generator=one).tolist()
    assert again != first
    one.set_state(state)
    assert torch.rand(4, device="mps", generator=one).tolist() == again
    with torch.random.fork_rng(device_type="mps"):
        torch.rand(7, device="mps")


@pytest.mark.parametrize("draw, mean, std", [
    (lambda: torch.rand(40000, device="mps"), 0.5, 12**-0.5), (lambda: torch.randn(40000, device="mps"), 0, 1),
    (lambda: torch.empty(40000, device="mps").normal_(3, 2), 3, 2), (lambda: torch.empty(40000, device="mps").uniform_(-1, 3), 1, 4 / 12**0.5),
    (lambda: torch.empty(40000, device="mps").exponential_(2), 0.5, 0.5), (lambda: torch.empty(40000, device="mps").bernoulli_(0.3), 0.3, 0.21**0.5),
    (lambda: torch.randint(0, 10, (40000,), device="mps").float(), 4.5, 8.25**0.5),
    (lambda: torch.dropout(torch.ones(40000, device="mps"), 0.25, True), 1, (1 / 3)**0.5),
    (lambda: torch.randperm(40000, device="mps").float() / 40000, 0.5, 12**-0.5)],
    ids="rand randn normal uniform exponential bernoulli randint dropout randperm".split())
def test_distributions(draw, mean, std):
    """Mean and spread of many numbers, and no two neighbours related: within five standard errors."""
    x = draw().cpu().double()
    assert x.mean().item() == pytest.approx(mean, abs=5 * std / 200)
    assert x.std().item() == pytest.approx(std, rel=0.05)
    y = (x - x.mean()) / x.std()
    assert abs((y[1:] * y[:-1]).mean().item()) < 5 / 200


def test_memory():
    torch.mps.empty_cache()
    gc.collect()  # what earlier tests left in cycles would otherwise go in between
    before, held = torch.mps.current_allocated_memory(), torch.mps.driver_allocated_memory()
    x = torch.ones(1 << 20, device="mps")
    torch.mps.synchronize()
    assert 1 << 22 <= torch.mps.current_allocated_memory() - before <= 1 << 23
    assert torch.mps.driver_allocated_memory() >= torch.mps.current_allocated_memory()
    del x
    assert torch.mps.current_allocated_memory() == before
    torch.mps.empty_cache()
    assert torch.mps.driver_allocated_memory() <= held
    assert torch.mps.recommended_max_memory() > 1 << 28


def test_memory_fraction_arguments():
    torch.mps.set_per_process_memory_fraction(0.9)
    torch.mps.set_per_process_memory_fraction(0.0)  # no limit
    for wrong in (1, "0.5"):
        with pytest.raises(TypeError):
            torch.mps.set_per_process_memory_fraction(wrong)
    for wrong in (-0.1, 2.1):
        with pytest.raises(ValueError):
            torch.mps.set_per_process_memory_fraction(wrong)


def test_events():
    start, end = torch.mps.event.Event(enable_timing=True), torch.mps.Event(enable_timing=True)
    a = torch.randn(200, 200, device="mps")
    start.record()
    for _ in range(10):
        a = a @ a / a.norm()
    end.record()
    end.synchronize()
    assert end.query() and 0 < start.elapsed_time(end) < 60000
    end.wait()
    torch.mps.synchronize()
    untimed = torch.mps.Event()
    untimed.record()
    with pytest.raises(RuntimeError, match="timing"):
        untimed.elapsed_time(end)


def test_streams():
    assert torch.mps.current_stream() == torch.mps.default_stream()
    assert "stream_id=0" in repr(torch.mps.current_stream())
    with torch.mps.stream(torch.mps.default_stream()):
        x = torch.ones(3, device="mps") * 2
    torch.mps.current_stream().synchronize()
    assert x.tolist() == [2.0] * 3


def test_profiler():
    torch.mps.profiler.start(mode="interval", wait_until_completed=False)
    torch.ones(3, device="mps").add(1)
    torch.mps.profiler.stop()
    with torch.mps.profiler.profile(mode="interval,event", wait_until_completed=True):
        torch.ones(3, device="mps").add(1)
    with pytest.raises((RuntimeError, ValueError)):
        torch.mps.profiler.start(mode="nonsense")
    assert torch.mps.profiler.is_capturing_metal() is False


def test_metal_capture(tmp_path):
    """Where it is not enabled it says so; nothing is left half begun."""
    assert torch.mps.profiler.is_metal_capture_enabled() is False
    with pytest.raises(RuntimeError, match="capture"):
        with torch.mps.profiler.metal_capture(str(tmp_path / "trace")):
            torch.ones(3, device="mps").add(1)
    assert torch.mps.profiler.is_capturing_metal() is False
    assert torch.ones(3, device="mps").sum().item() == 3


def test_torch_profiler():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        torch.ones(3, device="mps").add(1)
    assert any(event.key == "aten::add" for event in profile.key_averages())


def test_accelerator():
    assert torch.accelerator.is_available() and torch.accelerator.device_count() == 1
    assert torch.accelerator.current_accelerator() == torch.device("mps")
    assert torch.accelerator.current_device_index() == 0
    torch.accelerator.set_device_index(0)
    with torch.accelerator.device_index(0):
        x = torch.ones(1 << 18, device=torch.accelerator.current_accelerator())
    torch.accelerator.synchronize()
    stream = torch.accelerator.current_stream()
    assert stream.device.type == "mps"
    torch.accelerator.set_stream(stream)
    assert torch.accelerator.memory_allocated() >= x.nbytes
    assert torch.accelerator.max_memory_allocated() >= torch.accelerator.memory_allocated()
    assert torch.accelerator.memory_reserved() >= torch.accelerator.memory_allocated()
    free, total = torch.accelerator.get_memory_info()
    assert 0 < free <= total
    peak = torch.accelerator.max_memory_allocated()
    del x
    torch.accelerator.reset_peak_memory_stats()
    assert torch.accelerator.max_memory_allocated() < peak
    torch.accelerator.empty_cache()
    capability = torch.accelerator.get_device_capability()
    assert torch.float32 in capability["supported_dtypes"]


def test_compile_shader():
    """The example of its reference."""
    lib = torch.mps.compile_shader(
        "kernel void full(device float* out, constant float& val, uint idx [[thread_position_in_grid]]) { out[idx] = val; }"
    )
    x = torch.zeros(16, device="mps")
    lib.full(x, 3.14)
    assert x.tolist() == pytest.approx([3.14] * 16)
    with pytest.raises(SyntaxError):
        torch.mps.compile_shader("no shader")


def test_metallib():
    with pytest.raises(RuntimeError, match="compile_shader"):
        torch.mps.load_metallib(b"MTLB")
    with pytest.raises(RuntimeError, match="compile_shader"):
        torch.mps.load_metallib("kernels.metallib")


def test_host_alias():
    x = torch.arange(4.0, device="mps")
    alias = torch.mps._host_alias_storage(x.untyped_storage())
    assert alias.device.type == "cpu" and alias.nbytes() == 16
    torch.empty(0).set_(alias, 0, (4,)).mul_(2)
    assert x.tolist() == [0, 2, 4, 6]
    del x
    assert torch.empty(0).set_(alias, 0, (4,)).tolist() == [0, 2, 4, 6]


def test_all_of_the_reference_is_there():
    for module in (torch.mps, torch.mps.profiler, torch.backends.mps, torch.accelerator):
        assert all(callable(getattr(module, name)) or name in ("profiler", "random") for name in module.__all__)


@pytest.mark.parametrize("name, value", [("PYTORCH_MPS_LOW_WATERMARK_RATIO", "0.5"), ("PYTORCH_MPS_HIGH_WATERMARK_RATIO", "0.8"),
    ("PYTORCH_MPS_PREFER_METAL", "1"), ("PYTORCH_MPS_FAST_MATH", "1"), ("PYTORCH_MPS_TRACE_SIGNPOSTS", "3"),
    ("PYTORCH_DEBUG_MPS_ALLOCATOR", "1"), ("PYTORCH_MPS_LOG_PROFILE_INFO", "1")])
def test_variables_are_harmless(name, value):
    """Those of upstream's list that mean little here."""
    assert run_alone("import torch; print((torch.ones(2, 2, device='mps') @ torch.ones(2, 2, device='mps')).sum().item())", **{name: value}) == "8.0"


def test_fast_math_is_for_shaders():
    program = '''
        import torch
        lib = torch.mps.compile_shader("kernel void f(device float* out, constant float& a, uint i [[thread_position_in_grid]]) { out[i] = (a + 1e8f) - 1e8f; }")
        x = torch.zeros(1, device="mps")
        lib.f(x, 3.0)
        print(x.item())
    '''
    assert run_alone(program) == "0.0"
    assert run_alone(program, PYTORCH_MPS_FAST_MATH="1") == "3.0"


def test_missing_ops_say_so():
    """Without the fallback an op that is missing is an error that names it; with it there is a warning and a result."""
    program = """
        import warnings, torch
        library = torch.library.Library("anymps_test", "DEF")
        library.define("missing(Tensor x) -> Tensor")
        library.impl("missing", lambda x: x + 1, "CPU")
        x = torch.ones(2, device="mps")
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                print(torch.ops.anymps_test.missing(x).tolist())
            except NotImplementedError as error:
                print("anymps_test::missing" in str(error) and "MPS" in str(error))
        print(sum("fall back" in str(w.message) for w in seen))
    """
    assert run_alone(program, PYTORCH_ENABLE_MPS_FALLBACK="0").split("\n") == ["True", "0"]
    assert run_alone(program, PYTORCH_ENABLE_MPS_FALLBACK="1").split("\n") == ["[2.0, 2.0]", "1"]
