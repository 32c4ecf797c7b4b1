// SPDX-License-Identifier: Apache-2.0
// masked_scatter on the CPU: elements of the source are handed out in order, on one thread. Where
// the result is x's own memory, only elements under the mask are touched.
#include <algorithm>

#include "drivers/cpu/common/by_size.h"
#include "drivers/cpu/common/dense.h"

namespace anymps::cpu {

namespace {

template <typename T>
class MaskedScatter final : public Kernel {
 public:
  explicit MaskedScatter(const KernelRequest& request)
      : count_(request.in(0).count()), room_(request.in(2).count()) {}
  bool in_place(size_t i, size_t) const override { return i == 0; }
  void run(const KernelArgs& args) const override {
    const auto* mask = static_cast<const uint8_t*>(args.inputs[1]);
    const T* source = static_cast<const T*>(args.inputs[2]);
    T* y = static_cast<T*>(args.outputs[0]);
    const int64_t taken =
        count_ - std::count(mask, mask + count_, uint8_t{0});  // before anything is written
    require(taken <= room_,
            "[masked_scatter] the mask is true more often than source has elements: {}", room_);
    if (args.inputs[0] != args.outputs[0])
      std::copy_n(static_cast<const T*>(args.inputs[0]), count_, y);
    for (int64_t i = 0; i < count_; ++i)
      if (mask[i]) y[i] = *source++;
  }

 private:
  int64_t count_, room_;
};

KernelPtr make_masked_scatter(const KernelRequest& request, std::string& why) {
  if (!dense(request, why)) return nullptr;
  return by_size(size_of(request.out().dtype), [&]<typename T>() -> KernelPtr {
    return std::make_shared<MaskedScatter<T>>(request);
  });
}

const KernelRegistrar kMaskedScatter("cpu", "masked_scatter", "plain", 10, make_masked_scatter);

}  // namespace

}  // namespace anymps::cpu
