// SPDX-License-Identifier: Apache-2.0
// Barriers, metal_simdgroup and metal_quadgroup: what threads of a threadgroup do together. A site
// is the line of the shader and the function: lanes in different branches do not meet.
#pragma once
#include "atomic.h"
#include "runtime.h"

extern "C" __attribute__((visibility("hidden")))
const anymps_shader::Runtime* anymps_shader_runtime;

namespace anymps_metal {

using anymps_shader::kSimdWidth;
using anymps_shader::Simd;

inline constexpr int site_of(int line, int function) { return line * 64 + function; }

template <class T>
inline Simd& meet(const T& value, int site) {
  static_assert(sizeof(T) <= anymps_shader::kSharedBytes,
                "too large a value for a simdgroup function");
  return *anymps_shader_runtime->meet(&value, sizeof(T), site);
}
inline int this_lane() { return anymps_shader_runtime->meet(nullptr, 0, 0)->lane; }

template <class T>
inline T brought(const Simd& simd, int lane) {
  T value;
  __builtin_memcpy(static_cast<void*>(&value), simd.out[lane], sizeof(T));
  return value;
}
// What a lane brought; a lane that takes no part reads its own value, where Metal leaves it open.
template <class T>
inline T brought_or(const Simd& simd, uint lane, const T& own) {
  return lane < uint(kSimdWidth) && (simd.active >> lane & 1) ? brought<T>(simd, int(lane)) : own;
}

// Sums and products of half and bfloat are kept as float and rounded once.
template <class T>
using sum_element = conditional_t<one_of<element_of<T>, half, bfloat>, float, element_of<T>>;
template <class T>
using sum_type = vector_or_scalar<sum_element<T>, width_of<T>>;

// Joins what the lanes from `first` to before `last` brought, in order.
template <class S, class T, class F>
inline S joined(const Simd& simd, int first, int last, S start, F f) {
  S result = start;
  for (int i = first; i < last; ++i)
    if (simd.active >> i & 1) result = f(result, S(brought<T>(simd, i)));
  return result;
}

// The same for all lanes: the first of them computes it.
template <class S, class T, class F>
inline T reduced(const T& own, S start, int site, F f) {
  Simd& simd = meet(own, site);
  if (!simd.reduced) {
    const T result = T(joined<S, T>(simd, 0, kSimdWidth, start, f));
    __builtin_memcpy(simd.result, static_cast<const void*>(&result), sizeof(T));
    simd.reduced = true;
  }
  T result;
  __builtin_memcpy(static_cast<void*>(&result), simd.result, sizeof(T));
  return result;
}
template <class S, class T, class F>
inline T quad_reduced(const T& own, S start, int site, F f) {
  const Simd& simd = meet(own, site);
  const int first = simd.lane & ~3;
  return T(joined<S, T>(simd, first, first + 4, start, f));
}

template <class T>
struct two {
  T first, second;
};

}  // namespace anymps_metal

#define ANYMPS_LINE int line = __builtin_LINE()

namespace metal {

inline void threadgroup_barrier(mem_flags, memory_order = memory_order_seq_cst,
                                thread_scope = thread_scope_device) {
  anymps_shader_runtime->barrier();
}
inline void simdgroup_barrier(mem_flags, ANYMPS_LINE) {
  anymps_metal::meet(0, anymps_metal::site_of(line, 0));
}

#define ANYMPS_REDUCTION(name, site, S, start, expression)                                         \
  template <class A>                                                                               \
  inline auto simd_##name(const A& a, ANYMPS_LINE) {                                               \
    using T = anymps_metal::value_of<A>;                                                           \
    using E = anymps_metal::element_of<A>;                                                         \
    return anymps_metal::reduced<S, T>(T(a), S(start), anymps_metal::site_of(line, site),          \
                                       [](const S& x, const S& y) { return S(expression); });      \
  }                                                                                                \
  template <class A>                                                                               \
  inline auto quad_##name(const A& a, ANYMPS_LINE) {                                               \
    using T = anymps_metal::value_of<A>;                                                           \
    using E = anymps_metal::element_of<A>;                                                         \
    return anymps_metal::quad_reduced<S, T>(T(a), S(start),                                        \
                                            anymps_metal::site_of(line, 32 + site),                \
                                            [](const S& x, const S& y) { return S(expression); }); \
  }
#define ANYMPS_LOWEST (is_floating_point_v<E> ? E(-__builtin_inff()) : numeric_limits<E>::lowest())
#define ANYMPS_HIGHEST (is_floating_point_v<E> ? E(__builtin_inff()) : numeric_limits<E>::max())
ANYMPS_REDUCTION(sum, 1, anymps_metal::sum_type<T>, E(0), x + y)
ANYMPS_REDUCTION(product, 2, anymps_metal::sum_type<T>, E(1), x* y)
ANYMPS_REDUCTION(max, 3, T, ANYMPS_LOWEST, metal::max(x, y))
ANYMPS_REDUCTION(min, 4, T, ANYMPS_HIGHEST, metal::min(x, y))
ANYMPS_REDUCTION(and, 5, T, E(~E(0)), x& y)
ANYMPS_REDUCTION(or, 6, T, E(0), x | y)
ANYMPS_REDUCTION(xor, 7, T, E(0), x ^ y)

#define ANYMPS_PREFIX(name, site, start, expression)                                              \
  template <class A>                                                                              \
  inline auto simd_prefix_inclusive_##name(const A& a, ANYMPS_LINE) {                             \
    using T = anymps_metal::value_of<A>;                                                          \
    using S = anymps_metal::sum_type<T>;                                                          \
    const anymps_metal::Simd& simd = anymps_metal::meet(T(a), anymps_metal::site_of(line, site)); \
    return T(anymps_metal::joined<S, T>(simd, 0, simd.lane + 1,                                   \
                                        S(anymps_metal::sum_element<T>(start)),                   \
                                        [](const S& x, const S& y) { return S(expression); }));   \
  }                                                                                               \
  template <class A>                                                                              \
  inline auto simd_prefix_exclusive_##name(const A& a, ANYMPS_LINE) {                             \
    using T = anymps_metal::value_of<A>;                                                          \
    using S = anymps_metal::sum_type<T>;                                                          \
    const anymps_metal::Simd& simd =                                                              \
        anymps_metal::meet(T(a), anymps_metal::site_of(line, site + 1));                          \
    return T(anymps_metal::joined<S, T>(simd, 0, simd.lane,                                       \
                                        S(anymps_metal::sum_element<T>(start)),                   \
                                        [](const S& x, const S& y) { return S(expression); }));   \
  }
ANYMPS_PREFIX(sum, 8, 0, x + y)
ANYMPS_PREFIX(product, 10, 1, x* y)

// from: the lane to read, of `simd.lane`, the caller's own.
#define ANYMPS_SHUFFLE(name, site, type, from)                                                   \
  template <class A>                                                                             \
  inline anymps_metal::value_of<A> name(const A& a, type by, ANYMPS_LINE) {                      \
    const anymps_metal::value_of<A> own = a;                                                     \
    const anymps_metal::Simd& simd = anymps_metal::meet(own, anymps_metal::site_of(line, site)); \
    const uint lane = uint(simd.lane);                                                           \
    return anymps_metal::brought_or(simd, from, own);                                            \
  }
ANYMPS_SHUFFLE(simd_shuffle, 12, ushort, by)
ANYMPS_SHUFFLE(simd_shuffle_xor, 13, ushort, lane ^ by)
ANYMPS_SHUFFLE(simd_shuffle_up, 14, ushort, lane - by)
ANYMPS_SHUFFLE(simd_shuffle_down, 15, ushort, lane + by)
ANYMPS_SHUFFLE(simd_shuffle_rotate_up, 16, ushort, (lane - by) % 32)
ANYMPS_SHUFFLE(simd_shuffle_rotate_down, 17, ushort, (lane + by) % 32)
ANYMPS_SHUFFLE(simd_broadcast, 18, ushort, by)
ANYMPS_SHUFFLE(quad_shuffle, 40, ushort, (lane & ~3u) + by)
ANYMPS_SHUFFLE(quad_shuffle_xor, 41, ushort, (lane & ~3u) + ((lane & 3) ^ by))
ANYMPS_SHUFFLE(quad_shuffle_up, 42, ushort, ((lane & 3) < by ? lane : lane - by))
ANYMPS_SHUFFLE(quad_shuffle_down, 43, ushort, ((lane & 3) + by > 3 ? lane : lane + by))
ANYMPS_SHUFFLE(quad_broadcast, 44, ushort, (lane & ~3u) + by)
#undef ANYMPS_SHUFFLE

template <class A>
inline auto simd_broadcast_first(const A& a, ANYMPS_LINE) {
  using T = anymps_metal::value_of<A>;
  const anymps_metal::Simd& simd = anymps_metal::meet(T(a), anymps_metal::site_of(line, 19));
  return anymps_metal::brought<T>(simd, __builtin_ctzl(simd.active));
}
// Lanes past the end of their run of `modulo` lanes read the filling.
template <class A>
inline A simd_shuffle_and_fill_down(const A& a, const A& fill, ushort delta, ushort modulo = 32,
                                    ANYMPS_LINE) {
  const anymps_metal::two<A> own{a, fill};
  const anymps_metal::Simd& simd = anymps_metal::meet(own, anymps_metal::site_of(line, 20));
  const uint start = uint(simd.lane) / modulo * modulo, at = uint(simd.lane) - start + delta;
  const auto from = anymps_metal::brought_or(simd, start + at % modulo, own);
  return at < modulo ? from.first : from.second;
}
template <class A>
inline A simd_shuffle_and_fill_up(const A& a, const A& fill, ushort delta, ushort modulo = 32,
                                  ANYMPS_LINE) {
  const anymps_metal::two<A> own{a, fill};
  const anymps_metal::Simd& simd = anymps_metal::meet(own, anymps_metal::site_of(line, 21));
  const uint start = uint(simd.lane) / modulo * modulo, at = uint(simd.lane) - start;
  const auto from =
      anymps_metal::brought_or(simd, start + (at + modulo - delta % modulo) % modulo, own);
  return at >= delta ? from.first : from.second;
}

struct simd_vote {
  using vote_t = ulong;
  explicit constexpr simd_vote(vote_t v = 0, vote_t all_lanes = 0xffffffff)
      : votes(v), lanes(all_lanes) {}
  explicit constexpr operator vote_t() const { return votes; }
  constexpr bool all() const { return votes == lanes; }
  constexpr bool any() const { return votes != 0; }
  vote_t votes, lanes;
};
inline simd_vote simd_ballot(bool vote, ANYMPS_LINE) {
  const anymps_metal::Simd& simd = anymps_metal::meet(vote, anymps_metal::site_of(line, 22));
  ulong votes = 0;
  for (int i = 0; i < 32; ++i)
    if ((simd.active >> i & 1) && simd.out[i][0]) votes |= 1ul << i;
  return simd_vote(votes, simd.active);
}
inline bool simd_all(bool vote, ANYMPS_LINE) { return simd_ballot(vote, line).all(); }
inline bool simd_any(bool vote, ANYMPS_LINE) { return simd_ballot(vote, line).any(); }
inline simd_vote simd_active_threads_mask(ANYMPS_LINE) { return simd_ballot(true, line); }
inline bool simd_is_first(ANYMPS_LINE) {
  const anymps_metal::Simd& simd = anymps_metal::meet(0, anymps_metal::site_of(line, 23));
  return simd.lane == __builtin_ctzl(simd.active);
}
inline bool simd_is_helper_thread() { return false; }
inline bool quad_all(bool vote, ANYMPS_LINE) { return quad_and(uint(vote), line) != 0; }
inline bool quad_any(bool vote, ANYMPS_LINE) { return quad_or(uint(vote), line) != 0; }

}  // namespace metal
