// SPDX-License-Identifier: Apache-2.0
#include "semantics/quantization_rules.h"

namespace anymps {

QuantGroups quant_groups(const char* op, const Shape& x, const Shape& scale,
                         const Strides& scale_strides, int64_t axis, int64_t block_size) {
  QuantGroups groups{Shape(x.size(), 1), Strides(x.size(), 0)};
  const auto refuse = [&](const char* reason) {
    fail(Code::kInvalidArgument, "[{}] scale or zero point {} does not fit x {}: {}", op,
         to_string(scale), to_string(x), reason);
  };
  require(block_size >= 0, "[{}] block_size {} is negative", op, block_size);
  if (element_count(scale) == 1) return groups;
  const auto rank = std::ssize(x);
  if (scale.size() == 1 && (rank != 1 || block_size == 0)) {
    const size_t at = normalize_axis(axis, rank, op);
    if (block_size != 0) refuse("blocks need scales of x's rank");
    if (scale[0] != x[at]) refuse("one scale is needed for each place on the axis");
    groups.strides[at] = scale_strides[0];
    return groups;
  }
  if (scale.size() != x.size()) refuse("the rank differs");
  for (size_t i = 0; i < x.size(); ++i) {
    const bool blocked =
        block_size > 0 && static_cast<int64_t>(i) == normalize_axis(axis, rank, op);
    if (blocked) {
      groups.blocks[i] = block_size;
      if ((x[i] + block_size - 1) / block_size != scale[i]) refuse("the number of blocks differs");
    } else {
      if (scale[i] == 0 ? x[i] != 0 : x[i] % scale[i] != 0) refuse("the blocks do not divide x");
      groups.blocks[i] = scale[i] == 0 || x[i] == 0 ? 1 : x[i] / scale[i];
    }
    groups.strides[i] = scale[i] == 1 ? 0 : scale_strides[i];
  }
  return groups;
}

}  // namespace anymps
