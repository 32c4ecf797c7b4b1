// SPDX-License-Identifier: Apache-2.0
// One call of an op made ready to run: what plans, the interpreter, eager calls and the folding of
// constants have in common. What is known of the inputs goes in; out come the descriptions of the
// results and either views of the first input or a kernel. A plan adds where everything lies, the
// interpreter and eager calls find what was prepared before, folding runs it at once.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ops/infer.h"
#include "runtime/device.h"
#include "runtime/kernel_choice.h"

namespace anymps {

using Content = std::optional<std::vector<int64_t>>;  // elements of a short integer list, if known

// How an output lies in the memory of the first input.
struct OutputView {
  Strides strides;
  int64_t offset = 0;  // in elements
};

struct PreparedCall {
  using Choose = std::function<std::shared_ptr<const KernelChoice>(const KernelRequest&)>;
  // What the shapes of the results may wait for.
  enum Open { kNothing, kContents, kMeasure };

  PreparedCall(Device& device, const Op& op, Attrs attrs, std::string node);

  // In order. A constant is an input whose elements never change: kernels may pack it.
  void add_absent();
  void add_input(const TensorDesc& desc, Content content, ConstantPtr constant = nullptr);

  // Infers the descriptions of the results. Shapes that depend on elements need the contents of all
  // short lists among the inputs, or else shapes that the op has measured. `label` is the node's,
  // for messages.
  Open infer(size_t outputs, const std::string& label,
             const std::vector<Shape>* measured = nullptr);
  // Whether an input is a short list whose elements could be looked at, but were not.
  bool lacks_contents() const;

  // Fills `views`; false: the op must compute.
  bool find_views();
  // Finds a kernel. Where only the reference takes the strides, another one may take dense tensors:
  // then `packed` says which inputs are to be copied before, `aside` which outputs after, and the
  // request is for the copies.
  void choose(const Choose& choose);
  void choose();  // the driver's first

  KernelRequest request;
  std::vector<OutputView> views;  // of each output; not empty: there is no kernel
  std::shared_ptr<const KernelChoice> choice;
  std::vector<bool> packed, aside;

 private:
  Device& device_;
};

// Null: the elements must be copied.
std::optional<OutputView> view_of(const Op& op, const Attrs& attrs, const TensorDesc& source,
                                  const std::vector<Content>& contents, size_t output,
                                  const Shape& shape, size_t outputs);

}  // namespace anymps
