# SPDX-License-Identifier: Apache-2.0
"""Shaders whose threads work together: barriers, threadgroup memory and sums over simdgroups."""

import pytest
import torch

from tests.doors.torch.shaders.door import library


@pytest.fixture(scope="module", autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture(scope="module")
def reductions():
    return library("""
kernel void tree_sum(device const float* in, device float* out, constant uint& count,
                     uint local [[thread_position_in_threadgroup]], uint group [[threadgroup_position_in_grid]],
                     uint at [[thread_position_in_grid]], uint size [[dispatch_threads_per_threadgroup]]) {
  threadgroup float shared[1024];
  shared[local] = at < count ? in[at] : 0.0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint step = size / 2; step > 0; step >>= 1) {
    if (local < step) shared[local] += shared[local + step];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (local == 0) out[group] = shared[0];
}
kernel void simd_total(device const float* in, device float* out, constant uint& count,
                       uint local [[thread_index_in_threadgroup]], uint size [[threads_per_threadgroup]],
                       uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
                       uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float partial[32];
  float sum = 0;
  for (uint i = local; i < count; i += size) sum += in[i];
  sum = simd_sum(sum);
  if (lane == 0) partial[simdgroup] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simdgroup == 0) {
    float total = simd_sum(lane < simdgroups ? partial[lane] : 0.0f);
    if (lane == 0) out[0] = total;
  }
}
kernel void softmax_rows(device const float* in, device float* out, constant uint& columns,
                         uint row [[threadgroup_position_in_grid]], uint local [[thread_position_in_threadgroup]],
                         uint size [[threads_per_threadgroup]]) {
  threadgroup float shared[256];
  device const float* x = in + row * columns;
  float largest = -INFINITY;
  for (uint i = local; i < columns; i += size) largest = max(largest, x[i]);
  shared[local] = largest;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint step = size / 2; step > 0; step /= 2) {
    if (local < step) shared[local] = max(shared[local], shared[local + step]);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  largest = shared[0];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float sum = 0;
  for (uint i = local; i < columns; i += size) sum += exp(x[i] - largest);
  shared[local] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint step = size / 2; step > 0; step /= 2) {
    if (local < step) shared[local] += shared[local + step];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (uint i = local; i < columns; i += size) out[row * columns + i] = exp(x[i] - largest) / shared[0];
}
kernel void layer_norm(device const half* in, device half* out, device const half* weight, device const half* bias,
                       constant uint& columns, constant float& epsilon, uint row [[threadgroup_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]]) {
  float sum = 0, squares = 0;
  for (uint i = lane; i < columns; i += 32) {
    float v = in[row * columns + i];
    sum += v;
    squares += v * v;
  }
  float mean = simd_sum(sum) / columns;
  float scale = rsqrt(simd_sum(squares) / columns - mean * mean + epsilon);
  for (uint i = lane; i < columns; i += 32)
    out[row * columns + i] = half((in[row * columns + i] - mean) * scale) * weight[i] + bias[i];
}
kernel void arg_max(device const float* in, device int* out, constant uint& columns,
                    uint row [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  float best = -INFINITY;
  int where = 0;
  for (uint i = lane; i < columns; i += 32)
    if (in[row * columns + i] > best) { best = in[row * columns + i]; where = i; }
  for (ushort step = 16; step > 0; step /= 2) {
    float other = simd_shuffle_down(best, step);
    int place = simd_shuffle_down(where, step);
    if (other > best || (other == best && place < where)) { best = other; where = place; }
  }
  if (lane == 0) out[row] = where;
}
""")


def test_tree_sum(reductions):
    x, out = torch.randn(5000), torch.zeros(20)
    reductions.tree_sum(x, out, 5000, threads=20 * 256, group_size=256, arg_casts="int32")
    torch.testing.assert_close(out.sum(), x.sum(), rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(out[3], x[768:1024].sum(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("threads", [32, 96, 100, 1024])
def test_simd_total(reductions, threads):
    x, out = torch.randn(10_001), torch.zeros(1)
    reductions.simd_total(x, out, 10_001, threads=threads, group_size=threads, arg_casts="int32")
    torch.testing.assert_close(out[0], x.sum(), rtol=1e-4, atol=1e-3)


def test_softmax(reductions):
    x = torch.randn(37, 300) * 5
    out = torch.empty_like(x)
    reductions.softmax_rows(x, out, 300, threads=37 * 128, group_size=128, arg_casts="int32")
    torch.testing.assert_close(out, x.softmax(1), rtol=1e-5, atol=1e-6)


def test_layer_norm(reductions):
    x, weight, bias = torch.randn(9, 70).half(), torch.randn(70).half(), torch.randn(70).half()
    out = torch.empty_like(x)
    reductions.layer_norm(x, out, weight, bias, 70, 1e-5, threads=9 * 32, group_size=32, arg_casts={4: "int32"})
    expected = torch.nn.functional.layer_norm(x.float(), (70,), weight.float(), bias.float())
    torch.testing.assert_close(out.float(), expected, rtol=5e-3, atol=5e-3)


def test_arg_max(reductions):
    x, out = torch.randint(0, 50, (11, 333)).float(), torch.zeros(11, dtype=torch.int32)
    reductions.arg_max(x, out, 333, threads=11 * 32, group_size=32, arg_casts="int32")
    assert (x.gather(1, out.long()[:, None])[:, 0] == x.max(1).values).all()
    assert (out == (x == x.max(1, keepdim=True).values).int().argmax(1)).all()


@pytest.fixture(scope="module")
def sharing():
    return library("""
constant int TILE = 16;
kernel void matmul(device const float* a, device const float* b, device float* c, constant uint3& size,
                   uint2 at [[thread_position_in_grid]], uint2 local [[thread_position_in_threadgroup]]) {
  threadgroup float left[TILE][TILE], right[TILE][TILE];
  const uint m = size.x, n = size.y, k = size.z;
  float sum = 0;
  for (uint step = 0; step < k; step += TILE) {
    left[local.y][local.x] = at.y < m && step + local.x < k ? a[at.y * k + step + local.x] : 0;
    right[local.y][local.x] = step + local.y < k && at.x < n ? b[(step + local.y) * n + at.x] : 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int i = 0; i < TILE; ++i) sum += left[local.y][i] * right[i][local.x];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (at.y < m && at.x < n) c[at.y * n + at.x] = sum;
}
kernel void bitonic(device int* data, uint at [[thread_position_in_threadgroup]],
                    uint size [[threads_per_threadgroup]]) {
  threadgroup int shared[1024];
  shared[at] = data[at];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = 2; k <= size; k *= 2)
    for (uint j = k / 2; j > 0; j /= 2) {
      uint other = at ^ j;
      if (other > at && ((at & k) == 0) == (shared[at] > shared[other])) {
        int old = shared[at];
        shared[at] = shared[other];
        shared[other] = old;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
  data[at] = shared[at];
}
kernel void scan(device const int* in, device int* out, uint at [[thread_position_in_threadgroup]],
                 uint size [[threads_per_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                 uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup int totals[32];
  int sum = simd_prefix_inclusive_sum(in[at]);
  if (lane == 31) totals[simdgroup] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simdgroup == 0) totals[lane] = simd_prefix_exclusive_sum(lane < size / 32 ? totals[lane] : 0);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[at] = sum + totals[simdgroup];
}
kernel void histogram(device const uchar* in, device atomic_uint* out, constant uint& count,
                      uint at [[thread_position_in_grid]], uint local [[thread_position_in_threadgroup]],
                      uint size [[threads_per_threadgroup]]) {
  threadgroup atomic_uint bins[256];
  for (uint i = local; i < 256; i += size) atomic_store_explicit(&bins[i], 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (at < count) atomic_fetch_add_explicit(&bins[in[at]], 1, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = local; i < 256; i += size)
    atomic_fetch_add_explicit(&out[i], atomic_load_explicit(&bins[i], memory_order_relaxed), memory_order_relaxed);
}
kernel void transpose(device const float* in, device float* out, constant uint2& size,
                      uint2 group [[threadgroup_position_in_grid]], uint2 local [[thread_position_in_threadgroup]]) {
  threadgroup float tile[8][9];
  uint2 from = group * 8 + local;
  if (from.x < size.x && from.y < size.y) tile[local.y][local.x] = in[from.y * size.x + from.x];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint2 to = group.yx * 8 + local;
  if (to.x < size.y && to.y < size.x) out[to.y * size.y + to.x] = tile[local.x][local.y];
}
template <typename T, int N>
kernel void reverse(device T* data, uint at [[thread_position_in_threadgroup]]) {
  constexpr int count = N * 2;
  threadgroup T shared[count];
  shared[at] = data[at];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  data[at] = shared[count - 1 - at];
}
template [[host_name("reverse_float")]] kernel void reverse<float, 32>(device float*, uint);
template [[host_name("reverse_short")]] [[kernel]] decltype(reverse<short, 16>) reverse<short, 16>;
kernel void too_much(device float* out, uint at [[thread_position_in_threadgroup]]) {
  threadgroup float shared[8193];
  shared[at] = at;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[at] = shared[at];
}
kernel void early_return(device int* out, uint at [[thread_position_in_threadgroup]]) {
  threadgroup int shared[64];
  shared[at] = at;
  if (at >= 40) return;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[at] = shared[39 - at];
}
""")


def test_tiled_matmul(sharing):
    a, b = torch.randn(50, 37), torch.randn(37, 61)
    out = torch.zeros(50, 61)
    sharing.matmul(a, b, out, (50, 61, 37), threads=(64, 64), group_size=(16, 16), arg_casts="int32")
    torch.testing.assert_close(out, a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [32, 256, 1024])
def test_bitonic_sort(sharing, size):
    x = torch.randint(-1000, 1000, (size,), dtype=torch.int32)
    expected = x.sort().values
    sharing.bitonic(x, group_size=size)
    assert (x == expected).all()


def test_prefix_scan(sharing):
    x, out = torch.randint(-9, 9, (512,), dtype=torch.int32), torch.zeros(512, dtype=torch.int32)
    sharing.scan(x, out, group_size=512)
    assert (out == x.cumsum(0)).all()


def test_histogram(sharing):
    x, out = torch.randint(0, 256, (100_003,), dtype=torch.uint8), torch.zeros(256, dtype=torch.int32)
    sharing.histogram(x, out, 100_003, group_size=256, arg_casts="int32")
    assert (out == torch.bincount(x.int(), minlength=256)).all()


def test_transpose(sharing):
    x, out = torch.randn(21, 30), torch.zeros(30, 21)
    sharing.transpose(x, out, (30, 21), threads=(32, 32), group_size=(8, 8), arg_casts="int32")
    assert (out == x.T).all()


def test_templates_with_shared_memory(sharing):
    for name, dtype, size in (("reverse_float", torch.float32, 64), ("reverse_short", torch.int16, 32)):
        x = torch.arange(size).to(dtype)
        getattr(sharing, name)(x, group_size=size)
        assert (x == torch.arange(size).flip(0)).all()


def test_shared_memory_is_limited_as_on_a_mac(sharing):
    with pytest.raises(RuntimeError, match="exceeds the maximum threadgroup memory"):
        sharing.too_much(torch.zeros(64), group_size=64)


def test_threads_that_ended_are_not_awaited(sharing):
    out = torch.zeros(64, dtype=torch.int32)
    sharing.early_return(out, group_size=64)
    assert out[:40].tolist() == list(range(39, -1, -1))


def test_shared_memory_length(sharing):
    assert sharing.matmul.static_thread_group_memory_length == 2 * 16 * 16 * 4
    assert sharing.reverse_float.static_thread_group_memory_length == 64 * 4
    assert sharing.reverse_short.static_thread_group_memory_length == 32 * 2


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_many_groups_on_many_threads(sharing, workers):
    before = torch.get_num_threads()
    torch.set_num_threads(workers)
    try:
        a, b = torch.randn(200, 64), torch.randn(64, 200)
        out = torch.zeros(200, 200)
        for _ in range(3):
            sharing.matmul(a, b, out, (200, 200, 64), threads=(208, 208), group_size=(16, 16), arg_casts="int32")
        torch.testing.assert_close(out, a @ b, rtol=1e-4, atol=1e-4)
    finally:
        torch.set_num_threads(before)
