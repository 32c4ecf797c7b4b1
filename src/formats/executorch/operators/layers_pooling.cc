// SPDX-License-Identifier: Apache-2.0
// Pools of torch. An image may come without a batch axis.
#include "formats/executorch/operators/aten.h"

namespace anymps::executorch {

namespace {

// x as [N, C, spatial…], and back.
class Batched {
 public:
  Batched(KernelArguments& c, Value* x, size_t spatial) : c_(c) {
    const int64_t rank = c.rank(x), full = static_cast<int64_t>(spatial) + 2;
    c.check(rank == full || rank == full - 1, "the input has rank {}, not {} or {}", rank, full - 1,
            full);
    added_ = rank != full;
    x_ = added_ ? unsqueeze(c, x, {0}) : x;
  }
  Value* x() const { return x_; }
  Value* back(Value* y) const { return added_ ? squeeze(c_, y, 0) : y; }

 private:
  KernelArguments& c_;
  Value* x_ = nullptr;
  bool added_ = false;
};

struct Window {
  Ints kernel, strides, padding;
};

// (kernel_size, stride, padding) from argument `first` on; no stride: the kernel's extents.
Window window(KernelArguments& c, size_t first, size_t spatial) {
  Window result;
  result.kernel = spread(c, c.ints(first), spatial, "kernel_size");
  const Ints strides = c.ints(first + 1);
  result.strides = strides.empty() ? result.kernel : spread(c, strides, spatial, "stride");
  result.padding = spread(c, c.ints(first + 2), spatial, "padding");
  for (const Ints* list : {&result.kernel, &result.strides, &result.padding})
    for (const int64_t number : *list)
      c.check(number >= 0 && number <= INT32_MAX, "the window has the number {}", number);
  return result;
}

NamedAttrs attrs_of(const Window& at, bool ceil_mode) {
  return {{"kernel", at.kernel},
          {"strides", at.strides},
          {"pads", twice(at.padding)},
          {"ceil_mode", ceil_mode}};
}

// (self, kernel_size, stride, padding, dilation, ceil_mode); places are counted in each plane.
Values max_pool(KernelArguments& c, size_t spatial, const char* indices) {
  const Batched image(c, c.tensor(0), spatial);
  NamedAttrs attrs = attrs_of(window(c, 1, spatial), c.b(5));
  attrs.emplace_back("dilations", spread(c, c.ints(4), spatial, "dilation"));
  attrs.emplace_back("indices", indices);
  Values results = c.add_all("max_pool", {image.x()}, attrs, 2);
  return {image.back(results[0]), image.back(results[1])};
}
Values max_pool2d(KernelArguments& c) { return max_pool(c, 2, "global_2d"); }
Values max_pool3d(KernelArguments& c) { return max_pool(c, 3, "global_3d"); }

// A sum divided by a number of the caller's choice: of a border of zeros, so that every window is
// full, the mean times the window's size.
Value* pool_with_divisor(KernelArguments& c, Value* x, const Window& at, bool ceil_mode,
                         double divisor) {
  const size_t spatial = at.kernel.size();
  Ints pads(2 * (spatial + 2), 0);
  double count = 1;
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t extent = known_extent(c, x, static_cast<int64_t>(i + 2));
    c.check(extent <= INT32_MAX, "an axis of {} elements", extent);
    const int64_t room = extent + 2 * at.padding[i] - at.kernel[i];
    c.check(room >= 0 && at.strides[i] > 0, "a window of {} every {} in an axis of {}",
            at.kernel[i], at.strides[i], extent);
    int64_t last = (room + (ceil_mode ? at.strides[i] - 1 : 0)) / at.strides[i];
    // A window that begins past the image and its border in front is left out.
    if (last * at.strides[i] >= extent + at.padding[i]) --last;
    pads[i + 2] = at.padding[i];
    pads[i + 2 + spatial + 2] = last * at.strides[i] + at.kernel[i] - extent - at.padding[i];
    count *= static_cast<double>(at.kernel[i]);
  }
  Value* wide = c.cast(x, wide_dtype(x->dtype()));
  Value* mean = c.add("avg_pool", {c.add("pad", {wide}, {{"pads", pads}})},
                      {{"kernel", at.kernel}, {"strides", at.strides}});
  return with_scalar(c, "mul", mean, count / divisor);
}

// (self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
Values avg_pool(KernelArguments& c, size_t spatial, bool with_divisor) {
  const Batched image(c, c.tensor(0), spatial);
  const Window at = window(c, 1, spatial);
  if (with_divisor && !c.is_none(6)) {
    c.check(c.f(6) != 0, "divisor_override is 0");
    return {image.back(pool_with_divisor(c, image.x(), at, c.b(4), c.f(6)))};
  }
  NamedAttrs attrs = attrs_of(at, c.b(4));
  attrs.emplace_back("count_include_pad", c.b(5));
  return {image.back(c.add("avg_pool", {image.x()}, attrs))};
}
Values avg_pool1d(KernelArguments& c) { return avg_pool(c, 1, false); }
Values avg_pool2d(KernelArguments& c) { return avg_pool(c, 2, true); }
Values avg_pool3d(KernelArguments& c) { return avg_pool(c, 3, true); }

constexpr int64_t kMaxParts = 1024;  // each is two nodes

// The means of `count` parts of an axis, which overlap where it does not divide evenly.
Value* adaptive_axis(KernelArguments& c, Value* x, int64_t axis, int64_t count) {
  const NamedAttrs over = {{"axes", Ints{axis}}, {"keep_dims", true}};
  const int64_t extent = known_extent(c, x, axis);
  c.check(count > 0 && extent > 0, "{} parts of an axis of {}", count, extent);
  if (count == extent) return x;
  if (count > kMaxParts) c.unsupported("{} parts of an axis are more than {}", count, kMaxParts);
  c.check(extent <= INT64_MAX / (count + 1), "an axis of {} elements", extent);
  Values means;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t start = i * extent / count, end = ((i + 1) * extent + count - 1) / count;
    means.push_back(c.add("reduce_mean", {slice(c, x, axis, start, end)}, over));
  }
  return means.size() == 1 ? means[0] : c.add("concat", means, {{"axis", axis}});
}

Values adaptive_avg_pool(KernelArguments& c, size_t spatial) {
  const Batched image(c, c.tensor(0), spatial);
  const Ints sizes = spread(c, c.ints(1), spatial, "output_size");
  Value* x = image.x();
  if (sizes == Ints(spatial, 1))
    return {image.back(c.add("reduce_mean", {x}, {{"axes", iota(2, c.rank(x))}}))};
  Ints kernel;  // of the axes that divide evenly
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t extent = known_extent(c, x, static_cast<int64_t>(i + 2));
    if (sizes[i] > 0 && extent > 0 && extent % sizes[i] == 0) kernel.push_back(extent / sizes[i]);
  }
  if (kernel.size() == spatial)
    return {image.back(c.add("avg_pool", {x}, {{"kernel", kernel}, {"strides", kernel}}))};
  x = c.cast(x, wide_dtype(x->dtype()));
  for (size_t i = 0; i < spatial; ++i)
    x = adaptive_axis(c, x, static_cast<int64_t>(i + 2), sizes[i]);
  return {image.back(x)};
}
Values adaptive_avg_pool1d(KernelArguments& c) { return adaptive_avg_pool(c, 1); }
Values adaptive_avg_pool2d(KernelArguments& c) { return adaptive_avg_pool(c, 2); }
Values adaptive_avg_pool3d(KernelArguments& c) { return adaptive_avg_pool(c, 3); }

// (grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices)
Values max_pool2d_backward(KernelArguments& c) {
  const Batched gradient(c, c.tensor(0), 2), x(c, c.tensor(1), 2), indices(c, c.tensor(7), 2);
  NamedAttrs attrs = attrs_of(window(c, 2, 2), c.b(6));
  attrs.emplace_back("dilations", spread(c, c.ints(5), 2, "dilation"));
  attrs.emplace_back("indices", "global_2d");
  attrs.emplace_back("reduce", "add");
  return {gradient.back(
      c.add("max_unpool", {gradient.x(), indices.x(), c.add("shape", {x.x()})}, attrs))};
}

// (grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor)
Values avg_pool2d_backward(KernelArguments& c) {
  if (!c.is_none(7)) c.unsupported("a divisor of the gradient");
  const Batched gradient(c, c.tensor(0), 2), x(c, c.tensor(1), 2);
  NamedAttrs attrs = attrs_of(window(c, 2, 2), c.b(5));
  attrs.emplace_back("count_include_pad", c.b(6));
  return {gradient.back(c.add("avg_pool_gradient", {gradient.x(), x.x()}, attrs))};
}

Values adaptive_avg_pool2d_backward(KernelArguments& c) {
  const Batched gradient(c, c.tensor(0), 2), x(c, c.tensor(1), 2);
  Ints kernel;
  for (int64_t axis = 2; axis < 4; ++axis) {
    const int64_t extent = known_extent(c, x.x(), axis),
                  count = known_extent(c, gradient.x(), axis);
    if (count == 0 || extent % count != 0)
      c.unsupported("{} parts of an axis of {}, which do not divide it evenly", count, extent);
    kernel.push_back(extent / count);
  }
  return {gradient.back(c.add("avg_pool_gradient", {gradient.x(), x.x()},
                              {{"kernel", kernel}, {"strides", kernel}}))};
}

const KernelConverters kAtenPool{
    {{"aten::_adaptive_avg_pool2d.out", "aten::adaptive_avg_pool2d.out"}, adaptive_avg_pool2d},
    {"aten::_adaptive_avg_pool2d_backward.out", adaptive_avg_pool2d_backward},
    {"aten::_adaptive_avg_pool3d.out", adaptive_avg_pool3d},
    {"aten::adaptive_avg_pool1d.out", adaptive_avg_pool1d},
    {"aten::avg_pool1d.out", avg_pool1d},
    {"aten::avg_pool2d.out", avg_pool2d},
    {"aten::avg_pool2d_backward.grad_input", avg_pool2d_backward},
    {"aten::avg_pool3d.out", avg_pool3d},
    {"aten::max_pool2d_with_indices.out", max_pool2d},
    {"aten::max_pool2d_with_indices_backward.grad_input", max_pool2d_backward},
    {"aten::max_pool3d_with_indices.out", max_pool3d},
};

}  // namespace

}  // namespace anymps::executorch
