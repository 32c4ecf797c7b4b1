# SPDX-License-Identifier: Apache-2.0
"""What must end in a Python error or in nothing, never in an abort, a hang or a leak. What could runs in a process of its own."""
import threading

import pytest
import torch

from tests.doors.torch.alone import run_alone


def test_many_shapes_leave_memory_flat():
    program = """
        import gc, random, torch
        def resident():
            gc.collect(); torch.mps.synchronize(); torch.mps.empty_cache()
            return int(open("/proc/self/statm").read().split()[1]) * 4096
        def work(seed):
            pick = random.Random(seed)
            a, b, c = (pick.randint(1, 160) for _ in range(3))
            x = torch.randn(a, b, device="mps", requires_grad=True)
            y = (torch.randn(c, a, device="mps") @ x).relu().softmax(-1).sum(0) * 2 + 1
            y.mean().backward()
            torch.nn.functional.layer_norm(x.detach().t(), (a,)).add_(x.grad.t()).sum().item()
        for seed in range(500): work(seed)  # what is kept of shapes is bounded: first it fills
        allocated, before = torch.mps.current_allocated_memory(), resident()
        for seed in range(1000, 2000): work(seed)
        assert torch.mps.current_allocated_memory() <= allocated + 2**16, "tensors are kept"
        grown = resident() - before
        assert grown < 24 * 2**20, f"{grown / 2**20:.1f} MiB more after 1,000 shapes"
        assert torch.mps.driver_allocated_memory() < 64 * 2**20
    """
    run_alone(program, timeout=400)


SHARED = """
    import os, signal, sys, threading, torch
    signal.alarm(100)
    a = torch.randn(300, 300)
    product = a @ a
    def works():
        x = a.to("mps")
        good = torch.allclose((x @ x).cpu(), product, atol=1e-3) and torch.equal((x * 2 + 1).cpu(), a * 2 + 1)
        large = torch.ones(1 << 22, device="mps")
        return good and bool(((large + large) == 2).all())
    def in_child(work):
        child = os.fork()
        if child == 0:
            signal.alarm(40)
            try:
                good = work()
            except BaseException as error:
                print("in the child:", type(error), error, file=sys.stderr, flush=True)
                good = False
            os._exit(0 if good else 1)
        assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.parametrize("threads", ["1", "4"])
def test_fork(threads):
    """A child computes, whether its parent has or not, also with and without the parent's tensors. Torch itself has one thread
    here: its own kernels hang in a child whose parent had more."""
    run_alone(SHARED + """
    in_child(works)
    assert works()
    kept = a.to("mps")
    in_child(works)
    in_child(lambda: torch.equal((kept + 1).cpu(), a + 1))
    def frees():
        global kept
        del kept
        return works()
    in_child(frees)
    in_child(lambda: in_child(works) is None)
    assert works() and torch.equal(kept.cpu(), a)
    """, ANYMPS_NUM_THREADS=threads, OMP_NUM_THREADS="1")


def test_seed_in_a_child():
    """torch.manual_seed reaches the device in a forked process too."""
    run_alone(SHARED + """
    assert torch.backends.mps.is_available()
    def seeded():
        torch.manual_seed(3); first = torch.rand(4, device="mps").tolist()
        torch.manual_seed(4); other = torch.rand(4, device="mps").tolist()
        torch.manual_seed(3)
        return first == torch.rand(4, device="mps").tolist() != other
    assert seeded()
    in_child(seeded)
    """)


DATA = SHARED + """
    from torch.utils.data import DataLoader, Dataset
    class Squares(Dataset):
        def __init__(self, device): self.device = device
        def __len__(self): return 24
        def __getitem__(self, i): return (torch.full((3,), float(i), device=self.device) ** 2).cpu()
    def loads(device, **options):
        loader = DataLoader(Squares(device), batch_size=4, num_workers=2, **options)
        seen = [batch.to("mps", non_blocking=True).sum().item() for _ in range(2) for batch in loader]
        return sum(seen) == 2 * 3 * sum(i * i for i in range(24))
"""


@pytest.mark.parametrize("device", ["cpu", "mps"])
def test_data_loader(device):
    """Workers are forked before and after this process has used the device; they may use it too."""
    run_alone(DATA + f"""
    assert loads("{device}")
    assert works()
    assert loads("{device}") and loads("{device}", persistent_workers=True)
    """)


def test_pinned_memory():
    run_alone(DATA + """
    assert loads("cpu", pin_memory=True)
    pinned = torch.arange(5.0).pin_memory()
    assert pinned.is_pinned() and pinned[2:].is_pinned() and pinned.pin_memory() is pinned and pinned.device.type == "cpu"
    assert pinned.to("mps", non_blocking=True).tolist() == pinned.tolist() == [0, 1, 2, 3, 4]
    assert torch.ones(3, pin_memory=True).is_pinned() and not torch.ones(3).is_pinned() and not pinned.clone().is_pinned()
    assert torch.empty(0).pin_memory().numel() == 0 and pinned.untyped_storage().is_pinned()
    del pinned
    assert not any(torch.ones(5).is_pinned() for _ in range(100))
    """)


QUEUED = """
    import os, sys, threading, torch
    x = torch.randn(1 << 20, device="mps")
    def queue():
        global x
        for _ in range(50): x = x * 1.0001 + 0.5
        return x
"""


@pytest.mark.parametrize("ending", ["queue()", "queue(); sys.exit(0)", "queue(); os._exit(0)", "y = queue(); del x, y",
                                    "t = threading.Thread(target=queue); t.start()",
                                    "sys.modules['kept'] = queue()", "import atexit; atexit.register(queue)"])
def test_exit_with_work_queued(ending):
    run_alone(QUEUED + f"    {ending}\n")


def test_exit_by_an_exception():
    with pytest.raises(AssertionError, match="ended with 1:(.|\n)*ZeroDivisionError"):
        run_alone(QUEUED + "    queue(); 1 / 0\n")


@pytest.mark.parametrize("wrong, error", [
    (lambda x: x + torch.ones(7, device="mps"), RuntimeError), (lambda x: x @ torch.ones(7, 2, device="mps"), RuntimeError),
    (lambda x: x.view(5, 5), RuntimeError), (lambda x: torch.cat([x, torch.ones(1, device="mps")]), RuntimeError),
    (lambda x: x[torch.tensor([9], device="mps")].cpu(), (IndexError, RuntimeError)),
    (lambda x: torch.nn.functional.embedding(torch.tensor([99], device="mps"), x).cpu(), (IndexError, RuntimeError)),
    (lambda x: x.gather(0, torch.full((1, 3), 77, device="mps")).cpu(), RuntimeError),
    (lambda x: torch.nn.functional.conv2d(x, x), RuntimeError), (lambda x: x.softmax(9), IndexError),
    (lambda x: torch.linalg.cholesky(-torch.eye(3, device="mps")).cpu(), torch.linalg.LinAlgError),
    (lambda x: x.to(torch.int32).backward(), RuntimeError), (lambda x: torch.empty(-1, device="mps"), RuntimeError),
    (lambda x: torch.nn.functional.layer_norm(x, (4,)), RuntimeError),
    (lambda x: torch.nn.functional.layer_norm(x, (3,), x[0, :2]), RuntimeError), (lambda x: x.roll(1, 4), IndexError),
    (lambda x: torch.nn.functional.cross_entropy(x, torch.tensor([0, 1, 2, 3], device="mps")), IndexError),
    (lambda x: torch.eye(-1, device=x.device), RuntimeError), (lambda x: torch.eye(2, -1, device=x.device), RuntimeError),
    (lambda x: torch.nn.functional.fractional_max_pool2d(x.reshape(1, 1, 4, 3), 2**63 - 1, output_ratio=(0.5, 0.7)), RuntimeError)],
    ids="broadcast matmul view cat index embedding gather conv axis cholesky integer negative norm norm_weight roll label eye eye_m window".split())
def test_errors_are_exceptions(wrong, error):
    """And the device computes on afterwards."""
    x = torch.arange(12.0, device="mps").reshape(4, 3)
    with pytest.raises(error) as raised:
        wrong(x)
        torch.mps.synchronize()
    assert not isinstance(raised.value, NotImplementedError), raised.value
    assert (x + 1).sum().item() == 78


def test_impossible_sizes():
    for size in ((1 << 62,), (1 << 40, 1 << 40), (1 << 46,)):
        with pytest.raises(RuntimeError):
            torch.empty(size, device="mps")
    assert torch.ones(2, device="mps").sum().item() == 2


LIMITED = """
    import torch
    LIMIT
    limit = torch.mps.recommended_max_memory() // 1000
    kept = []
    try:
        for _ in range(64): kept.append(torch.empty(limit // 16, dtype=torch.uint8, device="mps"))
    except RuntimeError as error:
        assert "out of memory" in str(error), error
        assert isinstance(error, torch.OutOfMemoryError) or "MPS backend out of memory" in str(error), error
    else:
        raise SystemExit("no limit")
    assert 8 <= len(kept) <= 17, len(kept)
    kept.clear()
    torch.mps.empty_cache()
    assert torch.ones(4, device="mps").sum().item() == 4
    kept = [torch.empty(limit // 16, dtype=torch.uint8, device="mps") for _ in range(8)]
"""


def test_memory_limits():
    run_alone(LIMITED.replace("LIMIT", "", 1), PYTORCH_MPS_HIGH_WATERMARK_RATIO="0.001", PYTORCH_MPS_LOW_WATERMARK_RATIO="0.0005")
    run_alone(LIMITED.replace("LIMIT", "torch.mps.set_per_process_memory_fraction(0.001)", 1))


def test_no_memory_limit():
    """A ratio of 0 means none."""
    with pytest.raises(AssertionError, match="no limit"):
        run_alone(LIMITED.replace("LIMIT", "", 1), PYTORCH_MPS_HIGH_WATERMARK_RATIO="0.0")


def test_out_of_memory_in_an_op():
    """Where the system gives no more: an error from inside an op, and the next one computes."""
    run_alone("""
        import resource, torch
        x = torch.ones(1 << 24, device="mps"); (x + x).sum().item()
        used = int(open("/proc/self/statm").read().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 28), resource.RLIM_INFINITY))
        kept = []
        try:
            for _ in range(16): kept.append(x + x)
            torch.mps.synchronize()
        except (RuntimeError, MemoryError) as error:
            assert "memory" in str(error).lower() or isinstance(error, MemoryError), error
        else:
            raise SystemExit("memory for all")
        kept.clear()
        assert (torch.ones(4, device="mps") + 1).tolist() == [2.0] * 4
    """)


def test_tensors_freed_on_other_threads():
    run_alone("""
        import threading, torch
        kept = torch.ones(5000, device="mps")
        before = torch.mps.current_allocated_memory()
        for _ in range(20):
            boxes = [[torch.full((1000,), float(i), device="mps") * 2, torch.zeros(5000, device="mps")] for i in range(8)]
            assert torch.mps.current_allocated_memory() > before
            threads = [threading.Thread(target=box.clear) for box in boxes]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
        torch.mps.synchronize()
        assert torch.mps.current_allocated_memory() == before == kept.nbytes
    """)


def test_memory_of_tensors_is_no_other():
    """What the engine has for itself (here the packed weights of a product) is the driver's, not the tensors'."""
    run_alone("""
        import torch
        layer = torch.nn.Linear(1024, 1024).to("mps")
        x = torch.ones(64, 1024, device="mps")
        with torch.no_grad():
            for _ in range(4):
                y = layer(x)
        held = sum(t.nbytes for t in (layer.weight, layer.bias, x, y))
        torch.mps.synchronize()
        assert held <= torch.mps.current_allocated_memory() <= held + 4096, (held, torch.mps.current_allocated_memory())
        assert torch.mps.driver_allocated_memory() >= torch.mps.current_allocated_memory()
        peak = torch.accelerator.max_memory_allocated()
        del y, x, layer
        assert torch.mps.current_allocated_memory() == 0
        assert torch.accelerator.max_memory_allocated() == peak >= held
        torch.accelerator.reset_peak_memory_stats()
        assert torch.accelerator.max_memory_allocated() == 0
    """)


def test_threads_compute_at_once():
    """Each its own model, with gradients."""
    results, x = {}, torch.randn(32, 16)

    def train(seed):
        model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(torch.linspace(-1, 1, p.numel()).reshape(p.shape) * (seed + 1) / 8)
        for device in ("cpu", "mps"):
            model.to(device)
            values = []
            for _ in range(5):
                model.zero_grad()
                loss = model(x.to(device)).square().mean()
                loss.backward()
                values.append((loss.item(), model[0].weight.grad.abs().sum().item()))
            results[seed, device] = values
    threads = [threading.Thread(target=train, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for seed in range(4):
        for ours, theirs in zip(results[seed, "mps"], results[seed, "cpu"]):
            assert ours == pytest.approx(theirs, rel=1e-4)
