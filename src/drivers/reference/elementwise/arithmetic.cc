// SPDX-License-Identifier: Apache-2.0
// Reference kernels of elementwise arithmetic that depends on attributes, and of identity.
#include "drivers/reference/elementwise/elementwise.h"
#include "drivers/reference/move.h"

namespace anymps {

REFERENCE(identity) { move_in_order(args.in[0], args.out[0]); }

REFERENCE(div) {
  const std::string& rounding = args.attrs.s("rounding");
  if (rounding == "none") return map_binary<kNumber>(args, scalar::div);
  const bool floor = rounding == "floor";
  dispatch<kReal>(args.in[0].dtype, [&]<typename T>() {
    map_elements<T, T, T>(args, [floor](Wide<T> a, Wide<T> b) -> Wide<T> {
      const auto x = static_cast<Compute<T>>(a), y = static_cast<Compute<T>>(b);
      return floor ? scalar::div_floor(x, y) : scalar::div_trunc(x, y);
    });
  });
}

REFERENCE(min) {
  const bool propagate_nan = args.attrs.b("propagate_nan");
  map_binary<kOrdered>(args, [=](auto a, auto b) { return scalar::min(a, b, propagate_nan); });
}

REFERENCE(max) {
  const bool propagate_nan = args.attrs.b("propagate_nan");
  map_binary<kOrdered>(args, [=](auto a, auto b) { return scalar::max(a, b, propagate_nan); });
}

}  // namespace anymps
