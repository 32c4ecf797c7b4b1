// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/elementwise/narrow_cast.h"

#include <array>

namespace anymps::cpu {

namespace {

template <DType from>
void decode(const TileArgs& args) {
  const auto* in = static_cast<const uint8_t*>(args.in[0]);
  auto* out = static_cast<float*>(args.out);
  const float* table = narrow_values(from).data();
  for (size_t i = args.n; i-- > 0;) out[i] = table[in[i]];
}

template <DType to>
void encode(const TileArgs& args) {
  const auto* in = static_cast<const float*>(args.in[0]);
  auto* out = static_cast<uint8_t*>(args.out);
  const bool saturate = args.params[0] != 0;
  const auto rounding = static_cast<NarrowRounding>(static_cast<int>(args.params[1]));
  for (size_t i = 0; i < args.n; ++i)
    out[i] = encode_narrow(to, static_cast<double>(in[i]), saturate, rounding);
}

template <DType to>
void wrap(const TileArgs& args) {
  const auto* in = static_cast<const int8_t*>(args.in[0]);
  auto* out = static_cast<uint8_t*>(args.out);
  for (size_t i = 0; i < args.n; ++i) out[i] = wrap_narrow(to, in[i]);
}

struct Tables {
  std::array<TileOp, kDTypeCount> decoders, encoders, wrappers;

  template <DType type>
  void add() {
    const auto at = static_cast<size_t>(type);
    decoders[at] = {"decode", type, DType::kF32, 1, decode<type>};
    encoders[at] = {"encode", DType::kF32, type, 1, encode<type>, nullptr, nullptr, 2.0f};
    if (contains(kNarrowInt, type)) wrappers[at] = {"wrap", DType::kI8, type, 1, wrap<type>};
  }
  Tables() {
    add<DType::kI4>();
    add<DType::kU4>();
    add<DType::kI2>();
    add<DType::kU2>();
    add<DType::kF8E4M3>();
    add<DType::kF8E5M2>();
    add<DType::kF8E4M3FNUZ>();
    add<DType::kF8E5M2FNUZ>();
    add<DType::kF8E8M0>();
    add<DType::kF4E2M1>();
  }
};

const Tables& tables() {
  static const Tables& all = *new Tables;  // even while the process exits
  return all;
}

}  // namespace

const TileOp* find_narrow_decode(DType from) {
  return &tables().decoders[static_cast<size_t>(from)];
}

const TileOp* find_narrow_encode(DType from, DType to) {
  const auto at = static_cast<size_t>(to);
  return from == DType::kI8 ? &tables().wrappers[at] : &tables().encoders[at];
}

}  // namespace anymps::cpu
