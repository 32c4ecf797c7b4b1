// SPDX-License-Identifier: Apache-2.0
// Attributes that a gradient hands on to an op with attributes of the same names.
#pragma once

#include "ops/gradient.h"

namespace anymps {

// The attributes of the node that `op` has too.
inline NamedAttrs shared_attrs(GradientContext& ctx, const char* op) {
  NamedAttrs attrs;
  for (const NamedAttr& attr : ctx.attrs().named())
    if (get_op(op).attr_index(attr.name) >= 0) attrs.push_back(attr);
  return attrs;
}

}  // namespace anymps
