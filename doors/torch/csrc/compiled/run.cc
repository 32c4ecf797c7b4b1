// SPDX-License-Identifier: Apache-2.0
#include "compiled/compiled_graph.h"

#include <ATen/EmptyTensor.h>
#include "device/allocator.h"
#include "device/generator.h"
#include "engine.h"
#include "types.h"

namespace anymps::aten {

CompiledGraph::~CompiledGraph() {
  if (executable_) engine().executable_release(executable_);
}

std::vector<at::Tensor> CompiledGraph::run(const std::vector<at::Tensor>& inputs) const {
  TORCH_CHECK(inputs.size() == inputs_, "the graph has ", inputs_, " inputs, ", inputs.size(),
              " given");
  std::vector<amps_view> feeds, results;
  feeds.reserve(inputs_ + states_);
  for (const at::Tensor& input : inputs) feeds.push_back(view_of(input));
  std::vector<std::array<int32_t, Generator::kStateWords>> states(states_);
  static constexpr int64_t kDims[] = {Generator::kStateWords};
  for (auto& state : states) {
    state = generator_or_default(std::nullopt).draw();
    feeds.push_back({state.data(), kDims, nullptr, AMPS_I32, 1});
  }
  std::vector<at::Tensor> outputs;
  outputs.reserve(outputs_.size());
  for (const Output& output : outputs_) {
    outputs.push_back(at::detail::empty_strided_generic(output.dims, output.strides, &allocator(),
                                                        kKeys, output.dtype));
    results.push_back(view_to_write(outputs.back()));
  }
  check(engine().executable_run_views(executable_, feeds.data(), feeds.size(), results.data(),
                                      results.size(), nullptr));
  return outputs;
}

}  // namespace anymps::aten
