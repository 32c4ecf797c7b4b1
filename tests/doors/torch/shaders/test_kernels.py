# SPDX-License-Identifier: Apache-2.0
"""Kernels of the kinds that people write, one thread for one element, checked against torch and numpy."""

import numpy as np
import pytest
import torch

from tests.doors.torch.shaders.door import library

KERNELS = """
// Elementwise and strided.
kernel void saxpy(device float* y, device const float* x, constant float& a, uint i [[thread_position_in_grid]]) {
  y[i] = a * x[i] + y[i];
}
kernel void strided_copy(device float* out, device const float* in, constant long3& strides, constant long3& sizes,
                         uint i [[thread_position_in_grid]]) {
  long3 at = long3(i / (sizes.y * sizes.z), i / sizes.z % sizes.y, i % sizes.z);
  out[i] = in[at.x * strides.x + at.y * strides.y + at.z * strides.z];
}
inline float gelu_of(float x) { return 0.5 * x * (1 + precise::tanh(0.7978845608 * (x + 0.044715 * x * x * x))); }
template <typename T>
kernel void gelu(device T* out, device const T* in, uint i [[thread_position_in_grid]]) { out[i] = T(gelu_of(in[i])); }
#define GELU(T) template [[host_name("gelu_" #T)]] kernel void gelu<T>(device T*, device const T*, uint);
GELU(float)
GELU(half)
GELU(bfloat)
struct Adam { float rate, beta1, beta2, epsilon; };
kernel void adam(device float* p, device const float* g, device float* m, device float* v, constant Adam& a,
                 uint i [[thread_position_in_grid]]) {
  m[i] = mix(g[i], m[i], a.beta1);
  v[i] = mix(g[i] * g[i], v[i], a.beta2);
  p[i] -= a.rate * m[i] / (sqrt(v[i]) + a.epsilon);
}
// Transformers.
kernel void rope(device const float2* in, device float2* out, constant int& half_dim, constant float& base,
                 uint2 at [[thread_position_in_grid]]) {
  float angle = at.y * pow(base, -float(at.x) / half_dim);
  float c = cos(angle), s = sin(angle);
  float2 v = in[at.y * half_dim + at.x];
  out[at.y * half_dim + at.x] = float2(v.x * c - v.y * s, v.x * s + v.y * c);
}
struct block_q4 { half scale; uchar values[16]; };
kernel void dequantize_q4(device const block_q4* in, device float* out, uint i [[thread_position_in_grid]]) {
  device const block_q4& block = in[i];
  for (int k = 0; k < 16; ++k) {
    out[i * 32 + k] = float(block.scale) * ((block.values[k] & 0xF) - 8);
    out[i * 32 + k + 16] = float(block.scale) * ((block.values[k] >> 4) - 8);
  }
}
kernel void embedding(device const half4* table, device const long* index, device half4* out, constant uint& width,
                      uint2 at [[thread_position_in_grid]]) {
  out[at.y * width + at.x] = table[index[at.y] * width + at.x];
}
kernel void gemv(device const float4* matrix, device const float4* x, device float* out, constant uint& columns,
                 uint row [[thread_position_in_grid]]) {
  float sum = 0;
  for (uint i = 0; i < columns; ++i) sum += dot(matrix[row * columns + i], x[i]);
  out[row] = sum;
}
// Pictures and patterns.
kernel void mandelbrot(device int* out, constant uint& width, uint2 at [[thread_position_in_grid]],
                       uint2 size [[threads_per_grid]]) {
  float2 c = float2(at) / float2(size) * float2(3.0, 2.0) - float2(2.0, 1.0), z = 0;
  int n = 0;
  while (n < 50 && length_squared(z) < 4.0) {
    z = float2(z.x * z.x - z.y * z.y, 2 * z.x * z.y) + c;
    ++n;
  }
  out[at.y * width + at.x] = n;
}
kernel void gray(device const uchar4* in, device uchar* out, uint i [[thread_position_in_grid]]) {
  out[i] = uchar(dot(float3(in[i].rgb), float3(0.299, 0.587, 0.114)) + 0.5f);
}
kernel void box_blur(device const float* in, device float* out, constant int2& size,
                     uint2 place [[thread_position_in_grid]]) {
  int2 at = int2(place);
  float sum = 0;
  for (int y = -1; y <= 1; ++y)
    for (int x = -1; x <= 1; ++x) {
      int2 from = clamp(at + int2(x, y), int2(0), size - 1);
      sum += in[from.y * size.x + from.x];
    }
  out[at.y * size.x + at.x] = sum / 9;
}
kernel void bilinear(device const float* in, device float* out, constant uint2& from, constant uint2& to,
                     uint2 at [[thread_position_in_grid]]) {
  float2 p = clamp((float2(at) + 0.5) * float2(from) / float2(to) - 0.5, 0.0, float2(from) - 1);
  uint2 low = uint2(p), high = min(low + 1, from - 1);
  float2 f = fract(p);
  float top = mix(in[low.y * from.x + low.x], in[low.y * from.x + high.x], f.x);
  float bottom = mix(in[high.y * from.x + low.x], in[high.y * from.x + high.x], f.x);
  out[at.y * to.x + at.x] = mix(top, bottom, f.y);
}
kernel void rotate_points(device packed_float3* points, constant float3x3& m, uint i [[thread_position_in_grid]]) {
  points[i] = m * float3(points[i]);
}
kernel void shade(device const packed_float3* normals, device float* out, uint i [[thread_position_in_grid]]) {
  float3 n = normalize(float3(normals[i])), light = normalize(float3(1, 2, 3));
  out[i] = saturate(dot(n, light)) + length(cross(n, light)) + reflect(-light, n).z;
}
// Random numbers.
static uint hash(uint x) {
  x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
  return x;
}
kernel void uniform(device float* out, constant uint& seed, uint i [[thread_position_in_grid]]) {
  out[i] = (hash(i ^ seed) >> 8) * 0x1p-24;
}
kernel void xorshift(device ulong* state, uint i [[thread_position_in_grid]]) {
  ulong x = state[i];
  x ^= x << 13; x ^= x >> 7; x ^= x << 17;
  state[i] = x;
}
// Simulation and search.
kernel void game_of_life(device const uchar* in, device uchar* out, constant int2& size,
                         ushort2 at [[thread_position_in_grid]]) {
  int count = 0;
  for (int d = 0; d < 9; ++d)
    if (d != 4)
      count += in[(at.y + d / 3 - 1 + size.y) % size.y * size.x + (at.x + d % 3 - 1 + size.x) % size.x];
  out[at.y * size.x + at.x] = select(count == 3, count == 3 || count == 2, in[at.y * size.x + at.x] != 0);
}
kernel void nbody(device const float4* bodies, device float3* forces, constant uint& count,
                  uint i [[thread_position_in_grid]]) {
  float3 sum = 0;
  for (uint j = 0; j < count; ++j) {
    float3 d = bodies[j].xyz - bodies[i].xyz;
    float inverse = rsqrt(dot(d, d) + 1e-3f);
    sum += d * (bodies[j].w * inverse * inverse * inverse);
  }
  forces[i] = sum;
}
kernel void lower_bound(device const int* sorted, device const int* wanted, device int* out, constant int& count,
                        uint i [[thread_position_in_grid]]) {
  int low = 0, high = count;
  while (low < high) {
    int middle = (low + high) / 2;
    if (sorted[middle] < wanted[i]) low = middle + 1; else high = middle;
  }
  out[i] = low;
}
namespace shapes {
kernel void named(device float* out [[buffer(0)]]) { out[0] = 7; }
}
constant float table[4] = {1, 2, 4, 8};
constant bool fast_path [[function_constant(0)]];
constant bool is_fast = is_function_constant_defined(fast_path) ? fast_path : true;
kernel void looked_up(device float* out, uint i [[thread_position_in_grid]]) { out[i] = is_fast ? table[i % 4] : 0; }
"""


@pytest.fixture(scope="module")
def kernels():
    torch.manual_seed(0)
    return library(KERNELS)


def close(a, b, tolerance=1e-5):
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def test_saxpy(kernels):
    x, y = torch.randn(1001), torch.randn(1001)
    expected = 2.5 * x + y
    kernels.saxpy(y, x, 2.5)
    close(y, expected)


def test_strided_copy(kernels):
    x = torch.randn(4, 5, 6).permute(2, 0, 1)
    out = torch.zeros(6, 4, 5)
    kernels.strided_copy(out, x, x.stride(), x.shape)
    assert (out == x).all()


@pytest.mark.parametrize("dtype, name", [(torch.float32, "float"), (torch.float16, "half"), (torch.bfloat16, "bfloat")])
def test_gelu(kernels, dtype, name):
    x = torch.randn(999).to(dtype)
    out = torch.empty_like(x)
    getattr(kernels, f"gelu_{name}")(out, x)
    expected = torch.nn.functional.gelu(x.float(), approximate="tanh").to(dtype)
    torch.testing.assert_close(out, expected)


def test_adam(kernels):
    p, g, m, v = torch.randn(4, 300).unbind()
    v = v.abs()
    m2, v2 = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    expected = p - 0.1 * m2 / (v2.sqrt() + 1e-6)
    kernels.adam(p, g, m, v, (0.1, 0.9, 0.99, 1e-6))
    close(p, expected)


def test_rope(kernels):
    x = torch.randn(10, 16, 2)
    out = torch.empty_like(x)
    kernels.rope(x, out, 16, 10000.0, threads=(16, 10), arg_casts={2: "int32"})
    angle = torch.arange(10)[:, None] * 10000.0 ** (-torch.arange(16) / 16)
    turned = torch.view_as_complex(x) * torch.polar(torch.ones_like(angle), angle)
    close(out, torch.view_as_real(turned), 1e-4)


def test_dequantize(kernels):
    rng = np.random.default_rng(0)
    blocks = np.zeros(20, dtype=[("scale", "<f2"), ("values", "u1", 16)])
    blocks["scale"], blocks["values"] = rng.normal(size=20), rng.integers(0, 256, (20, 16))
    out = torch.zeros(20, 32)
    kernels.dequantize_q4(torch.frombuffer(bytearray(blocks.tobytes()), dtype=torch.uint8), out, threads=20)
    values = np.concatenate([blocks["values"] & 15, blocks["values"] >> 4], 1).astype(np.float32) - 8
    assert (out.numpy() == blocks["scale"].astype(np.float32)[:, None] * values).all()


def test_embedding_and_gemv(kernels):
    table, index = torch.randn(50, 16).half(), torch.tensor([3, 0, 49, 3])
    out = torch.zeros(4, 16).half()
    kernels.embedding(table, index, out, 4, threads=(4, 4), arg_casts="int32")
    assert (out == table[index]).all()
    matrix, x, product = torch.randn(30, 64), torch.randn(64), torch.zeros(30)
    kernels.gemv(matrix, x, product, 16, threads=30, arg_casts="int32")
    close(product, matrix @ x, 1e-4)


def test_mandelbrot(kernels):
    out = torch.zeros(40, 60, dtype=torch.int32)
    kernels.mandelbrot(out, 60, threads=(60, 40), arg_casts="int32")
    x = np.arange(60, dtype=np.float32) / np.float32(60) * np.float32(3) - np.float32(2)
    y = np.arange(40, dtype=np.float32)[:, None] / np.float32(40) * np.float32(2) - np.float32(1)
    cx, cy = np.broadcast_arrays(x, y)
    zx, zy, n = np.zeros_like(cx), np.zeros_like(cx), np.zeros(cx.shape, np.int32)
    for _ in range(50):
        go = zx * zx + zy * zy < 4
        n += go
        zx, zy = np.where(go, zx * zx - zy * zy + cx, zx), np.where(go, 2 * zx * zy + cy, zy)
    assert (out.numpy() == n).all()


def test_pictures(kernels):
    picture = torch.randint(0, 256, (30, 20, 4), dtype=torch.uint8)
    out = torch.zeros(30, 20, dtype=torch.uint8)
    kernels.gray(picture, out, threads=600)
    expected = (picture[..., :3].float() * torch.tensor([0.299, 0.587, 0.114])).sum(-1) + 0.5
    assert (out.int() - expected.int()).abs().max() <= 1
    x, blurred = torch.randn(30, 20), torch.zeros(30, 20)
    kernels.box_blur(x, blurred, (20, 30), threads=(20, 30), arg_casts="int32")
    padded = torch.nn.functional.pad(x[None, None], (1, 1, 1, 1), mode="replicate")
    close(blurred, torch.nn.functional.avg_pool2d(padded, 3, 1)[0, 0])
    resized = torch.zeros(45, 33)
    kernels.bilinear(x, resized, (20, 30), (33, 45), threads=(33, 45), arg_casts="int32")
    close(resized, torch.nn.functional.interpolate(x[None, None], (45, 33), mode="bilinear")[0, 0], 1e-4)


def test_geometry(kernels):
    points, m = torch.randn(17, 3), torch.randn(3, 3)
    expected = points @ m  # the columns of Metal's matrix are the rows of m
    padded = torch.nn.functional.pad(m, (0, 1))
    kernels.rotate_points(points, padded, threads=17)
    close(points, expected)
    out = torch.zeros(17)
    kernels.shade(points, out, threads=17)
    n = torch.nn.functional.normalize(points, dim=1)
    light = torch.nn.functional.normalize(torch.tensor([1.0, 2.0, 3.0]), dim=0).expand(17, 3)
    cosine = (n * light).sum(1)
    reflected = -light - 2 * n * (n * -light).sum(1, keepdim=True)
    close(out, cosine.clamp(0, 1) + torch.linalg.cross(n, light).norm(dim=1) + reflected[:, 2])


def test_random(kernels):
    out = torch.zeros(5000)
    kernels.uniform(out, 1234, arg_casts="int32")
    x = np.arange(5000, dtype=np.uint32) ^ np.uint32(1234)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 1)):
        x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
    assert (out.numpy() == (x >> np.uint32(8)) * np.float32(2**-24)).all()
    state = np.arange(1, 100, dtype=np.uint64)
    given = torch.from_numpy(state.astype(np.int64))
    kernels.xorshift(given)
    for shift in (13, -7, 17):
        state ^= state << np.uint64(shift) if shift > 0 else state >> np.uint64(-shift)
    assert (given.numpy().view(np.uint64) == state).all()


def test_game_of_life(kernels):
    cells = torch.randint(0, 2, (16, 24), dtype=torch.uint8)
    out = torch.zeros_like(cells)
    kernels.game_of_life(cells, out, (24, 16), threads=(24, 16), arg_casts="int32")
    count = sum(cells.int().roll((y, x), (0, 1)) for y in (-1, 0, 1) for x in (-1, 0, 1)) - cells.int()
    assert (out.bool() == ((count == 3) | ((count == 2) & cells.bool()))).all()


def test_nbody(kernels):
    bodies, forces = torch.rand(50, 4), torch.zeros(50, 4)
    kernels.nbody(bodies, forces, 50, threads=50, arg_casts="int32")
    d = bodies[None, :, :3] - bodies[:, None, :3]
    expected = (d * (bodies[:, 3] * ((d * d).sum(-1) + 1e-3) ** -1.5)[..., None]).sum(1)
    torch.testing.assert_close(forces[:, :3], expected, rtol=1e-3, atol=1e-3)


def test_search_names_and_constants(kernels):
    numbers, wanted = torch.randint(0, 99, (200,)).sort().values.int(), torch.arange(-3, 103, dtype=torch.int32)
    out = torch.zeros_like(wanted)
    kernels.lower_bound(numbers, wanted, out, 200, threads=106, arg_casts="int32")
    assert (out == torch.searchsorted(numbers, wanted)).all()
    x = torch.zeros(1)
    getattr(kernels, "shapes::named")(x)
    assert x.item() == 7
    out = torch.zeros(6)
    kernels.looked_up(out)
    assert out.tolist() == [1, 2, 4, 8, 1, 2]


def test_large_grid_on_threads(kernels):
    x, y = torch.randn(3_000_001), torch.randn(3_000_001)
    expected = torch.add(y, x, alpha=0.5)
    kernels.saxpy(y, x, 0.5)
    close(y, expected)
