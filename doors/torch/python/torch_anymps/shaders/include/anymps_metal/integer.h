// SPDX-License-Identifier: Apache-2.0
// metal_integer and metal_pack.
#pragma once
#include "math.h"

namespace anymps_metal {

template <class R>
inline constexpr int bit_count = int(sizeof(R)) * 8;
template <class R>
using unsigned_of = metal::make_unsigned_t<R>;

template <class R>
inline R leading_zeros(R x) {
  const ulong value = static_cast<unsigned_of<R>>(x);
  return R(value == 0 ? bit_count<R> : __builtin_clzl(value) - (64 - bit_count<R>));
}
template <class R>
inline R trailing_zeros(R x) {
  const ulong value = static_cast<unsigned_of<R>>(x);
  return R(value == 0 ? bit_count<R> : __builtin_ctzl(value));
}
template <class R>
inline R reversed(R x) {
  unsigned_of<R> value = static_cast<unsigned_of<R>>(x), result = 0;
  for (int i = 0; i < bit_count<R>; ++i) {
    result = static_cast<unsigned_of<R>>((result << 1) | (value & 1));
    value = static_cast<unsigned_of<R>>(value >> 1);
  }
  return R(result);
}
template <class R>
inline R rotated(R x, R by) {
  const unsigned_of<R> value = static_cast<unsigned_of<R>>(x);
  const int n = int(by) & (bit_count<R> - 1);
  return n == 0 ? x : R((value << n) | (value >> (bit_count<R> - n)));
}
template <class R>
inline R high_product(R x, R y) {
  if constexpr (metal::is_signed_v<R>)
    return R((static_cast<__int128>(x) * y) >> bit_count<R>);
  else
    return R((static_cast<unsigned __int128>(x) * y) >> bit_count<R>);
}
template <class R>
inline R saturated(__int128 value) {
  const __int128 low = metal::numeric_limits<R>::min(), high = metal::numeric_limits<R>::max();
  return R(value < low ? low : value > high ? high : value);
}
template <class R>
inline R low_bits(R x, uint bits) {
  return bits >= uint(bit_count<R>) ? x : R(static_cast<ulong>(x) & ((1ul << bits) - 1));
}

}  // namespace anymps_metal

ANYMPS_ANY1(clz, anymps_metal::integers, return anymps_metal::leading_zeros<R>(x);)
ANYMPS_ANY1(ctz, anymps_metal::integers, return anymps_metal::trailing_zeros<R>(x);)
ANYMPS_ANY1(popcount, anymps_metal::integers,
            return R(__builtin_popcountl(
                static_cast<ulong>(static_cast<anymps_metal::unsigned_of<R>>(x))));)
ANYMPS_ANY1(reverse_bits, anymps_metal::integers, return anymps_metal::reversed<R>(x);)
ANYMPS_ANY2(rotate, anymps_metal::integers, return anymps_metal::rotated<R>(x, y);)
ANYMPS_ANY2(mulhi, anymps_metal::integers, return anymps_metal::high_product<R>(x, y);)
ANYMPS_ANY3(madhi, anymps_metal::integers, return R(anymps_metal::high_product<R>(x, y) + z);)
ANYMPS_ANY2(addsat, anymps_metal::integers,
            return anymps_metal::saturated<R>(static_cast<__int128>(x) + y);)
ANYMPS_ANY2(subsat, anymps_metal::integers,
            return anymps_metal::saturated<R>(static_cast<__int128>(x) - y);)
ANYMPS_ANY3(madsat, anymps_metal::integers,
            return anymps_metal::saturated<R>(static_cast<__int128>(x) * y + z);)
ANYMPS_ANY2(hadd, anymps_metal::integers, return R((static_cast<__int128>(x) + y) >> 1);)
ANYMPS_ANY2(rhadd, anymps_metal::integers, return R((static_cast<__int128>(x) + y + 1) >> 1);)
ANYMPS_ANY2(mul24, anymps_metal::integers, return R(x * y);)
ANYMPS_ANY3(mad24, anymps_metal::integers, return R(x * y + z);)

namespace metal {

template <class A, class B>
inline auto absdiff(const A& a, const B& b) {
  using R = anymps_metal::element_type<A, B>;
  using U = make_unsigned_t<R>;
  return anymps_metal::map<U>([](R x, R y) { return x < y ? U(U(y) - U(x)) : U(U(x) - U(y)); }, a,
                              b);
}
template <class A>
inline auto extract_bits(const A& a, uint offset, uint bits) {
  using R = anymps_metal::element_type<A>;
  return anymps_metal::map<R>(
      [=](R x) -> R {
        if (bits == 0) return R(0);
        const int unused = anymps_metal::bit_count<R> - int(bits);
        const R field =
            anymps_metal::low_bits<R>(R(static_cast<make_unsigned_t<R>>(x) >> offset), bits);
        return R(R(static_cast<make_unsigned_t<R>>(field) << unused) >> unused);
      },
      a);
}
template <class A, class B>
inline auto insert_bits(const A& a, const B& insert, uint offset, uint bits) {
  using R = anymps_metal::element_type<A, B>;
  return anymps_metal::map<R>(
      [=](R x, R y) -> R {
        const R mask = R(anymps_metal::low_bits<R>(R(~R(0)), bits) << offset);
        return R((x & ~mask) | ((y << offset) & mask));
      },
      a, insert);
}

#define ANYMPS_PACKING(kind, T, bits, scale, low)                          \
  inline vec<float, 32 / bits> unpack_##kind##_to_float(uint value) {      \
    vec<float, 32 / bits> r;                                               \
    for (int i = 0; i < 32 / bits; ++i)                                    \
      r[i] = max(float(static_cast<T>(value >> (i * bits))) / scale, low); \
    return r;                                                              \
  }                                                                        \
  inline uint pack_float_to_##kind(const vec<float, 32 / bits>& v) {       \
    uint r = 0;                                                            \
    for (int i = 0; i < 32 / bits; ++i)                                    \
      r |= uint(static_cast<make_unsigned_t<T>>(                           \
               static_cast<T>(rint(clamp(v[i], low, 1.0f) * scale))))      \
           << (i * bits);                                                  \
    return r;                                                              \
  }
ANYMPS_PACKING(unorm4x8, uchar, 8, 255.0f, 0.0f)
ANYMPS_PACKING(snorm4x8, char, 8, 127.0f, -1.0f)
ANYMPS_PACKING(unorm2x16, ushort, 16, 65535.0f, 0.0f)
ANYMPS_PACKING(snorm2x16, short, 16, 32767.0f, -1.0f)

}  // namespace metal
