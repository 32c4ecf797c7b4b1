// SPDX-License-Identifier: Apache-2.0
#include "formats/executorch/operators/promotion.h"

namespace anymps::executorch {

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::kC64 || b == DType::kC64) {
    if (a == DType::kF64 || b == DType::kF64)
      fail(Code::kUnsupported, "f64 and c64 give complex numbers of f64");
    return DType::kC64;
  }
  if (is_float(a) && is_float(b)) {
    if (a == DType::kF64 || b == DType::kF64) return DType::kF64;
    return DType::kF32;  // two different ones of f32, f16 and bf16
  }
  if (is_float(a)) return a;
  if (is_float(b)) return b;
  if (a == DType::kBool) return b;
  if (b == DType::kBool) return a;
  const auto is_signed = [](DType dtype) { return contains(kSigned, dtype); };
  if (is_signed(a) == is_signed(b)) return size_of(a) > size_of(b) ? a : b;
  const DType with_sign = is_signed(a) ? a : b, without = is_signed(a) ? b : a;
  if (size_of(with_sign) > size_of(without)) return with_sign;
  switch (size_of(without)) {
    case 1:
      return DType::kI16;
    case 2:
      return DType::kI32;
    case 4:
      return DType::kI64;
    default:
      fail(Code::kUnsupported, "{} and {} have no common integer type", name(a), name(b));
  }
}

}  // namespace anymps::executorch
