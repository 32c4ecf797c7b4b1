// SPDX-License-Identifier: Apache-2.0
// Conversions between element types.
#include "base/narrow.h"
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
  if (c.opset >= 6) return c.dtype("to");
  const std::string wanted = c.s("to");
  if (const auto type = data_type_named(wanted)) return to_dtype(*type);
  c.unsupported("attribute 'to' is \"{}\", which is not an element type", wanted);
}

ONNX_READ(Cast) { return cast_to(c, target(c)); }

ONNX_READ(CastLike) { return cast_to(c, c.in(1)->dtype()); }

// Types of less than 8 bits, which take a byte all the same.
bool is_packed(DType dtype) { return contains(kNarrowInt | bit(DType::kF4E2M1), dtype); }

ONNX_READ(BitCast) {
  const DType from = c.in(0)->dtype(), to = c.dtype("to");
  c.check(from != DType::kString && to != DType::kString && size_of(from) == size_of(to) &&
              is_packed(from) == is_packed(to),
          "{} and {} have not the same number of bits", anymps::name(from), name(to_data_type(to)));
  return {c.add("reinterpret", {c.in(0)}, {{"dtype", to}})};
}

}  // namespace

}  // namespace anymps::onnx
