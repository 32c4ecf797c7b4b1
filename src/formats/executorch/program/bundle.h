// SPDX-License-Identifier: Apache-2.0
// A program with test cases: ExecuTorch's bundled program (identifier "BP08"), or a program alone,
// which has none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/executorch/program/program.h"

namespace anymps::executorch {

struct TestCase {
  // One for each input or output of the method. Tensors have their elements in `data`; numbers are
  // Int, Bool or Double, and None is there where the file has nothing.
  std::vector<EValue> inputs, outputs;
};

struct TestSuite {
  std::string method;
  std::vector<TestCase> cases;
};

struct Bundle {
  bool bundled = false;  // it is more than a program alone
  Program program;
  std::vector<TestSuite> suites;

  const std::vector<TestCase>& tests(const Method& method) const;  // empty: none
};

bool is_bundle(std::string_view bytes);  // by its identifier
Bundle read_bundle(const Source& source);

// Which inputs of a method a graph has: tensors, since numbers are fixed in the program; and which
// outputs: tensors and numbers.
std::vector<size_t> fed_inputs(const Method& method);
std::vector<size_t> given_outputs(const Method& method);

// What a test expects of each of the given outputs; null: it says nothing of that one. A test may
// expect fewer outputs than there are. They are the first ones; but where just the inputs are
// missing that the method changes, which it gives before its outputs proper, they are the others.
std::vector<const EValue*> expected_outputs(const Method& method, const TestCase& test);

// Copies elements that lie in `dim_order` into the logical order of the axes.
void to_logical_order(const Tensor& tensor, std::string_view from, std::byte* to);
bool in_logical_order(const Tensor& tensor);

}  // namespace anymps::executorch
