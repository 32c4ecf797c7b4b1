// SPDX-License-Identifier: Apache-2.0
// The attributes of a case as eager calls take them.
#pragma once

#include <vector>

#include "runtime/eager/key.h"

namespace anymps::testing {

// Refers to the given attributes.
inline std::vector<EagerAttr> eager_attrs(const NamedAttrs& attrs) {
  std::vector<EagerAttr> result;
  for (const NamedAttr& attr : attrs) {
    EagerAttr eager;
    eager.name = attr.name.c_str();
    if (const auto* i = std::get_if<int64_t>(&attr.value)) eager.i = *i;
    if (const auto* f = std::get_if<double>(&attr.value)) {
      eager.kind = AttrKind::kFloat;
      eager.f = *f;
    }
    if (const auto* s = std::get_if<std::string>(&attr.value)) {
      eager.kind = AttrKind::kString;
      eager.s = s->c_str();
    }
    if (const auto* ints = std::get_if<std::vector<int64_t>>(&attr.value)) {
      eager.kind = AttrKind::kInts;
      eager.ints = *ints;
    }
    if (const auto* floats = std::get_if<std::vector<double>>(&attr.value)) {
      eager.kind = AttrKind::kFloats;
      eager.floats = *floats;
    }
    result.push_back(eager);
  }
  return result;
}

}  // namespace anymps::testing
