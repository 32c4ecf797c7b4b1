// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/elementwise/tile_ops.h"

#include <array>
#include <map>

#include "drivers/cpu/elementwise/cast_simd.h"
#include "drivers/cpu/isa.h"

namespace anymps::cpu {

namespace {

struct Tables {
  std::map<std::pair<std::string, DType>, TileOp, std::less<>> ops;
  std::array<std::array<TileOp, kDTypeCount>, kDTypeCount> casts;

  TileOp& cast(DType from, DType to) {
    return casts[static_cast<size_t>(from)][static_cast<size_t>(to)];
  }

  Tables() {
    isa();
    std::vector<TileOp> all;
    append_plain_ops(all);
    append_float_ops(all);  // these and the next replace the plain ones where both have one
    append_casts(all);
    for (const DType from : kComputeDTypes)
      for (const DType to : kComputeDTypes)
        cast(from, to) = {"cast", from, to, 1, plain_cast(from, to)};
    for (TileOp& op : all)
      if (op.name == "cast")
        cast(op.in, op.out) = op;
      else
        ops[{op.name, op.in}] = op;
  }
};

const Tables& tables() {
  static const Tables& all = *new Tables;  // even while the process exits
  return all;
}

}  // namespace

const TileOp* find_tile_op(std::string_view name, DType dtype) {
  auto it = tables().ops.find(std::pair<std::string, DType>(name, dtype));
  return it == tables().ops.end() ? nullptr : &it->second;
}

const char* tile_kernel_name(std::string_view op) {
  const char* kernel = nullptr;
  for (const DType dtype : kComputeDTypes) {
    const TileOp* function = find_tile_op(op, dtype);
    if (function && (!kernel || std::string_view(function->kernel) == "simd"))
      kernel = function->kernel;
  }
  return kernel;
}

const TileOp* find_cast(DType from, DType to) {
  const TileOp& op = tables().casts[static_cast<size_t>(from)][static_cast<size_t>(to)];
  return op.run ? &op : nullptr;
}

}  // namespace anymps::cpu
