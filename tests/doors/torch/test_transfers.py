# SPDX-License-Identifier: Apache-2.0
"""ANYMPS_TRANSFER=copy: a fallback copies what it hands over, computes the same, and every crossing takes its time."""
import json

import pytest

from tests.doors.torch.alone import run_alone

COPIES = {"ANYMPS_TRANSFER": "copy", "PYTORCH_ENABLE_MPS_FALLBACK": "1", "ANYMPS_TRANSFER_LATENCY_US": "0", "ANYMPS_TRANSFER_GBPS": "0"}
SHARED = {**COPIES, "ANYMPS_TRANSFER": "shared"}
OFF = "add,mul,sub,sort,index_copy,index_copy_,cumsum,cat,native_batch_norm,_foreach_add,_foreach_add_,index,nonzero,conj_physical,t,transpose,sinc"

# Calls on tensors that share memory, are written, grow, or are views of what is handed over. Each is computed on the CPU too.
CASES = '''
import torch
from torch import nn

def cases(device):
    x = torch.arange(24., device="cpu").reshape(4, 6).to(device)
    base = x.clone()
    yield x + x[:1].expand(4, 6)
    yield x.t() * 2
    base[2:].add_(base[:2])                        # two views of one storage, one written
    yield base
    base[:, ::2].mul_(3)                           # with gaps
    yield base
    yield torch.cumsum(x, 1, out=base[:, :].zero_())
    grown = torch.empty(0, device=device)
    torch.add(x, 1, out=grown)                     # grows
    yield grown
    values, places = torch.sort(x, descending=True)
    yield values; yield places
    y = x.clone()
    y.index_copy_(0, torch.tensor([2, 0], device=device), -x[:2])
    yield y
    yield torch.cat([x, x[:1], x[2:]])
    many = [x.clone(), x[0].clone()]
    torch._foreach_add_(many, 1.5)
    yield from many
    yield x[torch.tensor([1, 3], device=device), :, None]
    yield torch.nonzero(x > 5)
    z = torch.complex(x, -x)
    yield torch.sub(z.conj(), z)
    norm = nn.BatchNorm1d(6).to(device)
    yield norm(x)
    yield norm.running_mean; yield norm.running_var
    yield torch.add(torch.zeros(0, 3, device=device), 1)
    yield torch.sinc(torch.tensor(0.25, device=device))
'''


@pytest.mark.parametrize("settings", [COPIES, SHARED], ids=["copy", "shared"])
def test_a_fallback_computes_the_same(settings):
    run_alone(CASES + '''
import torch_anymps
with torch.no_grad():
    wanted = [t.clone() for t in cases("cpu")]
    torch_anymps.fallbacks(reset=True)
    found = [t.cpu() for t in cases("mps")]
assert len(found) == len(wanted) == 20, len(found)
for i, (a, b) in enumerate(zip(found, wanted)):
    torch.testing.assert_close(a, b, msg=lambda text: f"case {i}: {text}")
fell = {entry["op"].removeprefix("aten::").split(".")[0] for entry in torch_anymps.fallbacks()}
assert {"add", "mul", "sort", "cumsum", "cat", "native_batch_norm", "nonzero", "sinc"} <= fell, fell
''', ANYMPS_DISABLE_OPS=OFF, **settings)


COUNT = '''
import json, time, torch, torch_anymps
x = torch.ones(1000).to("mps")
rows = torch.ones(10, 100).to("mps")
x + x, torch.sinc(x)
def crossed(call):
    before = torch_anymps.transfers()
    start = time.perf_counter()
    call()
    taken = time.perf_counter() - start
    after = torch_anymps.transfers()
    return [[a - b for a, b in zip(after[way], before[way])] for way in ("to_host", "to_device")] + [taken]
print(json.dumps({
    "sinc": crossed(lambda: torch.sinc(x)),              # an argument, a result
    "own kernel": crossed(lambda: x + x),
    "a part": crossed(lambda: torch.sinc(rows[2])),
    "written": crossed(lambda: torch.sinc_(x)),
    "cpu": crossed(lambda: x.cpu()),
    "item": crossed(lambda: x[0].item()),
}))
'''


def test_what_crosses_is_counted():
    counted = json.loads(run_alone(COUNT, ANYMPS_DISABLE_OPS="sinc,sinc_", **COPIES))
    crossed = {name: found[:2] for name, found in counted.items()}
    assert crossed == {"sinc": [[1, 4000], [1, 4000]], "own kernel": [[0, 0], [0, 0]], "a part": [[1, 400], [1, 400]],
                       "written": [[1, 4000], [1, 4000]], "cpu": [[1, 4000], [0, 0]], "item": [[1, 4], [0, 0]]}
    shared = json.loads(run_alone(COUNT, ANYMPS_DISABLE_OPS="sinc,sinc_", **SHARED))
    assert shared["sinc"][:2] == [[0, 0], [0, 0]] and shared["cpu"][:2] == [[1, 4000], [0, 0]]


def test_a_crossing_takes_its_time():
    """20 ms each, and 4000 bytes at 200,000 a second another 20: a time that is too short cannot come of a busy machine."""
    slow = {**COPIES, "ANYMPS_TRANSFER_LATENCY_US": "20000", "ANYMPS_TRANSFER_GBPS": "0.0002"}
    taken = {name: found[2] for name, found in json.loads(run_alone(COUNT, ANYMPS_DISABLE_OPS="sinc,sinc_", **slow)).items()}
    assert taken["sinc"] >= 0.08 and taken["cpu"] >= 0.04 and 0.02 <= taken["item"] and taken["own kernel"] < 0.02, taken


@pytest.mark.parametrize("name, value", [("ANYMPS_TRANSFER", "fast"), ("ANYMPS_TRANSFER_GBPS", "many"), ("ANYMPS_TRANSFER_LATENCY_US", "-1")])
def test_settings_that_make_no_sense(name, value):
    said = run_alone('''
import torch
try:
    torch.ones(2).to("mps")
except RuntimeError as error:
    print(error)
''', **{**COPIES, name: value})
    assert name in said and value in said
