# SPDX-License-Identifier: Apache-2.0
"""The language and its library: an expression in a kernel, and what it must be worth."""

import math

import numpy as np
import pytest
import torch

from tests.doors.torch.shaders.door import library

# Expressions that must hold; x is 0.75f, i is -5, v is float4(1, 2, 3, 4), h is half(0.1).
TRUE = """
sizeof(long) == 8 && sizeof(int) == 4 && sizeof(uint) == 4 && sizeof(ushort) == 2 && sizeof(uchar) == 1
sizeof(float3) == 16 && sizeof(packed_float3) == 12 && sizeof(half4) == 8 && sizeof(bool3) == 4 && alignof(float4) == 16
sizeof(half) == 2 && sizeof(bfloat) == 2 && sizeof(size_t) == 8 && sizeof(float3x3) == 48
char(200) < 0 && uchar(200) > 0
is_same_v<decltype(1.0), float> && is_same_v<decltype(1.0h), half> && is_same_v<decltype(h * h), half>
is_same_v<decltype(h * 1.0f), float> && is_same_v<decltype(h + 1), half> && is_same_v<decltype(v * 2), float4>
is_same_v<decltype(bfloat(1) * 2), bfloat> && is_same_v<decltype(bfloat(1) + 1.0f), float>
all(v.wzyx == float4(4, 3, 2, 1)) && v.xyz.z == 3 && v.rgba.a == 4 && v[2] == 3
all(float4(v.xy, v.zw) == v) && all(float4(1, v.yz, 4) == v) && all(float3(2) == float3(2, 2, 2))
all((v > 2) == bool4(false, false, true, true)) && any(v == 3) && !any(v > 9)
all(select(v, -v, v > 2) == float4(1, 2, -3, -4)) && select(1, 2, true) == 2
all(v * v + 1 - v / v == v * v) && all(2 * v == v + v) && all(-v == 0 - v)
all(int4(v) % 2 == int4(1, 0, 1, 0)) && all((int4(v) << 1) == int4(2, 4, 6, 8)) && all(~int2(0) == -1)
dot(v, v) == 30 && length(float2(3, 4)) == 5 && distance(float2(0), float2(3, 4)) == 5
all(cross(float3(1, 0, 0), float3(0, 1, 0)) == float3(0, 0, 1)) && length_squared(v.xy) == 5
abs(i) == 5 && abs(-x) == x && min(i, 3) == -5 && max(x, 1.0) == 1 && clamp(i, -2, 2) == -2
all(clamp(v, 2.0, 3.0) == float4(2, 2, 3, 3)) && all(max(v, 2) == float4(2, 2, 3, 4)) && all(min(v.xy, v.yx) == 1)
mix(0.0, 10.0, x) == 7.5 && step(1.0, x) == 0 && smoothstep(0.0, 1.0, 0.5) == 0.5 && saturate(3.0) == 1
sign(-2.0) == -1 && sign(0.0) == 0 && fract(-0.25) == 0.75 && floor(-0.5) == -1 && ceil(0.5) == 1
rint(2.5) == 2 && round(2.5) == 3 && trunc(-2.5) == -2 && fmod(-5.5, 2.0) == -1.5 && rsqrt(4.0) == 0.5
fma(x, 4.0, 1.0) == 4 && ldexp(x, 2) == 3 && ilogb(8.0) == 3 && exp2(3.0) == 8 && log2(8.0) == 3 && powr(2.0, 3.0) == 8
isnan(NAN) && isinf(INFINITY) && isinf(-INFINITY) && !isfinite(NAN) && isnormal(1.0) && signbit(-0.0) && max(NAN, 1.0) == 1
min3(3, 1, 2) == 1 && max3(3, 1, 2) == 3 && median3(3, 1, 2) == 2 && fdim(3.0, 1.0) == 2 && copysign(2.0, -1.0) == -2
precise::sqrt(4.0) == 2 && fast::exp(0.0) == 1 && precise::divide(1.0, 4.0) == 0.25 && metal::sin(0.0) == 0
sinpi(0.5) == 1 && cospi(1.0) == -1 && abs(tanpi(0.25) - 1) < 1e-6 && sinpi(1000001.5) == -1
popcount(0xF0u) == 4 && clz(1u) == 31 && ctz(8) == 3 && clz(0) == 32 && ctz(ushort(0)) == 16 && reverse_bits(1u) == 0x80000000u
rotate(0x80000001u, 1u) == 3 && mulhi(0x80000000u, 4u) == 2 && mulhi(-1, 1) == -1 && mulhi(1ul << 63, 4ul) == 2
addsat(uchar(250), uchar(10)) == 255 && subsat(uchar(3), uchar(10)) == 0 && addsat(2147483647, 1) == 2147483647
hadd(5, 2) == 3 && rhadd(5, 2) == 4 && absdiff(-3, 4) == 7u && mad24(3, 4, 5) == 17 && madsat(char(100), char(2), char(1)) == 127
extract_bits(0xABCDu, 4, 8) == 0xBC && extract_bits(0xF0, 4, 4) == -1 && insert_bits(0u, 0xFu, 4, 4) == 0xF0
as_type<uint>(1.0f) == 0x3f800000 && as_type<float>(0x40000000) == 2 && as_type<ushort>(h) == 0x2e66
as_type<ushort>(bfloat(0.1f)) == 0x3dcd && as_type<uchar4>(0x04030201u).z == 3 && as_type<ulong>(uint2(1, 2)) == 0x200000001ul
numeric_limits<float>::max() == FLT_MAX && numeric_limits<int>::lowest() == INT_MIN && numeric_limits<half>::max() == 65504
numeric_limits<bfloat>::epsilon() == bfloat(0.0078125f) && numeric_limits<uchar>::max() == 255 && isinf(numeric_limits<half>::infinity())
is_floating_point_v<half> && is_floating_point<bfloat>::value && is_integral_v<ushort> && !is_integral_v<float> && is_signed_v<char>
is_same_v<make_unsigned_t<int>, uint> && is_same_v<conditional_t<true, int, float>, int> && is_unsigned_v<ulong>
half(65520.0f) == INFINITY && half(2049.0f) == 2048 && half(2051.0f) == 2052 && half(1e-8f) == 0 && half(6e-8f) > 0
bfloat(257.0f) == 256 && bfloat(259.0f) == 260 && float(bfloat(16777217)) == 16777216.0f && isnan(bfloat(NAN))
bfloat(0x1010001) == bfloat(0x1.02p24f) && half(true ? 1.5f : h) == 1.5h && (true ? h : 1.0f) == float(h)
M_PI_F > 3.14159 && M_E_F < 2.71829 && INT_MAX + 1 == INT_MIN && 1u - 2u == UINT_MAX
determinant(float2x2(1, 2, 3, 4)) == -2 && all(transpose(float2x2(1, 2, 3, 4))[0] == float2(1, 3)) && float3x3(2.0)[1][1] == 2
all(float2x2(1, 2, 3, 4) * float2(1, 1) == float2(4, 6)) && all(float2(1, 1) * float2x2(1, 2, 3, 4) == float2(3, 7))
determinant(float4x4(2.0)) == 16 && determinant(float3x3(1, 0, 0, 0, 2, 0, 0, 0, 3)) == 6
all((float2x2(1, 2, 3, 4) * float2x2(0, 1, 1, 0))[0] == float2(3, 4))
pack_float_to_unorm4x8(float4(0, 1, 0.5, 1)) == 0xff80ff00u && unpack_unorm4x8_to_float(0xff000000u).w == 1
nextafter(1.0f, 2.0f) == 1.0f + FLT_EPSILON && nextafter(1.0h, 2.0h) == 1.0h + HALF_EPSILON && nextafter(0.0h, -1.0h) < 0
metal::float4(1, 2, 3, 4).y == 2 && vec<int, 3>(1, 2, 3).z == 3 && metal::array<int, 3>{1, 2, 3}[1] == 2
packed_float3(1, 2, 3).z == 3 && all(packed_float3(1, 2, 3) * 2 == float3(2, 4, 6)) && float3(packed_float3(4)).x == 4
all((bool2(true, false) && bool2(true, true)) == bool2(true, false)) && all(!bool2(false) || bool2(false))
"""

FUNCTIONS = (
    "acos asin atan cos cosh exp exp2 exp10 log log2 log10 sin sinh sqrt tan tanh asinh acosh atanh ceil floor round trunc"
).split()


@pytest.fixture(scope="module")
def language():
    lines = [line for line in TRUE.strip().split("\n")]
    checks = "\n".join(f"  out[{i}] = {line} ? 1 : 2;" for i, line in enumerate(lines))
    functions = "\n".join(
        f"kernel void f_{f}(device T* out, device const T* in, uint i [[thread_position_in_grid]]) {{ out[i] = {f}(in[i]); }}"
        for f in FUNCTIONS
    )
    return library(
        f"""
kernel void truths(device int* out) {{
  float x = 0.75f;
  int i = -5;
  float4 v = float4(1, 2, 3, 4);
  half h = half(0.1);
{checks}
}}
#define T float
{functions}
#undef T
#define T half
kernel void half_sqrt(device T* out, device const T* in, uint i [[thread_position_in_grid]]) {{ out[i] = sqrt(in[i]); }}
kernel void half_arithmetic(device T* out, device const T* a, device const T* b, uint i [[thread_position_in_grid]]) {{
  out[i] = a[i] * b[i] + a[i] / b[i] - b[i];
}}
#undef T
kernel void bfloat_arithmetic(device bfloat* out, device const bfloat* a, device const bfloat* b,
                              uint i [[thread_position_in_grid]]) {{
  out[i] = a[i] * b[i] + a[i] / b[i] - b[i];
}}
kernel void to_half(device half* out, device const float* in, device bfloat* b, uint i [[thread_position_in_grid]]) {{
  out[i] = half(in[i]);
  b[i] = bfloat(in[i]);
}}
kernel void parts(device float* out, device int* exponents, device const float* in, uint i [[thread_position_in_grid]]) {{
  int e;
  float whole, c;
  out[4 * i] = frexp(in[i], e);
  exponents[i] = e;
  out[4 * i + 1] = modf(in[i], whole);
  out[4 * i + 2] = whole;
  float s = sincos(in[i], c);
  out[4 * i + 3] = s * s + c * c;
}}
kernel void swizzles(device float4* out) {{
  float4 a = float4(1, 2, 3, 4);
  a.xy = a.yx;
  out[0] = a;
  a.zw += a.xy * 10;
  out[1] = a;
  a.xyz = float3(0);
  a.w = a.zyx.x;
  out[2] = a;
  auto kept = out[0].wz;
  out[0].x = 9;
  out[3] = float4(kept, out[0].xx);
}}
struct Shape {{
  float2 corner;
  float2 size;
  float area() const thread {{ return size.x * size.y; }}
  float area() const device {{ return size.x * size.y; }}
}};
float twice(device const float* p) {{ return 2 * p[0]; }}
float twice(constant float* p) {{ return 2 * p[0]; }}
float twice(threadgroup const float* p) {{ return 2 * p[0]; }}
kernel void address_spaces(device Shape* shapes, device float* out, constant float* k,
                           uint i [[thread_position_in_grid]]) {{
  thread Shape copy = shapes[i];
  out[i] = shapes[i].area() + copy.area() + twice(k) + twice(&out[i]);
}}
"""
    )


def test_truths(language):
    lines = TRUE.strip().split("\n")
    out = torch.zeros(len(lines), dtype=torch.int32)
    language.truths(out, threads=1)
    wrong = [line for line, value in zip(lines, out.tolist()) if value != 1]
    assert not wrong


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(language, name):
    low, high = {"acos": (-1, 1), "asin": (-1, 1), "atanh": (-1, 1), "acosh": (1, 50)}.get(name, (-20, 20))
    low = 1e-6 if name.startswith(("log", "sqrt")) else low
    x = torch.linspace(low, high, 5001)
    out = torch.empty_like(x)
    getattr(language, f"f_{name}")(out, x)
    if name == "exp10":
        expected = 10.0 ** x.double()
    elif name == "round":
        expected = torch.sign(x.double()) * (x.double().abs() + 0.5).floor()
    else:
        expected = getattr(torch, name)(x.double())
    ulp = torch.from_numpy(np.spacing(np.maximum(expected.float().abs().numpy(), np.float32(1e-30))))
    off = ((out.double() - expected).abs() / ulp.double()).nan_to_num(0).max()
    assert off <= 4, f"{off} ulp"  # Metal promises 4 to 6 for these


def test_half_arithmetic_rounds_each_operation(language):
    a, b = torch.randn(2, 5000).half().unbind()
    out = torch.empty_like(a)
    language.half_arithmetic(out, a, b)
    torch.testing.assert_close(out, (a * b) + (a / b) - b, rtol=0, atol=0, equal_nan=True)
    language.half_sqrt(out, a.abs())
    assert (out == a.abs().sqrt()).all()


def test_bfloat_arithmetic_rounds_each_operation(language):
    a, b = torch.randn(2, 5000).bfloat16().unbind()
    out = torch.empty_like(a)
    language.bfloat_arithmetic(out, a, b)
    torch.testing.assert_close(out, (a * b) + (a / b) - b, rtol=0, atol=0, equal_nan=True)


def test_conversions(language):
    bits = torch.randint(-(1 << 31), 1 << 31, (200_000,), dtype=torch.int64).int()
    x = torch.cat([bits.view(torch.float32), torch.randn(100_000), torch.randn(100_000) * 1e-6])
    half, bfloat = torch.empty(len(x)).half(), torch.empty(len(x)).bfloat16()
    language.to_half(half, x, bfloat, threads=len(x))
    torch.testing.assert_close(half, x.half(), rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(bfloat, x.bfloat16(), rtol=0, atol=0, equal_nan=True)


def test_results_through_references(language):
    x = torch.tensor([0.0, 1.5, -10.25, 1e20])
    out, exponents = torch.zeros(4, 4), torch.zeros(4, dtype=torch.int32)
    language.parts(out, exponents, x, threads=4)
    for row, e, value in zip(out.tolist(), exponents.tolist(), x.tolist()):
        assert (row[0], e) == math.frexp(value)
        assert (row[1], row[2]) == math.modf(value)
        assert row[3] == pytest.approx(1, abs=1e-6)


def test_swizzles_as_places(language):
    out = torch.zeros(4, 4)
    language.swizzles(out, threads=1)
    assert out.tolist() == [[9, 1, 3, 4], [2, 1, 23, 14], [0, 0, 0, 0], [4, 3, 9, 9]]


def test_functions_for_each_address_space(language):
    shapes, out = torch.tensor([[0.0, 0, 2, 3], [0, 0, 4, 5]]), torch.tensor([10.0, 20.0])
    language.address_spaces(shapes, out, [7.0], threads=2)
    assert out.tolist() == [6 + 6 + 14 + 20, 20 + 20 + 14 + 40]


def test_headers_of_pytorch(language):
    """Shaders that inductor writes use the headers that come with torch."""
    from torch.utils._cpp_embed_headers import _embed_headers
    from pathlib import Path

    source = """
#include <c10/metal/random.h>
#include <c10/metal/special_math.h>
#include <c10/metal/utils.h>
#include <c10/metal/reduction_utils.h>
#include <c10/metal/error.h>
using namespace metal;
kernel void special(device float* out, device const float* in, uint i [[thread_position_in_grid]]) {
  out[i] = c10::metal::erf(in[i]) + c10::metal::log_gamma(abs(in[i]) + 1) + c10::metal::i0(in[i]);
}
kernel void total(device float* out, device const half* in, uint i [[thread_position_in_threadgroup]],
                  uint size [[threads_per_threadgroup]]) {
  threadgroup float shared[32];
  auto sum = c10::metal::threadgroup_sum(shared, in[i], i, size);
  auto most = c10::metal::simd_max(float(in[i]));
  if (i == 0) { out[0] = sum; out[1] = most; }
}
kernel void checked(device float* out, device c10::metal::ErrorMessages* errors, uint i [[thread_position_in_grid]]) {
  if (i == 3) TORCH_REPORT_ERROR(errors, "index ", 3, " is out of range");
}
"""
    folder = Path(torch.__file__).parent / "include"
    whole = _embed_headers([line + "\n" for line in source.split("\n")], [folder], set())
    lib = library(whole)
    x = torch.linspace(-3, 3, 100)
    out = torch.zeros(100)
    lib.special(out, x)
    expected = torch.erf(x) + torch.lgamma(x.abs() + 1) + torch.i0(x)
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-4)
    h = torch.randn(200).half()
    lib.total(out, h, threads=200, group_size=200)
    torch.testing.assert_close(out[0], h.float().sum(), rtol=1e-4, atol=1e-4)
    assert out[1] == h[:32].max()
    lib.checked(out, threads=3, error_buf_idx=1)
    with pytest.raises(RuntimeError, match="index 3 is out of range"):
        lib.checked(out, threads=5, error_buf_idx=1)
