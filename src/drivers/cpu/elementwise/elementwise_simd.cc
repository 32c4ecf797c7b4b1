// SPDX-License-Identifier: Apache-2.0
// Elementwise f32 functions over tiles, and the conversions of halves, with Highway: this file is
// compiled once for each instruction set. Loops and tails are here; an op is one line of
// vector_functions.inc.
#include <algorithm>
#include <cstring>
#include <limits>

#include "drivers/cpu/elementwise/tile_ops.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/elementwise/elementwise_simd.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/parts-inl.h"
#include "drivers/cpu/common/steps-inl.h"
#include "drivers/cpu/elementwise/vector_functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

// Of tiles that are read from memory and not from the cache: what lies this far ahead is asked for.
constexpr size_t kStreams = 4096;  // elements, of which programs of several steps have fewer
HWY_INLINE void prefetch(const float* from) { __builtin_prefetch(from + 512); }

template <class F>
void unary(const TileArgs& t) {
  const Tag d;
  const size_t lanes = hn::Lanes(d), n = t.n;
  const Params p(t.params);
  const float* a = static_cast<const float*>(t.in[0]);
  float* out = static_cast<float*>(t.out);
  const bool streams = n >= kStreams;
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    if (streams) {
      prefetch(a + i);
      prefetch(a + i + lanes);
    }
    const V x = hn::LoadU(d, a + i), y = hn::LoadU(d, a + i + lanes);
    const V u = F::apply(d, x, p), v = F::apply(d, y, p);
    hn::StoreU(u, d, out + i);
    hn::StoreU(v, d, out + i + lanes);
  }
  for (; i + lanes <= n; i += lanes) hn::StoreU(F::apply(d, hn::LoadU(d, a + i), p), d, out + i);
  if (i < n) store_part(F::apply(d, load_part(d, a + i, n - i), p), d, out + i, n - i);
}

enum class Form { kBothVectors, kScalarSecond, kScalarFirst };

template <class F, Form form>
void binary(const TileArgs& t) {
  const Tag d;
  const size_t lanes = hn::Lanes(d), n = t.n;
  const Params p(t.params);
  const float* a = static_cast<const float*>(t.in[0]);
  const float* b = static_cast<const float*>(t.in[1]);
  float* out = static_cast<float*>(t.out);
  const V sa = hn::Set(d, *a), sb = hn::Set(d, *b);
  const bool streams = n >= kStreams;
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    if (streams) {
      if (form != Form::kScalarFirst) prefetch(a + i), prefetch(a + i + lanes);
      if (form != Form::kScalarSecond) prefetch(b + i), prefetch(b + i + lanes);
    }
    const V x0 = form == Form::kScalarFirst ? sa : hn::LoadU(d, a + i);
    const V x1 = form == Form::kScalarFirst ? sa : hn::LoadU(d, a + i + lanes);
    const V y0 = form == Form::kScalarSecond ? sb : hn::LoadU(d, b + i);
    const V y1 = form == Form::kScalarSecond ? sb : hn::LoadU(d, b + i + lanes);
    const V u = F::apply(d, x0, y0, p), v = F::apply(d, x1, y1, p);
    hn::StoreU(u, d, out + i);
    hn::StoreU(v, d, out + i + lanes);
  }
  for (; i + lanes <= n; i += lanes) {
    const V x = form == Form::kScalarFirst ? sa : hn::LoadU(d, a + i);
    const V y = form == Form::kScalarSecond ? sb : hn::LoadU(d, b + i);
    hn::StoreU(F::apply(d, x, y, p), d, out + i);
  }
  if (i < n) {
    const V x = form == Form::kScalarFirst ? sa : load_part(d, a + i, n - i);
    const V y = form == Form::kScalarSecond ? sb : load_part(d, b + i, n - i);
    store_part(F::apply(d, x, y, p), d, out + i, n - i);
  }
}

void clamp_f(const TileArgs& t) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  const float* x = static_cast<const float*>(t.in[0]);
  const float* low = static_cast<const float*>(t.in[1]);
  const float* high = static_cast<const float*>(t.in[2]);
  float* out = static_cast<float*>(t.out);
  size_t i = 0;
  for (; i + lanes <= t.n; i += lanes)
    hn::StoreU(clamp(hn::LoadU(d, x + i), hn::LoadU(d, low + i), hn::LoadU(d, high + i)), d,
               out + i);
  const size_t rest = t.n - i;
  if (rest)
    store_part(
        clamp(load_part(d, x + i, rest), load_part(d, low + i, rest), load_part(d, high + i, rest)),
        d, out + i, rest);
}

void load_bf16(const TileArgs& t) {
  const Tag d;
  const hn::Rebind<uint16_t, Tag> dh;
  const hn::Rebind<uint32_t, Tag> du;
  const size_t lanes = hn::Lanes(d);
  const uint16_t* in = static_cast<const uint16_t*>(t.in[0]);
  float* out = static_cast<float*>(t.out);
  size_t i = 0;
  for (; i + lanes <= t.n; i += lanes) {
    const auto wide = hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(dh, in + i)));
    hn::StoreU(hn::BitCast(d, wide), d, out + i);
  }
  for (; i < t.n; ++i) {
    const uint32_t bits = static_cast<uint32_t>(in[i]) << 16;
    std::memcpy(out + i, &bits, sizeof bits);
  }
}

void store_bf16(const TileArgs& t) {
  const Tag d;
  const hn::Rebind<int32_t, Tag> di;
  const hn::Rebind<uint16_t, Tag> dh;
  const size_t lanes = hn::Lanes(d);
  const float* in = static_cast<const float*>(t.in[0]);
  uint16_t* out = static_cast<uint16_t*>(t.out);
  const auto halves = [&](V x) HWY_ATTR {
    return hn::DemoteTo(dh, hn::BitCast(di, hn::ShiftRight<16>(bf16_bits(x))));
  };
  size_t i = 0;
  for (; i + lanes <= t.n; i += lanes) hn::StoreU(halves(hn::LoadU(d, in + i)), dh, out + i);
  if (const size_t rest = t.n - i; rest > 0) {
    alignas(64) uint16_t last[hn::MaxLanes(Tag())];
    hn::StoreU(halves(load_part(d, in + i, rest)), dh, last);
    std::memcpy(out + i, last, rest * sizeof(uint16_t));
  }
}

void load_f16(const TileArgs& t) {
  const Half* in = static_cast<const Half*>(t.in[0]);
  float* out = static_cast<float*>(t.out);
  size_t i = 0;
#if HWY_TARGET <= HWY_AVX2
  const Tag d;
  const hn::Rebind<hwy::float16_t, Tag> dh;
  const size_t lanes = hn::Lanes(d);
  const auto* bits = reinterpret_cast<const hwy::float16_t*>(in);
  for (; i + lanes <= t.n; i += lanes)
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(dh, bits + i)), d, out + i);
#endif
  for (; i < t.n; ++i) out[i] = in[i];
}

void store_f16(const TileArgs& t) {
  const float* in = static_cast<const float*>(t.in[0]);
  Half* out = static_cast<Half*>(t.out);
  size_t i = 0;
#if HWY_TARGET <= HWY_AVX2
  const Tag d;
  const hn::Rebind<hwy::float16_t, Tag> dh;
  const size_t lanes = hn::Lanes(d);
  auto* bits = reinterpret_cast<hwy::float16_t*>(out);
  for (; i + lanes <= t.n; i += lanes)
    hn::StoreU(hn::DemoteTo(dh, hn::LoadU(d, in + i)), dh, bits + i);
#endif
  for (; i < t.n; ++i) out[i] = Half(in[i]);
}

// Times params[0], after params[1] is taken away.
template <typename T, bool scaled>
void bytes_to_floats(const TileArgs& t) {
  const Tag d;
  const hn::Rebind<int32_t, Tag> di;
  const hn::Rebind<T, Tag> dt;
  const size_t lanes = hn::Lanes(d);
  const auto* in = static_cast<const T*>(t.in[0]);
  auto* out = static_cast<float*>(t.out);
  const float scale = scaled ? static_cast<float>(t.params[0]) : 1;
  const float zero = scaled ? static_cast<float>(t.params[1]) : 0;
  size_t i = 0;
  for (; i + lanes <= t.n; i += lanes) {
    V x = hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(dt, in + i)));
    if (scaled) x = hn::Mul(hn::Sub(x, hn::Set(d, zero)), hn::Set(d, scale));
    hn::StoreU(x, d, out + i);
  }
  for (; i < t.n; ++i) {
    const auto x = static_cast<float>(in[i]);
    out[i] = scaled ? (x - zero) * scale : x;
  }
}

template <typename T>
void floats_to_steps(const TileArgs& t) {
  const ByteSteps<T> steps(static_cast<float>(t.params[0]), static_cast<float>(t.params[1]));
  steps.run(static_cast<const float*>(t.in[0]), t.n, static_cast<T*>(t.out));
}

// Bytes of two tensors, as bytes_to_floats reads them, added up and written by floats_to_steps.
// They are widened in blocks of 16, as they are narrowed again.
template <typename T>
void add_bytes(const TileArgs& t) {
  using Bytes = typename ByteSteps<T>::Bytes;
  const Tag d;
  const Bytes bytes;
  const hn::Repartition<uint16_t, Bytes> shorts;
  const hn::Repartition<int32_t, Bytes> words;
  constexpr uint8_t kMoved = std::is_signed_v<T> ? 128 : 0;  // i8 are u8 here
  float p[kTileParams];
  std::copy_n(t.params, kTileParams, p);
  const ByteSteps<T> steps(p[4], p[5]);
  const auto *a = static_cast<const T*>(t.in[0]), *b = static_cast<const T*>(t.in[1]);
  auto* out = static_cast<T*>(t.out);
  const size_t lanes = hn::Lanes(bytes);
  const auto none = hn::Zero(bytes);
  const auto widened = [&](const T* from, float scale, float zero, V(&to)[4]) HWY_ATTR {
    const auto x =
        hn::Xor(hn::LoadU(bytes, reinterpret_cast<const uint8_t*>(from)), hn::Set(bytes, kMoved));
    const auto halves = [&](hn::Vec<decltype(shorts)> half, V* pair) HWY_ATTR {
      const auto zeros = hn::Zero(shorts);
      pair[0] = hn::ConvertTo(d, hn::BitCast(words, hn::InterleaveLower(shorts, half, zeros)));
      pair[1] = hn::ConvertTo(d, hn::BitCast(words, hn::InterleaveUpper(shorts, half, zeros)));
    };
    halves(hn::BitCast(shorts, hn::InterleaveLower(bytes, x, none)), to);
    halves(hn::BitCast(shorts, hn::InterleaveUpper(bytes, x, none)), to + 2);
    for (size_t i = 0; i < 4; ++i) {
      if constexpr (kMoved != 0) to[i] = hn::Sub(to[i], hn::Set(d, kMoved));
      to[i] = hn::Mul(hn::Sub(to[i], hn::Set(d, zero)), hn::Set(d, scale));
    }
  };
  size_t i = 0;
  for (; i + lanes <= t.n; i += lanes) {
    V x[4], y[4];
    widened(a + i, p[0], p[1], x);
    widened(b + i, p[2], p[3], y);
    for (size_t k = 0; k < 4; ++k) x[k] = hn::Add(x[k], y[k]);
    hn::StoreU(steps.in_blocks(x[0], x[1], x[2], x[3]), bytes, reinterpret_cast<uint8_t*>(out + i));
  }
  for (; i < t.n; ++i) {
    const float x = (static_cast<float>(a[i]) - p[1]) * p[0];
    out[i] = steps.one(x + (static_cast<float>(b[i]) - p[3]) * p[2]);
  }
}

// Without the fraction, within the range; NaN is 0.
template <typename T>
void floats_to_bytes(const TileArgs& t) {
  const Tag d;
  const hn::Rebind<int32_t, Tag> di;
  const hn::Rebind<T, Tag> dt;
  const size_t lanes = hn::Lanes(d);
  const auto* in = static_cast<const float*>(t.in[0]);
  auto* out = static_cast<T*>(t.out);
  constexpr float kLeast = std::numeric_limits<T>::lowest(), kMost = std::numeric_limits<T>::max();
  const V low = hn::Set(d, kLeast), high = hn::Set(d, kMost);
  size_t i = 0;
  for (; i + lanes <= t.n; i += lanes) {
    const V x = hn::LoadU(d, in + i);
    const V inside = hn::Min(hn::Max(x, low), high);
    const auto whole = hn::ConvertTo(di, hn::IfThenElseZero(hn::Eq(x, x), inside));
    hn::StoreU(hn::DemoteTo(dt, whole), dt, out + i);
  }
  for (; i < t.n; ++i)
    out[i] = in[i] == in[i] ? static_cast<T>(std::clamp(in[i], kLeast, kMost)) : T(0);
}

// An f32 value as the half dtype would hold it.
template <void (*store)(const TileArgs&), void (*load)(const TileArgs&)>
void round_to_half(const TileArgs& t) {
  constexpr size_t kPart = 512;
  alignas(64) uint16_t halves[kPart];
  for (size_t i = 0; i < t.n; i += kPart) {
    const size_t n = std::min(kPart, t.n - i);
    store({{static_cast<const float*>(t.in[0]) + i, nullptr, nullptr}, halves, n, nullptr});
    load({{halves, nullptr, nullptr}, static_cast<float*>(t.out) + i, n, nullptr});
  }
}

}  // namespace

void append_float_ops_here(std::vector<TileOp>& ops) {
  const DType f32 = DType::kF32;
#define UNARY(name, ns, ...) \
  ops.push_back({#name, f32, f32, 1, unary<name##_f>, nullptr, nullptr, ns});
#define BINARY(name, ns, ...)                                                                 \
  ops.push_back({#name, f32, f32, 2, binary<name##_f, Form::kBothVectors>,                    \
                 binary<name##_f, Form::kScalarSecond>, binary<name##_f, Form::kScalarFirst>, \
                 ns});
#include "drivers/cpu/elementwise/vector_functions.inc"
#undef UNARY
#undef BINARY
  ops.push_back({"clamp", f32, f32, 3, clamp_f});
  ops.push_back({"load", DType::kF16, f32, 1, load_f16});
  ops.push_back({"load", DType::kBF16, f32, 1, load_bf16});
  ops.push_back({"cast", DType::kU8, f32, 1, bytes_to_floats<uint8_t, false>});
  ops.push_back({"cast", DType::kI8, f32, 1, bytes_to_floats<int8_t, false>});
  ops.push_back({"cast", f32, DType::kU8, 1, floats_to_bytes<uint8_t>});
  ops.push_back({"cast", f32, DType::kI8, 1, floats_to_bytes<int8_t>});
  ops.push_back({"from_steps", DType::kU8, f32, 1, bytes_to_floats<uint8_t, true>});
  ops.push_back({"from_steps", DType::kI8, f32, 1, bytes_to_floats<int8_t, true>});
  ops.push_back({"to_steps_u8", f32, DType::kU8, 1, floats_to_steps<uint8_t>});
  ops.push_back({"to_steps_i8", f32, DType::kI8, 1, floats_to_steps<int8_t>});
  ops.push_back({"add_steps", DType::kU8, DType::kU8, 2, add_bytes<uint8_t>});
  ops.push_back({"add_steps", DType::kI8, DType::kI8, 2, add_bytes<int8_t>});
  // Found by the dtype that is stored.
  ops.push_back({"store", DType::kF16, DType::kF16, 1, store_f16});
  ops.push_back({"store", DType::kBF16, DType::kBF16, 1, store_bf16});
  ops.push_back({"round", DType::kF16, f32, 1, round_to_half<store_f16, load_f16>});
  ops.push_back({"round", DType::kBF16, f32, 1, round_to_half<store_bf16, load_bf16>});
}

}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(append_float_ops_here);

void append_float_ops(std::vector<TileOp>& ops) {
  HWY_DYNAMIC_DISPATCH(append_float_ops_here)(ops);
}

}  // namespace anymps::cpu
#endif
