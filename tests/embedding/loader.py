# SPDX-License-Identifier: Apache-2.0
"""Run in a process of its own: a DataLoader of PyTorch whose forked workers run a model that their parent has run before,
with and without a stream, beside torch's own work."""
import anymps
import numpy as np
import torch

WIDTH, ITEMS = 256, 12
WEIGHTS = np.random.default_rng(7).standard_normal((WIDTH, WIDTH), np.float32)


def compiled():
    graph = anymps.Graph()
    x = graph.input("x", "f32", ["N", WIDTH])
    graph.outputs(anymps.ops.relu(anymps.ops.matmul(x, graph.constant(WEIGHTS))))
    return anymps.compile(graph)


MODEL, STREAM = compiled(), anymps.stream()


def item(index):
    return np.full((64, WIDTH), index / ITEMS, np.float32)


def computed(index):
    direct = np.asarray(MODEL(item(index)))
    (queued,) = MODEL.submit(item(index), stream=STREAM)
    STREAM.synchronize()
    assert np.array_equal(direct, np.asarray(queued))
    return torch.from_numpy(direct) + torch.from_numpy(np.asarray(anymps.ops.square(anymps.tensor(item(index)))))


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return ITEMS

    def __getitem__(self, index):
        return computed(index)


expected = [computed(index) for index in range(ITEMS)]
torch.ones(512, 512) @ torch.ones(512, 512)
loader = torch.utils.data.DataLoader(Items(), batch_size=2, num_workers=2, multiprocessing_context="fork", timeout=120)
for _ in range(2):
    loaded = torch.cat(list(loader))
    assert torch.equal(loaded, torch.stack(expected)), "a worker computed something else"
assert torch.equal(computed(3), expected[3])
print("torch", torch.__version__)
