// SPDX-License-Identifier: Apache-2.0
// One eager call on its way from the look-up to the kernel, whatever its tensors came in.
#pragma once

#include "runtime/eager/eager.h"

namespace anymps {

struct Eager::Request {
  const Op& op;
  const EagerKey& key;   // of the op and its attributes
  const BoundOp* bound;  // the attributes; or else
  std::span<const EagerAttr> attrs;
  std::span<const TensorView> inputs, outputs;  // outputs to be made are absent
  Queue& queue;
  std::span<const double> parameters = {};  // of the bound op
  // The same where they came as tensors.
  std::span<const Tensor* const> input_tensors = {};
  std::span<Tensor> output_tensors = {};
  std::span<const uint64_t> versions = {};  // of each input; 0: its elements may change; or none

  EagerKey whole_key() const {
    EagerKey whole = key;
    whole.add(inputs.size() << 32 | outputs.size());
    for (const TensorView& input : inputs) whole.add(input);
    for (const TensorView& output : outputs) whole.add_output(output);
    return whole;
  }
  Attrs complete_attrs() const {
    return bound ? bound->attrs_with(parameters) : complete(op, attrs);
  }
};

}  // namespace anymps
