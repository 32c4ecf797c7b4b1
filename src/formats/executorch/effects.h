// SPDX-License-Identifier: Apache-2.0
// Which values an instruction reads and which it writes.
#pragma once

#include <vector>

#include "formats/executorch/program/program.h"

namespace anymps::executorch {

struct Effects {
  std::vector<int32_t> reads, writes;
};

// `inputs[d]` is how many of the arguments of delegate d are inputs; the others are outputs.
Effects effects_of(const Method& method, const Instruction& instruction,
                   const std::vector<size_t>& inputs);

// A row of the result of torch.map or torch.scan; its result is not the last argument.
inline constexpr const char* kCopyIndex = "executorch_prim::et_copy_index.tensor";
// A tensor of dynamic shape that shares another's memory.
inline constexpr const char* kDynamicView = "executorch_prim::et_view.default";

// The arguments that a call changes besides its results, by their position.
const std::vector<size_t>& changed_arguments(const std::string& op);
// An operator that changes its first argument gives it as its result, too: "aten::copy_".
inline bool is_in_place(const std::vector<size_t>& changed) {
  return !changed.empty() && changed[0] == 0;
}

}  // namespace anymps::executorch
