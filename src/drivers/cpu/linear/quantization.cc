// SPDX-License-Identifier: Apache-2.0
// Affine quantization over whole tensors, row by row: along a row the scale is one, changes from
// block to block, or from element to element.
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/linear/quantization_simd.h"

#include <cmath>
#include <mutex>
#include <vector>

#include "drivers/cpu/threads.h"
#include "semantics/elements.h"
#include "semantics/quantization_rules.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kChunk = 4096;  // elements of a row that is cut for threads

class Affine final : public Kernel {
 public:
  QuantFn fn_ = nullptr;
  size_t in_size_ = 1, out_size_ = 1;
  Shape shape_;  // of the rows, then their length
  QuantGroups groups_;
  int64_t scales_ = 1;  // how many there are
  DType scale_type_ = DType::kF32, zero_type_ = DType::kF32;
  bool has_scale_ = false, has_zero_ = false, one_zero_ = true;
  float scale_ = 1, zero_ = 0;  // from attributes

  size_t scratch_bytes() const override { return 2 * static_cast<size_t>(scales_) * sizeof(float); }

  void run(const KernelArgs& args) const override {
    auto* scales = static_cast<float*>(args.scratch);
    float* zeros = scales + scales_;
    read(args, 1, has_scale_, scale_type_, false, scale_, scales);
    read(args, 2, has_zero_, zero_type_, one_zero_, zero_, zeros);
    const int64_t length = shape_.back(),
                  rows = element_count(shape_) / std::max<int64_t>(length, 1);
    const int64_t cuts = scales_ == 1 ? (length + kChunk - 1) / kChunk : 1;
    const int64_t piece = scales_ == 1 ? kChunk : length;
    parallel_for(0, rows * cuts, 0.3 * static_cast<double>(std::min(piece, length)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t unit = begin; unit < end; ++unit) {
                     const int64_t first = unit % cuts * piece;
                     run_row(args, unit / cuts, first, std::min(piece, length - first), scales,
                             zeros);
                   }
                 });
  }

 private:
  void read(const KernelArgs& args, size_t input, bool present, DType dtype, bool one,
            float otherwise, float* to) const {
    const auto* from = present ? static_cast<const char*>(args.inputs[input]) : nullptr;
    for (int64_t i = 0; i < scales_; ++i)
      to[i] = from ? static_cast<float>(load_number(
                         dtype, from + (one ? 0 : i) * static_cast<int64_t>(size_of(dtype))))
                   : otherwise;
  }

  void run_row(const KernelArgs& args, int64_t row, int64_t first, int64_t count,
               const float* scales, const float* zeros) const {
    int64_t rest = row, group = 0;
    const size_t last = shape_.size() - 1;
    for (size_t i = last; i-- > 0; rest /= shape_[i])
      group += rest % shape_[i] / groups_.blocks[i] * groups_.strides[i];
    const size_t from = row * shape_.back() + first;
    const auto* in = static_cast<const char*>(args.inputs[0]) + from * in_size_;
    auto* out = static_cast<char*>(args.outputs[0]) + from * out_size_;
    const int64_t block = groups_.strides[last] == 0 ? count : groups_.blocks[last];
    if (block == 1) {
      fn_({in, out, static_cast<size_t>(count), scales + group, zeros + group, 1});
      return;
    }
    for (int64_t i = 0; i < count; i += block) {
      const int64_t at = group + i / block * groups_.strides[last];
      fn_({in + static_cast<size_t>(i) * in_size_, out + static_cast<size_t>(i) * out_size_,
           static_cast<size_t>(std::min(block, count - i)), scales + at, zeros + at, 0});
    }
  }
};

// Neighbouring axes along which the scale does not change become one.
void merge_axes(Affine& kernel) {
  Shape& shape = kernel.shape_;
  QuantGroups& groups = kernel.groups_;
  if (shape.empty()) {
    shape.push_back(1);
    groups.blocks.push_back(1);
    groups.strides.push_back(0);
  }
  for (size_t i = shape.size() - 1; i-- > 0;) {
    if (groups.strides[i] != 0 || groups.strides[i + 1] != 0) continue;
    shape[i] *= shape[i + 1];
    shape.erase(i + 1);
    groups.blocks.erase(i + 1);
    groups.strides.erase(i + 1);
    groups.blocks[i] = 1;
  }
}

KernelPtr make_affine(const KernelRequest& request, std::string& why, QuantFn fn) {
  const TensorDesc &x = request.in(0), &y = request.out();
  if (!fn) return refuse(why, fmt::format("{} to {}", name(x.dtype), name(y.dtype)));
  if (!x.contiguous() || !y.contiguous()) return refuse(why, "x or y is not contiguous");
  for (size_t i = 1; i < request.inputs.size(); ++i)
    if (request.has(i) && !request.in(i).contiguous())
      return refuse(why, "the scales are not contiguous");
  if (request.has(1) && request.in(1).dtype == DType::kF64) return refuse(why, "scale is f64");
  const int64_t count = request.has(1) ? request.in(1).count() : 1;
  const bool one_zero = !request.has(2) || request.in(2).count() == 1;
  if (!one_zero && request.in(2).shape != request.in(1).shape)
    return refuse(why, "there are more zero points than scales");
  auto kernel = std::make_shared<Affine>();
  kernel->fn_ = fn;
  kernel->in_size_ = size_of(x.dtype);
  kernel->out_size_ = size_of(y.dtype);
  kernel->shape_ = x.shape;
  kernel->scales_ = count;
  kernel->has_scale_ = request.has(1);
  kernel->has_zero_ = request.has(2);
  kernel->one_zero_ = one_zero;
  if (request.has(1)) kernel->scale_type_ = request.in(1).dtype;
  if (request.has(2)) kernel->zero_type_ = request.in(2).dtype;
  const bool attributes = request.op->attr_index("scale") >= 0;
  if (attributes) {
    kernel->scale_ = static_cast<float>(request.attrs.f("scale"));
    kernel->zero_ = static_cast<float>(request.attrs.f("zero_point"));
  }
  const Shape scale = request.has(1) ? request.in(1).shape : Shape{};
  kernel->groups_ =
      quant_groups(request.op->name.c_str(), x.shape, scale, contiguous_strides(scale),
                   request.attrs.i("axis"), attributes ? request.attrs.i("block_size") : 0);
  merge_axes(*kernel);
  return kernel;
}

CPU_KERNEL(quantize, "simd") {
  if (request.in(0).dtype != DType::kF32) return refuse(why, "x is not f32");
  if (!request.attrs.b("saturate")) return refuse(why, "saturate is false");
  return make_affine(request, why, quantize_fn(request.out().dtype));
}

CPU_KERNEL(dequantize, "simd") {
  if (request.out().dtype != DType::kF32) return refuse(why, "y is not f32");
  return make_affine(request, why, dequantize_fn(request.in(0).dtype));
}

CPU_KERNEL(requantize, "rows") {
  return make_affine(request, why, requantize_fn(request.out().dtype));
}

CPU_KERNEL(dynamic_quantize, "simd") {
  const TensorDesc& x = request.in(0);
  if (!x.contiguous() || !request.out().contiguous()) return refuse(why, "x is not contiguous");
  return make_kernel([count = x.count(), outputs = request.outputs.size(),
                      fn = quantize_fn(DType::kU8)](const KernelArgs& args) {
    const auto* in = static_cast<const float*>(args.inputs[0]);
    auto* out = static_cast<uint8_t*>(args.outputs[0]);
    float low = 0, high = 0;
    std::mutex mutex;
    parallel_for(0, count, 0.1, [&](int64_t begin, int64_t end) {
      float least = 0, most = 0;
      range_with_zero(in + begin, end - begin, least, most);
      std::lock_guard lock(mutex);
      low = std::min(low, least);
      high = std::max(high, most);
    });
    const DynamicSteps steps(low, high);
    parallel_for(0, count, 0.3, [&](int64_t begin, int64_t end) {
      fn({in + begin, out + begin, static_cast<size_t>(end - begin), &steps.scale, &steps.zero, 0});
    });
    if (outputs > 1) *static_cast<float*>(args.outputs[1]) = steps.scale;
    if (outputs > 2) *static_cast<uint8_t*>(args.outputs[2]) = static_cast<uint8_t>(steps.zero);
  });
}

}  // namespace

}  // namespace anymps::cpu
