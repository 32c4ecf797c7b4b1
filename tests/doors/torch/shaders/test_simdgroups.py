# SPDX-License-Identifier: Apache-2.0
"""Functions of simdgroups, their matrices, and atomics; lanes that part and meet again."""

import pytest
import torch

from tests.doors.torch.shaders.door import library


@pytest.fixture(scope="module", autouse=True)
def seed():
    torch.manual_seed(0)


# An expression of x (the lane's value) and lane, and what torch makes of the 32 values.
LANES = [
    ("simd_sum(x)", lambda x: x.sum().expand(32)),
    ("simd_product(x)", lambda x: x.prod().expand(32)),
    ("simd_max(x)", lambda x: x.max().expand(32)),
    ("simd_min(x)", lambda x: x.min().expand(32)),
    ("simd_prefix_inclusive_sum(x)", lambda x: x.cumsum(0)),
    ("simd_prefix_exclusive_sum(x)", lambda x: x.cumsum(0) - x),
    ("simd_prefix_inclusive_product(x)", lambda x: x.cumprod(0)),
    ("simd_broadcast(x, 5)", lambda x: x[5].expand(32)),
    ("simd_broadcast_first(x)", lambda x: x[0].expand(32)),
    ("simd_shuffle(x, 31 - lane)", lambda x: x.flip(0)),
    ("simd_shuffle_xor(x, 3)", lambda x: x[torch.arange(32) ^ 3]),
    ("simd_shuffle_rotate_up(x, 1)", lambda x: x.roll(1)),
    ("simd_shuffle_rotate_down(x, 2)", lambda x: x.roll(-2)),
    ("simd_shuffle_and_fill_down(x, -x, 4)", lambda x: torch.cat([x[4:], -x[:4]])),
    ("simd_shuffle_and_fill_up(x, -x, 4)", lambda x: torch.cat([-x[28:], x[:28]])),
    ("(lane >= 6 ? simd_shuffle_up(x, 6) : (simd_shuffle_up(x, 6), 0.0f))", lambda x: torch.cat([torch.zeros(6), x[:26]])),
    ("float(simd_or(1u << lane) == 0xffffffffu)", lambda x: torch.ones(32)),
    ("float(simd_xor(lane))", lambda x: torch.zeros(32)),
    ("float(simd_and(lane | 32u))", lambda x: torch.full((32,), 32.0)),
    ("float(popcount(uint(ulong(simd_ballot(x > 0)))))", lambda x: (x > 0).sum().float().expand(32)),
    ("float(simd_any(lane == 3) && !simd_all(lane < 31) && simd_all(true))", lambda x: torch.ones(32)),
    ("float(simd_is_first())", lambda x: torch.arange(32).eq(0).float()),
    ("quad_sum(x)", lambda x: x.view(8, 4).sum(1, keepdim=True).expand(8, 4).reshape(32)),
    ("quad_max(x)", lambda x: x.view(8, 4).amax(1, keepdim=True).expand(8, 4).reshape(32)),
    ("quad_broadcast(x, 2)", lambda x: x.view(8, 4)[:, 2:3].expand(8, 4).reshape(32)),
    ("quad_shuffle_xor(x, 1)", lambda x: x[torch.arange(32) ^ 1]),
    ("simd_sum(float2(x, 2 * x)).y", lambda x: 2 * x.sum().expand(32)),
    ("float(simd_max(half(x)))", lambda x: x.half().max().float().expand(32)),
    ("float(simd_sum(bfloat(x)))", lambda x: x.bfloat16().float().sum().bfloat16().float().expand(32)),
]


@pytest.fixture(scope="module")
def lanes():
    kernels = "".join(
        f"kernel void f{i}(device const float* in, device float* out, uint at [[thread_position_in_grid]],\n"
        f"  uint lane [[thread_index_in_simdgroup]]) {{ float x = in[at]; out[at] = {expression}; }}\n"
        for i, (expression, _) in enumerate(LANES)
    )
    return library(kernels)


@pytest.mark.parametrize("at", range(len(LANES)), ids=[expression for expression, _ in LANES])
def test_simd_functions(lanes, at):
    x = torch.randn(4, 32)
    out = torch.zeros(4, 32)
    getattr(lanes, f"f{at}")(x, out, group_size=64)
    for row in range(4):
        torch.testing.assert_close(out[row], LANES[at][1](x[row]), rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def special():
    return library("""
kernel void branches(device float* out, uint lane [[thread_index_in_simdgroup]]) {
  float x = lane;
  if (lane % 2 == 0) {
    x = simd_sum(x);
  } else {
    x = -simd_sum(1.0f);
  }
  out[lane] = x + simd_max(float(lane));
}
kernel void loops(device int* out, uint lane [[thread_index_in_simdgroup]]) {
  int met = 0;
  for (uint i = 0; i < lane; ++i)
    met += simd_sum(1);
  out[lane] = met + 1000 * simd_sum(1);
}
float helper(float x) { return simd_sum(x); }
struct Adder {
  float operator()(float x) const thread { return helper(x); }
  float operator()(float x) const device { return helper(x); }
};
template <typename Op>
kernel void through_types(device float* out, uint lane [[thread_index_in_simdgroup]]) { out[lane] = Op()(float(lane)); }
template [[host_name("through")]] kernel void through_types<Adder>(device float*, uint);
kernel void matrices(device const float* a, device const half* b, device float* c) {
  simdgroup_float8x8 left, sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  simdgroup_half8x8 right;
  for (int i = 0; i < 2; ++i) {
    simdgroup_load(left, a + 8 * i, 16);
    simdgroup_load(right, b + 64 * i, 8);
    simdgroup_multiply_accumulate(sum, left, right, sum);
  }
  sum.thread_elements()[0] *= 2;
  sum.thread_elements()[1] *= 2;
  simdgroup_store(sum, c, 8, ulong2(0, 0), true);
}
kernel void sums(device atomic_float* f, device atomic_int* least, device atomic_int* most, device const float* in,
                 uint at [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(f, in[at], memory_order_relaxed);
  atomic_fetch_min_explicit(least, int(in[at] * 100), memory_order_relaxed);
  atomic_fetch_max_explicit(most, int(in[at] * 100), memory_order_relaxed);
}
kernel void taken(device atomic_uint* next, device uint* out) {
  uint old = 0;
  while (!atomic_compare_exchange_weak_explicit(next, &old, old + 3, memory_order_relaxed, memory_order_relaxed)) {}
  out[old / 3] = old;
}
""")


def test_lanes_in_branches_do_not_meet(special):
    out = torch.zeros(32)
    special.branches(out)
    even = torch.arange(32) % 2 == 0
    assert (out == torch.where(even, 240.0, -16.0) + 31).all()


def test_lanes_that_left_a_loop_wait_behind_it(special):
    out = torch.zeros(32, dtype=torch.int32)
    special.loops(out)
    assert out.tolist() == [sum(31 - i for i in range(lane)) + 32000 for lane in range(32)]


def test_waiting_is_seen_through_types(special):
    out = torch.zeros(32)
    special.through(out)
    assert (out == 496).all()


def test_simdgroup_matrix(special):
    a, b, c = torch.randn(8, 16), torch.randn(16, 8).half(), torch.zeros(8, 8)
    special.matrices(a, b, c, threads=32, group_size=32)
    torch.testing.assert_close(c, 2 * (a @ b.float()).T, rtol=1e-5, atol=1e-5)


def test_atomics(special):
    x = torch.randn(20_000)
    total, least, most = torch.zeros(1), *torch.zeros(2, 1, dtype=torch.int32).unbind()
    special.sums(total, least, most, x, threads=20_000)
    torch.testing.assert_close(total[0], x.sum(), rtol=1e-3, atol=1e-2)
    assert least.item() == int((x * 100).int().min()) and most.item() == int((x * 100).int().max())
    counter, out = torch.zeros(1, dtype=torch.int32), torch.zeros(30_000, dtype=torch.int32)
    special.taken(counter, out, threads=30_000)
    assert counter.item() == 90_000 and (out == 3 * torch.arange(30_000)).all()
