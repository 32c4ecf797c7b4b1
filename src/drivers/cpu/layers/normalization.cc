// SPDX-License-Identifier: Apache-2.0
// Normalization over rows that lie densely in memory (layer_norm, rms_norm) and over groups of
// channels (group_norm, instance_norm). batch_norm is one line for each channel where
// these are dense, else elementwise: a tile program.
#include <cmath>
#include <cstring>

#include "drivers/cpu/common/loops.h"
#include "drivers/cpu/common/row_access.h"
#include "drivers/cpu/common/row_ops.h"
#include "drivers/cpu/common/short_rows.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/elementwise/tile_kernel.h"
#include "drivers/cpu/layers/normalizations.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

struct Statistics {
  float mean = 0, scale = 0;
};

// Of one dense row. Two passes: the variance of large numbers must not cancel.
Statistics statistics(const RowAccess& access, const void* row, int64_t length, double epsilon,
                      bool centered) {
  const RowOps& ops = row_ops();
  alignas(64) float buffer[kRowTile];
  const double count = static_cast<double>(length);
  double sum = 0, squares = 0;
  if (centered)
    for_row_tiles(length,
                  [&](int64_t i, int64_t n) { sum += ops.sum(access.read(row, i, n, buffer), n); });
  const float mean = static_cast<float>(sum / count);
  for_row_tiles(length, [&](int64_t i, int64_t n) {
    const float* x = access.read(row, i, n, buffer);
    squares += centered ? ops.sum_centered(x, mean, n) : ops.sum_squares(x, n);
  });
  return {mean, static_cast<float>(1 / std::sqrt(squares / count + epsilon))};
}

// The stride with which axes [first, last) are walked as one dense run; false if they are not one.
bool is_dense(const TensorDesc& desc, size_t first, size_t last) {
  int64_t step = 1;
  for (size_t i = last; i-- > first;) {
    if (desc.shape[i] != 1 && desc.strides[i] != step) return false;
    step *= desc.shape[i];
  }
  return true;
}

// Leading axes of `desc`, with the others at 0.
Strides leading(const TensorDesc& desc, size_t axes) {
  return Strides(desc.strides.begin(), desc.strides.begin() + static_cast<ptrdiff_t>(axes));
}

class RowNorm final : public Kernel {
 public:
  RowNorm(const KernelRequest& request, size_t axis, bool centered) : centered_(centered) {
    const TensorDesc& x = request.in(0);
    element_ = size_of(x.dtype);
    epsilon_ = request.attrs.f("epsilon");
    access_ = RowAccess(x.dtype, 1);
    length_ = element_count(Shape(x.shape.begin() + axis, x.shape.end()));
    gamma_ = request.has(1);
    beta_ = request.has(2);
    outputs_ = request.outputs.size();
    const Shape rows(x.shape.begin(), x.shape.begin() + static_cast<ptrdiff_t>(axis));
    std::vector<Strides> strides = {leading(request.out(), axis), leading(x, axis)};
    for (size_t i = 1; i < outputs_; ++i) strides.push_back(leading(request.out(i), axis));
    rows_ = make_loops(rows, std::move(strides));
    in_place_ = x == request.out();
  }

  void run(const KernelArgs& args) const override {
    parallel_for(
        0, rows_.count(), 20 + 0.4 * static_cast<double>(length_), [&](int64_t begin, int64_t end) {
          if (access_.direct() && outputs_ == 1 && length_ > 0 && length_ <= short_row_ops().most)
            return run_short_rows(args, begin, end);
          for (int64_t i = begin; i < end; ++i) run_row(args, i);
        });
  }
  bool in_place(size_t input, size_t output) const override {
    return input == 0 && output == 0 && in_place_;
  }

 private:
  void run_short_rows(const KernelArgs& args, int64_t begin, int64_t end) const {
    const ShortRowOps& ops = short_row_ops();
    const auto* gamma = gamma_ ? static_cast<const float*>(args.inputs[1]) : nullptr;
    const auto* beta = beta_ ? static_cast<const float*>(args.inputs[2]) : nullptr;
    rows_.for_lines(begin, end, [&](int64_t first, int64_t rows) {
      (centered_ ? ops.normalize : ops.normalize_rms)(
          {static_cast<const float*>(args.inputs[0]) + rows_.offset(1, first), rows_.last_step(1),
           static_cast<float*>(args.outputs[0]) + rows_.offset(0, first), rows_.last_step(0), rows,
           static_cast<size_t>(length_)},
          epsilon_, gamma, beta);
    });
  }

  void run_row(const KernelArgs& args, int64_t index) const {
    const RowOps& ops = row_ops();
    alignas(64) float in[kRowTile], gamma[kRowTile], beta[kRowTile], out[kRowTile];
    const char* x = at(args.inputs[0], rows_.offset(1, index));
    char* y = at(args.outputs[0], rows_.offset(0, index));
    const Statistics stats = statistics(access_, x, length_, epsilon_, centered_);
    for_row_tiles(length_, [&](int64_t i, int64_t n) {
      const float* g = gamma_ ? access_.read(args.inputs[1], i, n, gamma) : nullptr;
      const float* b = beta_ ? access_.read(args.inputs[2], i, n, beta) : nullptr;
      float* to = access_.target(y, i, out);
      ops.normalize(access_.read(x, i, n, in), stats.mean, stats.scale, g, b, to, n);
      access_.write(y, i, n, to);
    });
    for (size_t k = 1; k < outputs_; ++k) {
      float value = k == 1 && centered_ ? stats.mean : stats.scale;
      char* to = at(args.outputs[k], rows_.offset(k + 1, index));
      if (access_.direct())
        std::memcpy(to, &value, sizeof value);
      else
        access_.write(to, 0, 1, &value);
    }
  }
  char* at(void* base, int64_t offset) const {
    return static_cast<char*>(base) + offset * element_;
  }

  bool centered_, gamma_ = false, beta_ = false, in_place_ = false;
  int64_t element_ = 4;
  size_t outputs_ = 1;
  double epsilon_ = 0;
  int64_t length_ = 0;
  Loops rows_;  // operands y, x, mean, inv_std
  RowAccess access_;
};

// x is dense behind the batch axis: a group is one run, a channel a part of it.
class ChannelNorm final : public Kernel {
 public:
  ChannelNorm(const KernelRequest& request, int64_t groups) : groups_(groups) {
    const TensorDesc& x = request.in(0);
    element_ = size_of(x.dtype);
    epsilon_ = request.attrs.f("epsilon");
    access_ = RowAccess(x.dtype, 1);
    batch_ = x.shape[0];
    plane_ = element_count(Shape(x.shape.begin() + 2, x.shape.end()));
    channels_ = groups == 0 ? 0 : x.shape[1] / groups;
    x_step_ = x.strides[0];
    y_step_ = request.out().strides[0];
    for (size_t i : {size_t{1}, size_t{2}}) {
      has_[i - 1] = request.has(i);
      if (request.has(i)) parameter_[i - 1] = RowAccess(x.dtype, request.in(i).strides[0]);
    }
    in_place_ = x == request.out();
    outputs_ = request.outputs.size();
  }

  void run(const KernelArgs& args) const override {
    const int64_t run = channels_ * plane_;
    if (run == 0) return;
    parallel_for(0, batch_ * groups_, 0.4 * static_cast<double>(run),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) run_group(args, i / groups_, i % groups_);
                 });
  }
  bool in_place(size_t input, size_t output) const override {
    return input == 0 && output == 0 && in_place_;
  }

 private:
  void run_group(const KernelArgs& args, int64_t image, int64_t group) const {
    const RowOps& ops = row_ops();
    alignas(64) float in[kRowTile], out[kRowTile];
    const int64_t run = channels_ * plane_;
    const char* x = static_cast<char*>(args.inputs[0]) + (image * x_step_ + group * run) * element_;
    char* y = static_cast<char*>(args.outputs[0]) + (image * y_step_ + group * run) * element_;
    const Statistics stats = statistics(access_, x, run, epsilon_, true);
    for (int64_t k = 0; k < channels_; ++k) {
      const int64_t channel = group * channels_ + k;
      float parameters[2] = {1, 0}, buffer[kRowTile];
      for (size_t p = 0; p < 2; ++p)
        if (has_[p]) parameters[p] = *parameter_[p].read(args.inputs[p + 1], channel, 1, buffer);
      const char* from = x + k * plane_ * element_;
      char* to = y + k * plane_ * element_;
      for_row_tiles(plane_, [&](int64_t i, int64_t n) {
        float* target = access_.target(to, i, out);
        ops.affine(access_.read(from, i, n, in), stats.mean, stats.scale * parameters[0],
                   parameters[1], target, n);
        access_.write(to, i, n, target);
      });
    }
    for (size_t k = 1; k < outputs_; ++k) {
      const float value = k == 1 ? stats.mean : stats.scale;
      char* at = static_cast<char*>(args.outputs[k]) + (image * groups_ + group) * element_;
      if (access_.direct())
        std::memcpy(at, &value, sizeof value);
      else
        access_.write(at, 0, 1, &value);
    }
  }

  int64_t groups_ = 0, batch_ = 0, channels_ = 0, plane_ = 0, x_step_ = 0, y_step_ = 0;
  int64_t element_ = 4;
  double epsilon_ = 0;
  bool has_[2] = {false, false}, in_place_ = false;
  size_t outputs_ = 1;
  RowAccess access_, parameter_[2];
};

bool is_f64(const KernelRequest& request, std::string& why) {
  if (request.in(0).dtype != DType::kF64) return false;
  why = "x is f64";
  return true;
}

template <bool centered>
KernelPtr make_row_norm(const KernelRequest& request, std::string& why) {
  if (is_f64(request, why)) return nullptr;
  const TensorDesc& x = request.in(0);
  const size_t axis = normalize_axis(request.attrs.i("axis"), x.rank(), request.op->name.c_str());
  const size_t rank = x.shape.size();
  if (!is_dense(x, axis, rank) || !is_dense(request.out(), axis, rank))
    return refuse(why, "a row is not dense in memory");
  for (size_t i = 1; i < request.inputs.size(); ++i) {
    if (!request.has(i)) continue;
    TensorDesc wide = x;
    wide.strides = broadcast_strides(request.in(i), x.shape);
    bool shared = true;
    for (size_t a = 0; a < axis; ++a) shared = shared && (x.shape[a] == 1 || wide.strides[a] == 0);
    if (!shared || !is_dense(wide, axis, rank))
      return refuse(why, fmt::format("input {} is not one dense row", i));
  }
  return std::make_shared<RowNorm>(request, axis, centered);
}

KernelPtr make_channel_norm(const KernelRequest& request, std::string& why) {
  if (is_f64(request, why)) return nullptr;
  const TensorDesc& x = request.in(0);
  const bool instance = request.op->name == "instance_norm";
  const size_t axis = normalize_axis(request.attrs.i("axis"), x.rank(), request.op->name.c_str());
  if (axis != 1)
    return axis + 1 == x.shape.size()
               ? make_last_norm(request, instance ? x.shape[axis] : request.attrs.i("groups"), why)
               : refuse(why, "channels are neither first nor last");
  if (!is_dense(x, 1, x.shape.size()) || !is_dense(request.out(), 1, x.shape.size()))
    return refuse(why, "an image is not dense with channels first");
  for (size_t i = 1; i < request.outputs.size(); ++i)
    if (!request.out(i).contiguous()) return refuse(why, "the statistics are not contiguous");
  if (x.count() == 0 && request.outputs.size() > 1) return refuse(why, "statistics of nothing");
  return std::make_shared<ChannelNorm>(request, instance ? x.shape[1] : request.attrs.i("groups"));
}

// batch_norm of f32 whose channels are dense runs of some length: y = (x - mean) * scale + shift.
class ChannelLines final : public Kernel {
 public:
  ChannelLines(const KernelRequest& request, size_t axis)
      : epsilon_(request.attrs.f("epsilon")),
        channels_(request.in(0).shape[axis]),
        outer_(
            element_count(Shape(request.in(0).shape.begin(), request.in(0).shape.begin() + axis))),
        inner_(element_count(
            Shape(request.in(0).shape.begin() + axis + 1, request.in(0).shape.end()))),
        gamma_(request.has(3)),
        beta_(request.has(4)) {}

  static bool takes(const KernelRequest& request, size_t axis) {
    constexpr int64_t kLeastRun = 32;  // below it, finding the line takes longer than the run
    for (size_t i = 0; i < request.inputs.size(); ++i)
      if (request.has(i) && (request.in(i).dtype != DType::kF32 || !request.in(i).contiguous()))
        return false;
    const Shape& shape = request.in(0).shape;
    return request.out().contiguous() &&
           element_count(Shape(shape.begin() + axis + 1, shape.end())) >= kLeastRun;
  }

  void run(const KernelArgs& args) const override {
    const auto input = [&](size_t i) { return static_cast<const float*>(args.inputs[i]); };
    auto* const y = static_cast<float*>(args.outputs[0]);
    parallel_for(0, outer_ * channels_, 10 + 0.2 * static_cast<double>(inner_),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t c = i % channels_;
                     const double deviation =
                         std::sqrt(static_cast<double>(input(2)[c]) + epsilon_);
                     const double gamma = gamma_ ? static_cast<double>(input(3)[c]) : 1;
                     row_ops().affine(input(0) + i * inner_, input(1)[c],
                                      static_cast<float>(gamma / deviation),
                                      beta_ ? input(4)[c] : 0, y + i * inner_, inner_);
                   }
                 });
  }
  bool in_place(size_t input, size_t output) const override { return input == 0 && output == 0; }

 private:
  double epsilon_;
  int64_t channels_, outer_, inner_;
  bool gamma_, beta_;
};

CPU_KERNEL(batch_norm, "simd") {
  const TensorDesc& x = request.in(0);
  const size_t axis = normalize_axis(request.attrs.i("axis"), x.rank(), "batch_norm");
  if (ChannelLines::takes(request, axis)) return std::make_shared<ChannelLines>(request, axis);
  TileKernelBuilder builder(x.shape);
  const auto parameter = [&](size_t i) {
    TensorDesc desc = x;
    desc.strides = Strides(x.shape.size(), 0);
    desc.strides[axis] = request.in(i).strides[0];
    return builder.input(i, desc);
  };
  const auto call = [&](const char* name, int a, int b) {
    return builder.call(*find_tile_op(name, builder.dtype(a)), {a, b});
  };
  const int image = builder.input(0, x);
  const DType type = builder.dtype(image);
  int scale = call("add", parameter(2), builder.constant(type, request.attrs.f("epsilon")));
  scale = builder.call(*find_tile_op("rsqrt", type), {scale});
  if (request.has(3)) scale = call("mul", scale, parameter(3));
  int y = call("mul", call("sub", image, parameter(1)), scale);
  if (request.has(4)) y = call("add", y, parameter(4));
  builder.output(0, request.out(), y);
  return builder.build();
}

const KernelFamily kNormalization =
    normalizations("simd", 10, make_row_norm<true>, make_row_norm<false>, make_channel_norm);

}  // namespace

}  // namespace anymps::cpu
