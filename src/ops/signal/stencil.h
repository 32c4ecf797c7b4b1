// SPDX-License-Identifier: Apache-2.0
// The windows that the attributes of a stencil describe.
#pragma once

#include "ops/infer.h"
#include "semantics/signal/stencil.h"

namespace anymps {

// For the last axes of x; checked.
Stencil stencil_of(const Attrs& attrs, const Shape& in, const Shape& window);
// As kernels have it: x has `lead` axes before those of the window, `in` are the others' extents.
struct StencilOnX {
  StencilOnX(const Attrs& attrs, const Shape& x, const Shape& window)
      : lead(x.size() - window.size()),
        in(x.begin() + static_cast<ptrdiff_t>(lead), x.end()),
        stencil(stencil_of(attrs, in, window)),
        reduce(attrs.s("reduce")),
        border(attrs.s("border")) {}

  size_t lead;
  Shape in;
  Stencil stencil;
  std::string reduce, border;
};
// What is outside of an empty axis has to be constant.
void check_border(const InferContext& ctx, const Dims& in);

OpWriter& stencil_attrs(OpWriter& op);  // a part of the records: all attributes but `reduce`

}  // namespace anymps
