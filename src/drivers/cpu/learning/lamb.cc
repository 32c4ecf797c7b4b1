// SPDX-License-Identifier: Apache-2.0
// Steps of LAMB on the CPU, whose record is beside those of the other optimizers. It needs norms of
// the whole parameter and of its change first, so it walks twice: blocks of fixed size are summed
// by themselves and then in order, whoever did them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/dense_rows.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

template <typename A>
class LambStep final : public Kernel {
 public:
  explicit LambStep(const KernelRequest& request)
      : attrs_(request.attrs),
        count_(request.in(0).count()),
        blocks_((count_ + kBlock - 1) / kBlock),
        outputs_(request.outputs.size()) {
    for (const size_t i : {kRate, kNumber, kMaster, kScale, kFound})
      dtypes_[i] = request.has(i) ? std::optional(request.in(i).dtype) : std::nullopt;
  }

  // The change, and for each block the two sums of squares.
  size_t scratch_bytes() const override {
    return static_cast<size_t>(2 * blocks_) * sizeof(double) +
           static_cast<size_t>(count_) * sizeof(A);
  }

  void run(const KernelArgs& args) const override {
    const bool stays = number(args, kFound, 0) != 0;
    const auto* values = static_cast<const A*>(args.inputs[dtypes_[kMaster] ? kMaster : 0]);
    auto* sums = static_cast<double*>(args.scratch);
    A* change = reinterpret_cast<A*>(sums + 2 * blocks_);
    if (stays) {
      for (const auto& [input, output] : {std::pair<size_t, size_t>{0, 0}, {4, 1}, {5, 2}})
        copy(args, input, output);
      if (dtypes_[kMaster]) copy(args, kMaster, kNewMaster);
      return;
    }
    const Numbers n = numbers(args);
    for_each_block([&](int64_t block, int64_t first, int64_t last) {
      double own = 0, other = 0;
      for (int64_t i = first; i < last; ++i) {
        change[i] = changed(args, values, n, i);
        own += double{values[i]} * double{values[i]};
        other += double{change[i]} * double{change[i]};
      }
      sums[2 * block] = own;
      sums[2 * block + 1] = other;
    });
    double own = 0, other = 0;
    for (int64_t block = 0; block < blocks_; ++block) {
      own += sums[2 * block];
      other += sums[2 * block + 1];
    }
    const double trust = own > 0 && other > 0 ? std::sqrt(own) / std::sqrt(other) : 1;
    const A size = static_cast<A>(number(args, kRate, 0) * trust);
    auto* to = static_cast<A*>(args.outputs[0]);
    A* master = outputs_ > kNewMaster && dtypes_[kMaster]
                    ? static_cast<A*>(args.outputs[kNewMaster])
                    : nullptr;
    for_each_block([&](int64_t, int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const A value = values[i] - size * change[i];
        to[i] = value;
        if (master) master[i] = value;
      }
    });
  }
  // Each element is read for the last time before it is written.
  bool in_place(size_t input, size_t output) const override {
    return (input == 0 && output == 0) || (input == 4 && output == 1) ||
           (input == 5 && output == 2) || (input == kMaster && output == kNewMaster);
  }

 private:
  static constexpr int64_t kBlock = 4096;
  static constexpr size_t kRate = 2, kNumber = 3, kMaster = 6, kScale = 7, kFound = 8,
                          kNewMaster = 3;

  struct Numbers {
    A sign, beta1, beta2, m_scale, v_scale, epsilon, decay;
  };
  Numbers numbers(const KernelArgs& args) const {
    const double beta1 = attrs_.f("beta1"), beta2 = attrs_.f("beta2"),
                 step = number(args, kNumber, 1);
    return {static_cast<A>((attrs_.b("maximize") ? -1 : 1) / number(args, kScale, 1)),
            static_cast<A>(1 - beta1),
            static_cast<A>(beta2),
            static_cast<A>(1 / (1 - std::pow(beta1, step))),
            static_cast<A>(1 / (1 - std::pow(beta2, step))),
            static_cast<A>(attrs_.f("epsilon")),
            static_cast<A>(attrs_.f("weight_decay"))};
  }
  double number(const KernelArgs& args, size_t i, double absent) const {
    double value = absent;
    if (dtypes_[i]) read_numbers(*dtypes_[i], args.inputs[i], 1, &value);
    return value;
  }
  void copy(const KernelArgs& args, size_t input, size_t output) const {
    if (output < outputs_ && args.outputs[output] != args.inputs[input] && count_ > 0)
      std::memcpy(args.outputs[output], args.inputs[input],
                  static_cast<size_t>(count_) * sizeof(A));
  }
  template <typename Fn>
  void for_each_block(const Fn& fn) const {
    parallel_for(0, blocks_, 2.0 * kBlock, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) fn(b, b * kBlock, std::min(count_, (b + 1) * kBlock));
    });
  }

  A changed(const KernelArgs& args, const A* values, const Numbers& n, int64_t i) const {
    const A g = n.sign * static_cast<const A*>(args.inputs[1])[i];
    const A before = static_cast<const A*>(args.inputs[4])[i];
    const A m = before + n.beta1 * (g - before);
    const A v = n.beta2 * static_cast<const A*>(args.inputs[5])[i] + (1 - n.beta2) * g * g;
    if (outputs_ > 1) static_cast<A*>(args.outputs[1])[i] = m;
    if (outputs_ > 2) static_cast<A*>(args.outputs[2])[i] = v;
    const A change = m * n.m_scale / (std::sqrt(v * n.v_scale) + n.epsilon);
    return n.decay == 0 ? change : change + n.decay * values[i];
  }

  Attrs attrs_;
  int64_t count_, blocks_;
  size_t outputs_;
  std::optional<DType> dtypes_[9];
};

CPU_KERNEL(lamb_step, "blocks") {
  const auto half = [](const auto& desc) { return desc && is_half(desc->dtype); };
  if (std::any_of(request.inputs.begin(), request.inputs.end(), half))
    return widened(request, make_lamb_step, why);
  if (!dense(request, why)) return nullptr;
  const DType dtype = request.in(0).dtype;
  for (const size_t i : {1u, 4u, 5u, 6u})
    if (request.has(i) && request.in(i).dtype != dtype)
      return refuse(why, "the parameter and its states have several dtypes");
  return with_computed(
      dtype, [&]<typename A>() -> KernelPtr { return std::make_shared<LambStep<A>>(request); });
}

}  // namespace

}  // namespace anymps::cpu
