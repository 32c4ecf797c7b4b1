// SPDX-License-Identifier: Apache-2.0
// pad. A constant border is a fill and a copy of what lies inside. A border that repeats the input
// is a copy whose sources are listed axis by axis, once, when the kernel is made.
#include <algorithm>
#include <cstring>

#include "drivers/cpu/common/copy.h"
#include "drivers/cpu/threads.h"
#include "drivers/kernel.h"
#include "ops/shape_rules.h"
#include "semantics/elements.h"

namespace anymps::cpu {

namespace {

class ConstantPad final : public Kernel {
 public:
  ConstantPad(const KernelRequest& request, const std::vector<int64_t>& pads)
      : fill_(size_of(request.out().dtype), request.out().shape, request.out().strides,
              Strides(request.out().shape.size(), 0)),
        inside_(size_of(request.out().dtype), place(request, pads), request.out().strides,
                request.in(0).strides),
        value_input_(request.has(2)) {
    store_number(request.out().dtype, request.attrs.f("value"), value_);
  }
  void run(const KernelArgs& args) const override {
    fill_.run(args.outputs[0], value_input_ ? args.inputs[2] : value_);
    inside_.run(static_cast<char*>(args.outputs[0]) + to_,
                static_cast<const char*>(args.inputs[0]) + from_);
  }

 private:
  // Sets where what is inside y begins; returns its shape. Negative pads crop.
  Shape place(const KernelRequest& request, const std::vector<int64_t>& pads) {
    const TensorDesc &x = request.in(0), &y = request.out();
    const int64_t size = size_of(x.dtype);
    const size_t rank = x.shape.size();
    Shape inside = x.shape;
    for (size_t i = 0; i < rank; ++i) {
      const int64_t before = pads[i], after = pads[rank + i];
      const int64_t first = std::max<int64_t>(0, -before);
      inside[i] = std::max<int64_t>(0, x.shape[i] - first - std::max<int64_t>(0, -after));
      from_ += first * x.strides[i] * size;
      to_ += std::max<int64_t>(0, before) * y.strides[i] * size;
    }
    return inside;
  }

  int64_t from_ = 0, to_ = 0;  // in bytes; set while inside_ is made
  StridedCopy fill_, inside_;
  bool value_input_;
  alignas(16) std::byte value_[16] = {};
};

class RepeatingPad final : public Kernel {
 public:
  RepeatingPad(const KernelRequest& request, const std::vector<int64_t>& pads)
      : element_(size_of(request.out().dtype)) {
    const TensorDesc &x = request.in(0), &y = request.out();
    const std::string& mode = request.attrs.s("mode");
    const size_t rank = x.shape.size();
    for (size_t i = 0; i < rank; ++i) {
      Axis axis{{}, y.strides[i] * element_};
      for (int64_t at = 0; at < y.shape[i]; ++at)
        axis.from.push_back(source(mode, at - pads[i], x.shape[i]) * x.strides[i] * element_);
      axes_.push_back(std::move(axis));
    }
    for (size_t i = 0; i + 1 < rank; ++i) rows_ *= y.shape[i];
    // The part of a row that lies inside x is copied at once, if both lie densely there.
    if (x.strides.back() == 1 && y.strides.back() == 1) {
      first_ = std::clamp<int64_t>(pads[rank - 1], 0, y.shape.back());
      last_ = std::clamp<int64_t>(pads[rank - 1] + x.shape.back(), first_, y.shape.back());
    }
  }
  void run(const KernelArgs& args) const override {
    switch (element_) {
      case 1:
        return run_sized<1>(args);
      case 2:
        return run_sized<2>(args);
      case 4:
        return run_sized<4>(args);
      case 8:
        return run_sized<8>(args);
      default:
        return run_sized<16>(args);
    }
  }

 private:
  struct Axis {
    std::vector<int64_t> from;  // the source of each place of y, in bytes
    int64_t to = 0;             // between two places of y, in bytes
  };

  static int64_t source(const std::string& mode, int64_t at, int64_t extent) {
    if (at >= 0 && at < extent) return at;
    if (mode == "edge") return std::clamp<int64_t>(at, 0, extent - 1);
    if (mode == "wrap") return (at % extent + extent) % extent;
    const int64_t turn = mode == "reflect" ? 0 : 1;
    return at < 0 ? -at - turn : 2 * (extent - 1) - at + turn;
  }

  template <size_t kSize>
  void run_sized(const KernelArgs& args) const {
    const Axis& row = axes_.back();
    const auto columns = std::ssize(row.from);
    parallel_for(0, rows_, static_cast<double>(columns) * 0.5 + 5, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const auto* x = static_cast<const char*>(args.inputs[0]);
        auto* y = static_cast<char*>(args.outputs[0]);
        int64_t rest = r;
        for (size_t i = axes_.size() - 1; i-- > 0;) {
          const auto extent = std::ssize(axes_[i].from);
          x += axes_[i].from[rest % extent];
          y += rest % extent * axes_[i].to;
          rest /= extent;
        }
        auto copy = [&](int64_t from, int64_t to) {
          for (int64_t c = from; c < to; ++c) std::memcpy(y + c * row.to, x + row.from[c], kSize);
        };
        copy(0, first_);
        if (last_ > first_)
          std::memcpy(y + first_ * row.to, x + row.from[first_],
                      static_cast<size_t>(last_ - first_) * kSize);
        copy(last_, columns);
      }
    });
  }

  int64_t element_;
  std::vector<Axis> axes_;
  int64_t rows_ = 1;
  int64_t first_ = 0, last_ = 0;  // the columns that are copied at once
};

// The pads of all axes, begins then ends; nothing if they are not known.
using AllPads = std::optional<std::vector<int64_t>>;
AllPads all_pads(const KernelRequest& request, std::string& why) {
  auto pads = request.ints(1, "pads");
  if (!pads) return refuse<AllPads>(why, "pads are not known");
  const size_t rank = request.in(0).shape.size();
  if (request.has(3)) {
    const auto given = request.ints(3, "pads");
    if (!given) return refuse<AllPads>(why, "the padded axes are not known");
    const auto axes = normalize_axes(*given, static_cast<int64_t>(rank), "pad");
    if (pads->size() != 2 * axes.size()) return refuse<AllPads>(why, "pads are of another rank");
    std::vector<int64_t> all(2 * rank);
    for (size_t i = 0; i < axes.size(); ++i) {
      all[axes[i]] = (*pads)[i];
      all[axes[i] + rank] = (*pads)[i + axes.size()];
    }
    pads = all;
  }
  if (pads->empty()) pads->resize(2 * rank);
  if (pads->size() != 2 * rank) return refuse<AllPads>(why, "pads are of another rank");
  return pads;
}

KernelPtr make_pad(const KernelRequest& request, std::string& why) {
  const auto pads = all_pads(request, why);
  if (!pads) return nullptr;
  if (request.attrs.s("mode") == "constant") return std::make_shared<ConstantPad>(request, *pads);
  if (request.attrs.s("mode") == "anti_wrap") return refuse(why, "mode is anti_wrap");
  const TensorDesc& x = request.in(0);
  if (x.shape.empty()) return refuse(why, "a scalar");
  if (x.count() == 0) return refuse(why, "an empty input");
  return std::make_shared<RepeatingPad>(request, *pads);
}

struct Register {
  Register() { KernelRegistrar("cpu", "pad", "copy", 10, make_pad); }
};
const Register kRegister;

}  // namespace

}  // namespace anymps::cpu
