// SPDX-License-Identifier: Apache-2.0
// Conversions between element types.
#include "base/narrow.h"
#include "formats/onnx/read/import.h"
#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

namespace {

Values cast_to(Call& c, DType to) {
  const bool saturate = c.opset < 19 || c.flag("saturate", true);
  const std::string mode = c.opset < 24 ? "up" : c.s("round_mode", "up");
  Value* x = c.in(0);
  if (x->dtype() == to) return {x};
  return {c.add("cast", {x}, {{"dtype", to}, {"saturate", saturate}, {"round_mode", mode}})};
}

// Before opset 6 the type is its name.
DType target(Call& c) {
  if (c.opset >= 6) return to_dtype(static_cast<DataType>(c.i("to")));
  const std::string wanted = c.s("to");
  for (int32_t type = 1; type <= 16; ++type)
    if (name(static_cast<DataType>(type)) == wanted) return to_dtype(static_cast<DataType>(type));
  c.unsupported("attribute 'to' is \"{}\", which is not an element type", wanted);
}

Values Cast(Call& c) { return cast_to(c, target(c)); }

Values CastLike(Call& c) { return cast_to(c, c.in(1)->dtype()); }

// Types of less than 8 bits, which take a byte all the same.
bool is_packed(DType dtype) { return contains(kNarrowInt | bit(DType::kF4E2M1), dtype); }

Values BitCast(Call& c) {
  const auto type = static_cast<DataType>(c.i("to"));
  const DType from = c.in(0)->dtype(), to = to_dtype(type);
  c.check(from != DType::kString && to != DType::kString && size_of(from) == size_of(to) &&
              is_packed(from) == is_packed(to),
          "{} and {} have not the same number of bits", anymps::name(from), name(type));
  return {c.add("reinterpret", {c.in(0)}, {{"dtype", to}})};
}

const Converter kCastTable[] = {
    {"BitCast", BitCast},
    {"Cast", Cast},
    {"CastLike", CastLike},
};

}  // namespace

std::span<const Converter> cast_converters() { return kCastTable; }

}  // namespace anymps::onnx
