// SPDX-License-Identifier: Apache-2.0
// Constants whose elements may change from one run to the next: views of a caller's memory, and
// what passes have made of them. Nobody may decide anything by their elements; whatever is computed
// from them ahead of a run is a recipe that names its inputs, so that it can be made again.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "memory/constant.h"

namespace anymps {

// Over memory that `owner` keeps alive. `data` is the first element; with strides the elements are
// packed whenever somebody asks for them.
ConstantPtr refreshable_constant(const TensorDesc& desc, const void* data,
                                 std::shared_ptr<const void> owner);
// What a recipe makes of other constants: refreshable if one of them is.
using Derivation = std::function<void(std::span<const ConstantPtr> inputs, std::byte* out)>;
ConstantPtr derived_constant(DType dtype, Shape shape, std::vector<ConstantPtr> inputs,
                             Derivation derivation);
// The same memory as another constant: what it holds now.
ConstantPtr refreshed(const ConstantPtr& source);
bool is_refreshable(const Constant& constant);

// Constants in place of others, and of all that was derived from these.
class Renewal {
 public:
  void replace(const Constant& old, ConstantPtr by) { made_[old.id()] = std::move(by); }
  // The constant itself where it depends on nothing that was replaced.
  ConstantPtr of(const ConstantPtr& constant);

 private:
  std::unordered_map<uint64_t, ConstantPtr> made_;  // by the id of the old one
};

}  // namespace anymps
