# SPDX-License-Identifier: Apache-2.0
"""Two processes of torch.distributed over gloo: collectives of tensors of 'mps' give what those of the CPU give, and a model that is
trained by both has the same weights."""
from tests.doors.torch.alone import run_alone

PROGRAM = """
    import os, sys, tempfile, torch, torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel
    place = "file://" + tempfile.mktemp()
    def summed(t): dist.all_reduce(t); return t
    def summed_later(t):
        work = dist.all_reduce(t, async_op=True)
        work.wait()
        return t
    def told(t): dist.broadcast(t, 1); return t
    def gathered(t): l = [torch.zeros_like(t) for _ in range(2)]; dist.all_gather(l, t); return torch.stack(l)
    def gathered_into(t): y = torch.zeros(8, device=t.device); dist.all_gather_into_tensor(y, t); return y
    def scattered(t): y = torch.zeros(2, device=t.device); dist.reduce_scatter_tensor(y, t); return y
    def exchanged(t): y = torch.zeros_like(t); dist.all_to_all_single(y, t); return y
    def sent(t): dist.send(t * 2, 1) if dist.get_rank() == 0 else dist.recv(t, 0); return t
    def largest(t): dist.all_reduce(t[::1], op=dist.ReduceOp.MAX); return t
    def trained(t):
        torch.manual_seed(0)
        model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)).to(t.device))
        step = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(3):
            torch.manual_seed(10 * dist.get_rank() + i)
            step.zero_grad()
            model(torch.randn(5, 4).to(t.device)).square().mean().backward()
            step.step()
        return torch.cat([p.detach().flatten() for p in model.parameters()])
    def work(rank):
        dist.init_process_group("gloo", init_method=place, rank=rank, world_size=2)
        for program in (summed, summed_later, told, gathered, gathered_into, scattered, exchanged, sent, largest, trained):
            ours, theirs = (program((torch.arange(4.0) + rank).to(device)) for device in ("mps", "cpu"))
            assert ours.device.type == "mps", program.__name__
            torch.testing.assert_close(ours.cpu(), theirs, msg=lambda text: program.__name__ + ": " + text)
        dist.destroy_process_group()
    children = []
    for rank in range(2):
        child = os.fork()
        if child == 0:
            try:
                work(rank)
            except BaseException as error:
                print(type(error).__name__, error, file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
"""


def test_two_processes():
    run_alone(PROGRAM, timeout=120)
