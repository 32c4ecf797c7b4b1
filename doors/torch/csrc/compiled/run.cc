// SPDX-License-Identifier: Apache-2.0
#include <ATen/EmptyTensor.h>
#include "compiled/compiled_graph.h"
#include "device/allocator.h"
#include "device/generator.h"
#include "engine.h"
#include "types.h"

namespace anymps::aten {

Lowered::~Lowered() {
  if (executable) engine().executable_release(executable);
}

std::shared_ptr<const Lowered> CompiledGraph::lowered_for(const std::vector<at::Tensor>& inputs) {
  if (json_.empty()) return plain_;
  const std::lock_guard lock(mutex_);
  if (!weights_.constants_stay(inputs)) with_constants_ = nullptr;
  if (with_constants_) return with_constants_;
  if (const std::vector<size_t> constants = weights_.choose_constants(); !constants.empty()) {
    plain_ = nullptr;
    return with_constants_ = lower(json_, inputs, constants);
  }
  if (!plain_) plain_ = lower(json_, {}, {});
  return plain_;
}

std::vector<at::Tensor> CompiledGraph::run(const std::vector<at::Tensor>& inputs) {
  TORCH_CHECK(inputs.size() == inputs_, "the graph has ", inputs_, " inputs, ", inputs.size(),
              " given");
  const std::shared_ptr<const Lowered> lowered = lowered_for(inputs);
  std::vector<amps_view> feeds, results;
  feeds.reserve(lowered->feeds.size() + lowered->states);
  for (const size_t input : lowered->feeds) feeds.push_back(view_of(inputs[input]));
  std::vector<std::array<int32_t, Generator::kStateWords>> states(lowered->states);
  static constexpr int64_t kDims[] = {Generator::kStateWords};
  for (auto& state : states) {
    state = generator_or_default(std::nullopt).draw();
    feeds.push_back({state.data(), kDims, nullptr, AMPS_I32, 1});
  }
  std::vector<at::Tensor> outputs;
  outputs.reserve(lowered->outputs.size());
  for (const Lowered::Output& output : lowered->outputs) {
    outputs.push_back(at::detail::empty_strided_generic(output.dims, output.strides, &allocator(),
                                                        kKeys, output.dtype));
    results.push_back(view_to_write(outputs.back()));
  }
  check(engine().executable_run_views(lowered->executable, feeds.data(), feeds.size(),
                                      results.data(), results.size(), nullptr));
  return outputs;
}

}  // namespace anymps::aten
