// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "kernels/op.h"

namespace anymps::aten {

// What tells an op as part of a graph: the row of the op itself, or of its form with `out`, which
// has the same arguments.
struct Lowerable {
  std::shared_ptr<RowOp> row;
  c10::OperatorHandle of_row, op;
};

// "add.Tensor". Null: it has no row.
const Lowerable* find_lowerable(const std::string& name);

}  // namespace anymps::aten
