// SPDX-License-Identifier: Apache-2.0
#include "runtime/eager/fixed.h"

#include <algorithm>

namespace anymps {

namespace {

bool same_description(const TensorView& a, const TensorView& b) {
  return a.dtype == b.dtype && a.rank == b.rank && row_major(a) && row_major(b) &&
         std::equal(a.dims, a.dims + a.rank, b.dims);
}

}  // namespace

std::unique_ptr<const FixedCall> FixedCall::make(std::shared_ptr<Device> device,
                                                 std::shared_ptr<const BoundOp> op,
                                                 std::span<const TensorView> inputs,
                                                 std::span<const TensorView> outputs) {
  auto entry = device->eager().fix(*op, inputs, outputs, device->queue());
  if (!entry) return nullptr;
  std::unique_ptr<FixedCall> made(new FixedCall);
  size_t count = 0;
  for (const auto views : {inputs, outputs})
    for (const TensorView& view : views) count += 2 * static_cast<size_t>(std::max(view.rank, 0));
  std::vector<int64_t>& numbers = made->numbers_;
  numbers.reserve(count);  // pointers into it stay
  const auto keep = [&](const int64_t* from, int32_t rank) -> const int64_t* {
    if (!from || rank <= 0) return nullptr;
    numbers.insert(numbers.end(), from, from + rank);
    return numbers.data() + numbers.size() - rank;
  };
  const auto kept = [&](const TensorView& view) {
    return TensorView{nullptr, keep(view.dims, view.rank), keep(view.strides, view.rank),
                      view.dtype, view.rank};
  };
  for (const TensorView& view : inputs) made->inputs_.push_back(kept(view));
  for (const TensorView& view : outputs) made->outputs_.push_back(kept(view));
  const Kernel& kernel = *entry->call.choice->kernel;
  for (size_t k = 0; k < inputs.size(); ++k)
    for (size_t i = 0; i < outputs.size(); ++i)
      made->in_place_.push_back(kernel.in_place(k, i) && !inputs[k].absent() &&
                                same_description(inputs[k], outputs[i]));
  made->device_ = std::move(device);
  made->op_ = std::move(op);
  made->entry_ = std::move(entry);
  return made;
}

// Whether there is memory everywhere, and the kernel may write where it is told to.
bool FixedCall::apart(void* const* inputs, void* const* outputs) const {
  const auto begin = [](void* data, const ByteRange& reach) {
    return static_cast<const char*>(data) + reach.begin;
  };
  const auto end = [](void* data, const ByteRange& reach) {
    return static_cast<const char*>(data) + reach.end;
  };
  for (size_t k = 0; k < inputs_.size(); ++k)
    if (!inputs[k] && !inputs_[k].absent()) return false;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!outputs[i]) return false;
    const char* const first = begin(outputs[i], entry_->output_reach[i]);
    const char* const last = end(outputs[i], entry_->output_reach[i]);
    for (size_t k = 0; k < inputs_.size(); ++k) {
      const ByteRange& reach = entry_->input_reach[k];
      if (begin(inputs[k], reach) >= last || first >= end(inputs[k], reach)) continue;
      if (inputs[k] != outputs[i] || !in_place_[k * outputs_.size() + i]) return false;
    }
    for (size_t k = 0; k < i; ++k) {
      const ByteRange& reach = entry_->output_reach[k];
      if (begin(outputs[k], reach) < last && first < end(outputs[k], reach)) return false;
    }
  }
  return true;
}

void FixedCall::run(void* const* inputs, void* const* outputs) const {
  if (!apart(inputs, outputs)) return run_views(inputs, outputs);
  device_->eager().run_kernel(*entry_, {inputs, outputs, nullptr, &device_->queue()});
}

// What shares memory goes the long way, which copies or refuses. Only what has no elements needs
// none.
void FixedCall::run_views(void* const* inputs, void* const* outputs) const {
  std::vector<TensorView> from = inputs_, to = outputs_;
  const auto give = [&](TensorView& view, void* data, const char* what, size_t i) {
    view.data = data;
    const bool empty = std::find(view.dims, view.dims + std::max(view.rank, 0), 0) !=
                       view.dims + std::max(view.rank, 0);
    require(data || empty || view.absent(), "[{}] the memory of {} {} is NULL", op_->op.name, what,
            i);
  };
  for (size_t i = 0; i < from.size(); ++i) give(from[i], inputs[i], "input", i);
  for (size_t i = 0; i < to.size(); ++i) give(to[i], outputs[i], "output", i);
  device_->eager().call(*op_, from, to, device_->queue());
}

}  // namespace anymps
