// SPDX-License-Identifier: Apache-2.0
// Test cases from the op table: for each op its dtypes, its shapes (the record's samples, or shapes
// made from its facts) and the ways in which its inputs may lie in memory.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/op.h"
#include "support/tensor.h"

namespace anymps::testing {

struct OpCase {
  const Op* op = nullptr;
  std::string label;  // "f32 [2, 3] x [3] strided"
  NamedAttrs attrs;
  TestInputs inputs;
  size_t outputs = 1;
  size_t offset = 0;  // elements by which the inputs are moved in their buffers
};

// Calls fn for every case of an op. Inputs depend on the op and the case alone.
void for_each_case(const Op& op, const std::function<void(OpCase&)>& fn);

// The first difference, or "". Elements may differ by the record's tolerance, relative to the
// element or to the largest element.
std::string difference(const Op& op, const TestTensor& actual, const TestTensor& expected);

}  // namespace anymps::testing
