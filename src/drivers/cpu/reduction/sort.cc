// SPDX-License-Identifier: Apache-2.0
// sort, argsort and top_k on the CPU: lines are shared out among threads. A line's keys are
// brought to unsigned integers in the same order, so that one comparison serves every dtype and
// NaN needs no care; equal keys are told apart by their place.
#include <algorithm>
#include <bit>
#include <cstring>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/lines.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

template <typename T>
using UnsignedLike =
    std::conditional_t<sizeof(T) == 1, uint8_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t,
                                          std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

// An unsigned number that is in the order of the elements: NaN above all, -0 equal to 0.
template <typename T>
auto key_of(T element) {
  using U = UnsignedLike<T>;
  constexpr U sign = static_cast<U>(U{1} << (8 * sizeof(T) - 1));
  if constexpr (std::is_same_v<T, bool>) {
    U byte;
    std::memcpy(&byte, &element, 1);
    return static_cast<U>(byte != 0);
  } else if constexpr (std::is_unsigned_v<T>) {
    return element;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<U>(static_cast<U>(element) ^ sign);
  } else {
    const auto number = static_cast<Compute<T>>(element);
    if (number != number) return static_cast<U>(~U{0});
    U bits;
    std::memcpy(&bits, &element, sizeof bits);
    if (number == 0) bits = 0;
    return static_cast<U>(bits & sign ? ~bits : bits | sign);
  }
}

struct Plan {
  Loops lines;  // operands: x, then the outputs
  int64_t length = 0, k = 0, x_step = 0, values_step = 0, indices_step = 0;
  bool descending = false;
  int values = -1, indices = -1;  // which output
};

template <typename T>
void run_lines(const Plan& plan, const KernelArgs& args, int64_t begin, int64_t end) {
  using U = decltype(key_of(T{}));
  struct Item {
    U key;
    int64_t at;
  };
  std::vector<Item> items(static_cast<size_t>(plan.length));
  const auto before = [](const Item& a, const Item& b) {
    return a.key != b.key ? a.key < b.key : a.at < b.at;
  };
  for (int64_t i = begin; i < end; ++i) {
    const T* x = static_cast<const T*>(args.inputs[0]) + plan.lines.offset(0, i);
    for (int64_t n = 0; n < plan.length; ++n) {
      const U key = key_of(x[n * plan.x_step]);
      items[n] = {plan.descending ? static_cast<U>(~key) : key, n};
    }
    // A few of many: sorted after they are found.
    if (plan.k < plan.length / 4) {
      std::nth_element(items.begin(), items.begin() + plan.k, items.end(), before);
      std::sort(items.begin(), items.begin() + plan.k, before);
    } else {
      std::sort(items.begin(), items.end(), before);
    }
    if (plan.values >= 0) {
      T* to = static_cast<T*>(args.outputs[plan.values]) + plan.lines.offset(1, i);
      for (int64_t n = 0; n < plan.k; ++n) to[n * plan.values_step] = x[items[n].at * plan.x_step];
    }
    if (plan.indices >= 0) {
      auto* to = static_cast<int64_t*>(args.outputs[plan.indices]) + plan.lines.offset(2, i);
      for (int64_t n = 0; n < plan.k; ++n) to[n * plan.indices_step] = items[n].at;
    }
  }
}

KernelPtr make_order(const KernelRequest& request, std::optional<size_t> axis, bool descending,
                     int values, int indices) {
  if (!axis) return nullptr;
  const TensorDesc& x = request.in(0);
  Plan plan;
  plan.length = x.shape[*axis];
  plan.k = request.out().shape[*axis];
  plan.x_step = x.strides[*axis];
  plan.descending = descending;
  plan.values = values;
  plan.indices = indices;
  const auto strides = [&](int output) -> const Strides& {
    return request.out(output < 0 ? 0 : static_cast<size_t>(output)).strides;
  };
  plan.values_step = strides(values)[*axis];
  plan.indices_step = strides(indices)[*axis];
  plan.lines = line_starts(x.shape, *axis, {x.strides, strides(values), strides(indices)});
  if (x.count() == 0 || plan.k == 0) return make_kernel([](const KernelArgs&) {});
  const auto length = static_cast<double>(plan.length);
  const double ns = length * 3 * std::bit_width(static_cast<uint64_t>(plan.length));
  return dispatch<kReal | kBoolean>(x.dtype, [&]<typename T>() {
    return make_kernel([plan, ns](const KernelArgs& args) {
      parallel_for(0, plan.lines.count(), ns,
                   [&](int64_t begin, int64_t end) { run_lines<T>(plan, args, begin, end); });
    });
  });
}

CPU_KERNEL(sort, "keys") {
  return make_order(request, known_axis(request, 1, request.in(0).rank(), why),
                    request.attrs.b("descending"), 0, -1);
}
CPU_KERNEL(argsort, "keys") {
  return make_order(request, known_axis(request, 1, request.in(0).rank(), why),
                    request.attrs.b("descending"), -1, 0);
}
CPU_KERNEL(top_k, "keys") {
  const auto axis = known_axis(request, 2, request.in(0).rank(), why);
  if (axis && request.out().shape[*axis] > request.in(0).shape[*axis])
    return refuse(why, "k is above the extent");
  return make_order(request, axis, request.attrs.b("largest"), 0,
                    request.outputs.size() > 1 ? 1 : -1);
}

// dy goes to the places that top_k's indices name, the rest is 0.
class TopKGradient final : public Kernel {
 public:
  TopKGradient(const KernelRequest& request, size_t axis, const TensorDesc& indices,
               KernelPtr order)
      : order_(std::move(order)),
        lines_(line_starts(indices.shape, axis,
                           {indices.strides, request.in(0).strides, request.out().strides})),
        k_(indices.shape[axis]),
        index_step_(indices.strides[axis]),
        dy_step_(request.in(0).strides[axis]),
        dx_step_(request.out().strides[axis]),
        size_(static_cast<int64_t>(size_of(request.out().dtype))),
        bytes_(request.out().bytes()),
        index_bytes_(indices.bytes()) {}
  size_t scratch_bytes() const override { return index_bytes_; }
  void run(const KernelArgs& args) const override {
    order_->run({&args.inputs[1], &args.scratch, nullptr, args.queue});
    clear(args.outputs[0], bytes_);
    if (k_ == 0) return;
    const auto* indices = static_cast<const int64_t*>(args.scratch);
    parallel_for(0, lines_.count(), 3 * static_cast<double>(k_), [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t* at = indices + lines_.offset(0, line);
        const char* from =
            static_cast<const char*>(args.inputs[0]) + lines_.offset(1, line) * size_;
        char* to = static_cast<char*>(args.outputs[0]) + lines_.offset(2, line) * size_;
        for (int64_t i = 0; i < k_; ++i)
          std::memcpy(to + at[i * index_step_] * dx_step_ * size_, from + i * dy_step_ * size_,
                      size_);
      }
    });
  }

 private:
  KernelPtr order_;
  Loops lines_;  // operands indices, dy, dx
  int64_t k_, index_step_, dy_step_, dx_step_, size_;
  size_t bytes_, index_bytes_;
};

CPU_KERNEL(top_k_gradient, "keys") {
  const TensorDesc& x = request.in(1);
  const auto axis = known_axis(request, 2, x.rank(), why);
  if (!axis) return nullptr;
  if (!request.out().contiguous()) return refuse(why, "dx is not contiguous");
  if (request.in(0).shape[*axis] > x.shape[*axis]) return refuse(why, "k is above the extent");
  const TensorDesc indices(DType::kI64, request.in(0).shape);
  KernelRequest order = request;
  order.inputs = {x};
  order.outputs = {indices};
  return std::make_shared<TopKGradient>(request, *axis, indices,
                                        make_order(order, axis, request.attrs.b("largest"), -1, 0));
}

}  // namespace

}  // namespace anymps::cpu
