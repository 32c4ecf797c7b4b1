// SPDX-License-Identifier: Apache-2.0
// What kernels share that work along lines of one axis, and that take an axis or another integer
// as an input: it must be known when they are made.
#pragma once

#include <optional>

#include "drivers/cpu/common/loops.h"
#include "drivers/kernel.h"

namespace anymps::cpu {

// Where each operand's lines along `axis` begin. All operands have `shape` except along that axis.
inline Loops line_starts(Shape shape, size_t axis, std::vector<Strides> strides) {
  shape[axis] = 1;
  return merge_loops(shape, std::move(strides));
}

// The integer of input i, if it is known, or else of the attribute.
inline std::optional<int64_t> known_int(const KernelRequest& request, size_t i, const char* attr) {
  if (!request.has(i)) return request.attrs.i(attr);
  if (i >= request.contents.size() || !request.contents[i] || request.contents[i]->size() != 1)
    return std::nullopt;
  return request.contents[i]->front();
}

inline std::optional<size_t> known_axis(const KernelRequest& request, size_t i, int64_t rank,
                                        std::string& why) {
  const auto axis = known_int(request, i, "axis");
  if (!axis) return refuse<std::optional<size_t>>(why, "the axis is not known");
  return normalize_axis(*axis, rank, request.op->name.c_str());
}

}  // namespace anymps::cpu
