// SPDX-License-Identifier: Apache-2.0
// The numbers among an elementwise op's attributes, as its function takes them after its elements.
#pragma once

#include <vector>

#include "ops/op.h"

namespace anymps {

// All attributes that are whole numbers or floats, in the record's order.
inline std::vector<double> number_attrs(const Op& op, const Attrs& attrs) {
  std::vector<double> numbers;
  for (const AttrSpec& spec : op.attrs) {
    if (spec.kind == AttrKind::kInt)
      numbers.push_back(static_cast<double>(attrs.i(spec.name.c_str())));
    if (spec.kind == AttrKind::kFloat) numbers.push_back(attrs.f(spec.name.c_str()));
  }
  return numbers;
}

}  // namespace anymps
