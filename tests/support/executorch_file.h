// SPDX-License-Identifier: Apache-2.0
// Writes programs and bundles of ExecuTorch for tests: what the model of a program says, as it is.
// Nothing is checked, so that files with dangling ids, sizes and places can be written too.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "formats/executorch/program/bundle.h"

namespace anymps::testing {

struct FileOptions {
  bool segments = true;  // constants and payloads after the FlatBuffer, with an extended header
  const char* identifier = "ET12";
  size_t repeat_last_value = 0;  // further entries of a method's values that are its last one
  // Changes the places (offset, size) of the segments before they are written down.
  std::function<void(std::vector<std::pair<uint64_t, uint64_t>>&)> change_segments;
  std::function<void(std::vector<uint64_t>&)> change_offsets;  // of the constants in their segment
};

// Tensors with `data` become constants, or initial states if they are planned.
std::string write_program(const executorch::Program& program, const FileOptions& options = {});
std::string write_bundle(const std::string& program,
                         const std::vector<executorch::TestSuite>& suites);

// Parts of programs.
executorch::Tensor tensor(DType dtype, executorch::Ints sizes);
executorch::Tensor planned(DType dtype, executorch::Ints sizes, uint64_t offset);
executorch::Tensor constant(DType dtype, executorch::Ints sizes, std::string_view data);
template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
// A method "forward" that adds its two inputs of 2 x 3: aten::add.out.
executorch::Program add_program();

}  // namespace anymps::testing
