// SPDX-License-Identifier: Apache-2.0
// The shapes and attributes that deformable convolution and its gradient have in common.
#pragma once

#include <utility>

#include "ops/expect.h"
#include "ops/layers/window.h"

namespace anymps {

struct DeformConvShapes {
  Dims x, w, y, offset, mask;
};

// Of x, w and what belongs to them; x is input `first`, w the one after it.
inline DeformConvShapes deform_conv_shapes(InferContext& ctx, size_t first) {
  expect_rank(ctx, first, 4, 4);
  expect_rank(ctx, first + 1, 4, 4);
  const Dims &x = ctx.shape(first), &w = ctx.shape(first + 1);
  const int64_t groups = ctx.attrs.i("groups"), offset_groups = ctx.attrs.i("offset_groups");
  ctx.check(groups >= 1 && offset_groups >= 1, "groups is {}, offset_groups {}", groups,
            offset_groups);
  ctx.check(may_equal(x[1], w[1] * groups),
            "x {} has {} channels, but w {} with {} groups takes {}", to_string(x), x[1].str(),
            to_string(w), groups, (w[1] * groups).str());
  for (const auto& [channels, parts] : {std::pair(w[0], groups), std::pair(x[1], offset_groups)})
    ctx.check(!channels.known() || channels.value() % parts == 0,
              "{} channels cannot be divided into {} groups", channels.str(), parts);
  const Dims out = window_outputs(ctx.attrs, {x[2], x[3]}, {w[2], w[3]});
  const Dim taps = w[2] * w[3] * offset_groups;
  return {x,
          w,
          {x[0], w[0], out[0], out[1]},
          {x[0], taps * 2, out[0], out[1]},
          {x[0], taps, out[0], out[1]}};
}

// Parts of a record.
inline OpWriter& deform_conv_inputs(OpWriter& op) {
  return op.input("x", kFloat, "T", "[N, C, H, W]")
      .input("w", kFloat, "T", "[O, C/groups, kH, kW]")
      .input("offset", kFloat, "T", "[N, offset_groups*kH*kW*2, oH, oW]");
}
inline OpWriter& deform_conv_mask(OpWriter& op) {
  return op.optional("mask", kFloat, "T", "[N, offset_groups*kH*kW, oH, oW]; absent: 1");
}
inline OpWriter& deform_conv_attrs(OpWriter& op) {
  return op.with(padded_window)
      .with(window_auto_pad)
      .attr("groups", 1)
      .attr("offset_groups", 1)
      .no_layout_tests();
}

}  // namespace anymps
