// SPDX-License-Identifier: Apache-2.0
#include "drivers/reference_fallback.h"

#include <algorithm>
#include <vector>

#include "drivers/reference/reference.h"

namespace anymps {

namespace {

class StagedKernel final : public Kernel {
 public:
  StagedKernel(Driver& driver, const KernelRequest& request, KernelPtr host)
      : driver_(driver),
        inputs_(request.inputs),
        outputs_(request.outputs),
        host_(std::move(host)) {}

  void run(const KernelArgs& args) const override {
    std::vector<std::vector<char>> staging(inputs_.size() + outputs_.size());
    std::vector<void*> in(inputs_.size(), nullptr), out(outputs_.size());
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i]) in[i] = stage(*inputs_[i], args.inputs[i], staging[i], args.queue, true);
    for (size_t i = 0; i < outputs_.size(); ++i)
      out[i] = stage(outputs_[i], args.outputs[i], staging[inputs_.size() + i], args.queue,
                     !outputs_[i].contiguous());
    host_->run({in.data(), out.data(), nullptr, args.queue});
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const auto& bytes = staging[inputs_.size() + i];
      const int64_t low =
          span_of(outputs_[i]).low * static_cast<int64_t>(size_of(outputs_[i].dtype));
      driver_.copy_to_device(static_cast<char*>(args.outputs[i]) + low, bytes.data(), bytes.size(),
                             args.queue);
    }
  }
  std::string detail() const override { return "through host memory"; }

 private:
  void* stage(const TensorDesc& desc, const void* device, std::vector<char>& bytes, Queue* queue,
              bool fetch) const {
    const Span span = span_of(desc);
    const auto size = static_cast<int64_t>(size_of(desc.dtype));
    bytes.resize(static_cast<size_t>(span.high - span.low + 1) * static_cast<size_t>(size));
    if (fetch && !bytes.empty())
      driver_.copy_to_host(bytes.data(), static_cast<const char*>(device) + span.low * size,
                           bytes.size(), queue);
    bytes.reserve(1);  // never a null pointer, which would mean an absent input
    return bytes.data() - span.low * size;
  }

  Driver& driver_;
  std::vector<std::optional<TensorDesc>> inputs_;
  std::vector<TensorDesc> outputs_;
  KernelPtr host_;
};

}  // namespace

KernelPtr make_oracle_kernel(const KernelRequest& request) {
  return make_reference_kernel(request);
}

bool reference_exists(const Op& op) { return has_reference(op); }

KernelPtr make_fallback_kernel(Driver& driver, const KernelRequest& request) {
  KernelPtr host = make_reference_kernel(request);
  if (!host || driver.traits().host_visible) return host;
  return std::make_shared<StagedKernel>(driver, request, std::move(host));
}

}  // namespace anymps
