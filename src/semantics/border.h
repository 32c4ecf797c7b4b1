// SPDX-License-Identifier: Apache-2.0
// Where the elements of a border come from, for the modes of padding.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

namespace anymps {

struct BorderElement {
  int64_t place = 0;
  bool negated = false;  // anti_wrap alone
};

// The element that stands at `place` of an axis that goes on beyond [0, extent), which must not be
// empty; nothing in mode constant.
inline std::optional<BorderElement> border_element(const std::string& mode, int64_t place,
                                                   int64_t extent) {
  if (place >= 0 && place < extent) return BorderElement{place, false};
  const auto modulo = [&](int64_t period) { return (place % period + period) % period; };
  if (mode == "edge") return BorderElement{std::clamp<int64_t>(place, 0, extent - 1), false};
  if (mode == "wrap") return BorderElement{modulo(extent), false};
  if (mode == "anti_wrap") return BorderElement{modulo(extent), modulo(2 * extent) >= extent};
  if (mode == "reflect") {
    if (extent == 1) return BorderElement{0, false};
    const int64_t at = modulo(2 * (extent - 1));
    return BorderElement{std::min(at, 2 * (extent - 1) - at), false};
  }
  if (mode == "symmetric") {
    const int64_t at = modulo(2 * extent);
    return BorderElement{std::min(at, 2 * extent - 1 - at), false};
  }
  return std::nullopt;
}

}  // namespace anymps
