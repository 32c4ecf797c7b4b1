// SPDX-License-Identifier: Apache-2.0
// Normalizations of what the vector kernels refuse: f64, rows that are not dense, images with their
// channels last in memory. Statistics are in double, and memory is read in the order it lies in.
#include <cmath>

#include "drivers/cpu/common/rows.h"
#include "drivers/cpu/layers/normalizations.h"
#include "drivers/kernel.h"

namespace anymps::cpu {

namespace {

// x and what goes with it as groups over one shape: strides of x, y, gamma, beta, mean, inv_std.
struct Layout {
  Shape shape;
  std::vector<bool> reduced;
  std::vector<Strides> operands;
};

template <typename T>
class GroupNorm {
 public:
  GroupNorm(const KernelRequest& request, const Layout& layout, bool centered)
      : groups_(layout.shape, layout.reduced, layout.operands),
        epsilon_(request.attrs.f("epsilon")),
        centered_(centered),
        gamma_(request.has(1)),
        beta_(request.has(2)),
        outputs_(request.outputs.size()) {}

  void operator()(const KernelArgs& args) const {
    groups_.run(4, [&](const Groups::Block& block) { run_block(args, block); });
  }

 private:
  static double number(const void* data, int64_t at) {
    return static_cast<double>(static_cast<Compute<T>>(static_cast<const T*>(data)[at]));
  }
  static void store(void* data, int64_t at, double value) {
    static_cast<T*>(data)[at] = static_cast<T>(static_cast<Compute<T>>(value));
  }

  void run_block(const KernelArgs& args, const Groups::Block& block) const {
    double means[Groups::kMost] = {}, scales[Groups::kMost] = {};
    const auto count = static_cast<double>(groups_.count());
    const void* x = args.inputs[0];
    if (centered_) {
      block.each([&](const Offsets& at, const Offsets& step, int64_t n, int64_t group) {
        for (int64_t i = 0; i < n; ++i) means[i * group] += number(x, at[0] + i * step[0]);
      });
      for (int64_t g = 0; g < block.size(); ++g) means[g] /= count;
    }
    block.each([&](const Offsets& at, const Offsets& step, int64_t n, int64_t group) {
      for (int64_t i = 0; i < n; ++i) {
        const double distance = number(x, at[0] + i * step[0]) - means[i * group];
        scales[i * group] += distance * distance;
      }
    });
    for (int64_t g = 0; g < block.size(); ++g)
      scales[g] = 1 / std::sqrt(scales[g] / count + epsilon_);
    block.each([&](const Offsets& at, const Offsets& step, int64_t n, int64_t group) {
      for (int64_t i = 0; i < n; ++i) {
        double value = (number(x, at[0] + i * step[0]) - means[i * group]) * scales[i * group];
        if (gamma_) value *= number(args.inputs[1], at[2] + i * step[2]);
        if (beta_) value += number(args.inputs[2], at[3] + i * step[3]);
        store(args.outputs[0], at[1] + i * step[1], value);
      }
    });
    for (size_t k = 1; k < outputs_; ++k)
      for (int64_t g = 0; g < block.size(); ++g)
        store(args.outputs[k], block.offset(3 + k, g), k == 1 && centered_ ? means[g] : scales[g]);
  }

  Groups groups_;
  double epsilon_;
  bool centered_, gamma_, beta_;
  size_t outputs_;
};

KernelPtr make_norm(const KernelRequest& request, const Layout& layout, bool centered) {
  return dispatch<kFloat>(request.in(0).dtype, [&]<typename T>() {
    return make_kernel(GroupNorm<T>(request, layout, centered));
  });
}

template <bool centered>
KernelPtr make_row_norm(const KernelRequest& request, std::string&) {
  const TensorDesc& x = request.in(0);
  const size_t axis = normalize_axis(request.attrs.i("axis"), x.rank(), request.op->name.c_str());
  Layout layout{x.shape, std::vector<bool>(x.shape.size()), {x.strides, request.out().strides}};
  for (size_t i = axis; i < x.shape.size(); ++i) layout.reduced[i] = true;
  for (const size_t i : {size_t{1}, size_t{2}})
    layout.operands.push_back(request.has(i) ? broadcast_strides(request.in(i), x.shape)
                                             : Strides(x.shape.size(), 0));
  for (size_t i = 1; i < request.outputs.size(); ++i)
    layout.operands.push_back(broadcast_strides(request.out(i), x.shape));
  return make_norm(request, layout, centered);
}

// The axis of the channels as two: groups and the channels of a group.
KernelPtr make_channel_norm(const KernelRequest& request, std::string& why) {
  const TensorDesc& x = request.in(0);
  if (x.count() == 0 && request.outputs.size() > 1) return refuse(why, "statistics of nothing");
  if (x.count() == 0) return make_kernel([](const KernelArgs&) {});
  const size_t axis = normalize_axis(request.attrs.i("axis"), x.rank(), request.op->name.c_str());
  const int64_t groups =
      request.op->name == "instance_norm" ? x.shape[axis] : request.attrs.i("groups");
  const int64_t channels = x.shape[axis] / groups;
  const auto split = [&](Strides strides) {
    strides.insert(axis, strides[axis] * channels);
    return strides;
  };
  Layout layout{x.shape, std::vector<bool>(x.shape.size() + 1, true), {}};
  layout.shape[axis] = channels;
  layout.shape.insert(axis, groups);
  layout.reduced[0] = layout.reduced[axis] = false;
  layout.operands = {split(x.strides), split(request.out().strides)};
  for (const size_t i : {size_t{1}, size_t{2}}) {
    Strides strides(x.shape.size(), 0);
    if (request.has(i)) strides[axis] = request.in(i).strides[0];
    layout.operands.push_back(split(strides));
  }
  for (size_t i = 1; i < request.outputs.size(); ++i) {
    Strides strides(layout.shape.size(), 0);
    strides[0] = request.out(i).strides[0];
    strides[axis] = request.out(i).strides[1];
    layout.operands.push_back(std::move(strides));
  }
  return make_norm(request, layout, true);
}

const KernelFamily kNormalizationPlain =
    normalizations("groups", 20, make_row_norm<true>, make_row_norm<false>, make_channel_norm);

}  // namespace

}  // namespace anymps::cpu
