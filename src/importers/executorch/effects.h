// SPDX-License-Identifier: Apache-2.0
// Which values an instruction reads and which it writes.
#pragma once

#include <vector>

#include "importers/executorch/program.h"

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

// "aten::copy_": the first argument is written as well as the result.
bool is_in_place(const std::string& op);
// The arguments that are written besides the results, by their position.
std::vector<size_t> written_arguments(const std::string& op);

}  // namespace anymps::executorch
