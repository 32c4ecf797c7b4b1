# SPDX-License-Identifier: Apache-2.0
"""One of the processes that test_distributed.py starts: collectives of tensors on the device, and a training step."""

import numpy as np
import paddle
import paddle.distributed as dist

dist.init_parallel_env()  # with gloo Paddle makes the CPU the current device
paddle.set_device("mps")
rank, size = dist.get_rank(), dist.get_world_size()


def array(of, dtype="float32"):
    return (np.arange(6).reshape(2, 3) * (of + 1) + of).astype(dtype)


def tensor(of, dtype="float32"):
    return paddle.to_tensor(array(of, dtype))


def check(name, got, expected):
    assert "mps" in str(got.place), f"{name}: {got.place}"
    np.testing.assert_array_equal(got.numpy(), expected, err_msg=name)


OPS = {dist.ReduceOp.SUM: np.sum, dist.ReduceOp.MAX: np.max, dist.ReduceOp.MIN: np.min, dist.ReduceOp.PROD: np.prod}
for dtype in ("float32", "float64", "int32", "int64"):
    for op, function in OPS.items():
        x = tensor(rank, dtype)
        dist.all_reduce(x, op=op)
        check(f"all_reduce {op} {dtype}", x, function([array(of, dtype) for of in range(size)], axis=0))
x = tensor(rank)
dist.reduce(x, dst=0)
if rank == 0:
    check("reduce", x, sum(array(of) for of in range(size)))
gathered = []
dist.all_gather(gathered, tensor(rank))
for of in range(size):
    check("all_gather", gathered[of], array(of))
x = paddle.zeros([2, 3])
dist.scatter(x, [tensor(5), tensor(6)] if rank == 0 else None, src=0)
check("scatter", x, array(5 + rank))
if rank == 0:
    dist.send(tensor(8), dst=1)
else:
    x = paddle.zeros([2, 3])
    dist.recv(x, src=0)
    check("recv", x, array(8))
for dtype in ("float32", "float16", "int64", "bool"):
    x = tensor(rank, dtype)
    dist.broadcast(x, src=1)
    check(f"broadcast {dtype}", x, array(1, dtype))
x = paddle.zeros([3, 2]).t()  # strided
x[:] = tensor(rank)
dist.broadcast(x, src=0, sync_op=False).wait()
check("broadcast of a view", x, array(0))

paddle.seed(0)
net = paddle.nn.Linear(3, 2)
optimizer = paddle.optimizer.SGD(0.1, parameters=net.parameters())
net(tensor(rank)).sum().backward()
for parameter in net.parameters():
    dist.all_reduce(parameter.grad)
    parameter.grad.set_value(parameter.grad / size)
mean = np.mean([array(of).sum(0) for of in range(size)], axis=0)
np.testing.assert_allclose(net.weight.grad.numpy(), np.stack([mean, mean], axis=1), rtol=1e-6)
optimizer.step()
everywhere = []
dist.all_gather(everywhere, net.weight)
for weight in everywhere:
    check("the weights after a step", weight, net.weight.numpy())

# The same by DataParallel, from weights that differ: those of the first process go everywhere.
paddle.seed(rank)
layers = [paddle.nn.Linear(3, 4), paddle.nn.BatchNorm1D(4), paddle.nn.ReLU(), paddle.nn.Linear(4, 2)]
net = paddle.DataParallel(paddle.nn.Sequential(*layers))
optimizer = paddle.optimizer.AdamW(0.1, parameters=net.parameters())
start = net.state_dict()["0.weight"].numpy()
random = np.random.default_rng(rank)
for _ in range(3):
    (net(paddle.to_tensor(random.standard_normal((8, 3)).astype("float32"))) ** 2).mean().backward()
    optimizer.step()
    optimizer.clear_grad()
assert not np.array_equal(start, net.state_dict()["0.weight"].numpy())
for parameter in net.parameters():
    if parameter.stop_gradient:
        continue  # averages of a process's own
    everywhere = []
    dist.all_gather(everywhere, parameter)
    for of in everywhere:
        check(f"{parameter.name} after steps of DataParallel", of, parameter.numpy())
dist.barrier()
print("done")
