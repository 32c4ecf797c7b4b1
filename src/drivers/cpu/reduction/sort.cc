// SPDX-License-Identifier: Apache-2.0
// sort, argsort and top_k on the CPU: lines are shared out among threads, and each is sorted by the
// keys of its elements (semantics/sort_items.h).
#include <bit>
#include <cstring>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/lines.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/reduction/top_k_simd.h"
#include "drivers/cpu/threads.h"
#include "semantics/sort_items.h"

namespace anymps::cpu {

namespace {

struct Plan {
  Loops lines;  // operands: x, then the outputs
  int64_t length = 0, k = 0, x_step = 0, values_step = 0, indices_step = 0;
  bool descending = false;
  int values = -1, indices = -1;  // which output

  bool few() const { return k <= length / 8 || k <= std::min(length, kMostInserted); }
  int64_t items() const { return few() ? room_for_first(k) : 2 * length; }
};

template <typename T>
class Order final : public Kernel {
 public:
  explicit Order(Plan plan) : plan_(std::move(plan)) {}

  // A single line has its items there; of several, each thread has its own.
  size_t scratch_bytes() const override {
    return plan_.lines.count() == 1 ? static_cast<size_t>(plan_.items()) * sizeof(ItemOf<T>) : 0;
  }
  void run(const KernelArgs& args) const override {
    if (plan_.lines.count() == 1) return run_line(args, 0, static_cast<ItemOf<T>*>(args.scratch));
    const auto length = static_cast<double>(plan_.length);
    const double ns =
        plan_.few() ? 2 * length : length * 2 * std::bit_width(static_cast<uint64_t>(length));
    parallel_for(0, plan_.lines.count(), ns, [&](int64_t begin, int64_t end) {
      const auto items = std::make_unique_for_overwrite<ItemOf<T>[]>(plan_.items());
      for (int64_t i = begin; i < end; ++i) run_line(args, i, items.get());
    });
  }

 private:
  void run_line(const KernelArgs& args, int64_t i, ItemOf<T>* items) const {
    const T* x = static_cast<const T*>(args.inputs[0]) + plan_.lines.offset(0, i);
    if (ordered(items, x)) {
      // They are in `items`.
    } else if (plan_.few()) {
      first_items(items, plan_.k, x, plan_.length, plan_.x_step, plan_.descending);
    } else {
      read_items(items, x, plan_.length, plan_.x_step, plan_.descending);
      items = sort_items(items, items + plan_.length, plan_.length);
    }
    if (plan_.values >= 0) {
      T* to = static_cast<T*>(args.outputs[plan_.values]) + plan_.lines.offset(1, i);
      for (int64_t n = 0; n < plan_.k; ++n)
        to[n * plan_.values_step] = x[items[n].at() * plan_.x_step];
    }
    if (plan_.indices >= 0) {
      auto* to = static_cast<int64_t*>(args.outputs[plan_.indices]) + plan_.lines.offset(2, i);
      for (int64_t n = 0; n < plan_.k; ++n) to[n * plan_.indices_step] = items[n].at();
    }
  }

  // With vector code, where there is one for them.
  bool ordered(ItemOf<T>* items, const T* x) const {
    if constexpr (std::is_same_v<T, float>) {
      const int64_t n = plan_.length, k = plan_.k;
      if (k > kMostOrdered || n > kLongestOrdered || n <= 16) return false;
      float line[kLongestOrdered];
      if (plan_.x_step != 1) {
        for (int64_t i = 0; i < n; ++i) line[i] = x[i * plan_.x_step];
        x = line;
      }
      uint64_t words[kMostOrdered];
      if (!order_first(x, n, k, plan_.descending, words)) return false;
      for (int64_t i = 0; i < k; ++i) items[i].word = words[i];
      return true;
    }
    return (void)items, (void)x, false;
  }

  Plan plan_;
};

KernelPtr make_order(const KernelRequest& request, std::optional<size_t> axis, bool descending,
                     int values, int indices, std::string& why) {
  if (!axis) return nullptr;
  const TensorDesc& x = request.in(0);
  if (x.shape[*axis] >= kLongestLine) return refuse(why, "the lines are too long");
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
  return dispatch<kReal | kBoolean>(x.dtype, [&]<typename T>() -> KernelPtr {
    return std::make_shared<Order<T>>(std::move(plan));
  });
}

CPU_KERNEL(sort, "keys") {
  return make_order(request, known_axis(request, 1, request.in(0).rank(), why),
                    request.attrs.b("descending"), 0, -1, why);
}
CPU_KERNEL(sort_with_indices, "keys") {
  return make_order(request, known_axis(request, 1, request.in(0).rank(), why),
                    request.attrs.b("descending"), 0, 1, why);
}
CPU_KERNEL(argsort, "keys") {
  return make_order(request, known_axis(request, 1, request.in(0).rank(), why),
                    request.attrs.b("descending"), -1, 0, why);
}
CPU_KERNEL(top_k, "keys") {
  const auto axis = known_axis(request, 2, request.in(0).rank(), why);
  if (axis && request.out().shape[*axis] > request.in(0).shape[*axis])
    return refuse(why, "k is above the extent");
  return make_order(request, axis, request.attrs.b("largest"), 0,
                    request.outputs.size() > 1 ? 1 : -1, why);
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
        index_bytes_((indices.bytes() + 63) / 64 * 64) {}
  size_t scratch_bytes() const override { return index_bytes_ + order_->scratch_bytes(); }
  void run(const KernelArgs& args) const override {
    order_->run({&args.inputs[1], &args.scratch, static_cast<char*>(args.scratch) + index_bytes_,
                 args.queue});
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
  KernelPtr places = make_order(order, axis, request.attrs.b("largest"), -1, 0, why);
  if (!places) return nullptr;
  return std::make_shared<TopKGradient>(request, *axis, indices, std::move(places));
}

}  // namespace

}  // namespace anymps::cpu
