// SPDX-License-Identifier: Apache-2.0
// Resizing on the CPU. Nearest copies elements, or runs of them, by a table for each axis. Linear
// and cubic take one axis after the other, each a weighted sum of a few rows.
#include "drivers/cpu/signal/resize.h"

#include <cstring>

#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/signal/resize_simd.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

// Floats of input i if they are constant, else of the attribute; nothing if they are computed.
std::optional<std::vector<double>> floats_of(const KernelRequest& request, size_t i,
                                             const char* attr) {
  if (!request.has(i)) return request.attrs.floats(attr);
  const Constant* constant = request.constant(i);
  if (!constant || constant->dtype() != DType::kF32) return std::nullopt;
  const Constant::Bytes bytes = constant->data();
  const auto* values = reinterpret_cast<const float*>(bytes.get());
  return std::vector<double>(values, values + constant->desc().count());
}

}  // namespace

std::optional<std::vector<ResizeAxis>> resized_axes(const KernelRequest& request,
                                                    std::string& why) {
  const auto scales = floats_of(request, 2, "scales"), offsets = floats_of(request, 3, "offsets"),
             roi = floats_of(request, 4, "roi");
  const auto sizes = request.ints(1, "sizes");
  if (!scales || !offsets || !roi || !sizes) {
    why = "scales, offsets, roi or sizes are computed";
    return std::nullopt;
  }
  const Shape& in = request.in(0).shape;
  return resize_axes(resize_rule(request.attrs, in.size()), in, request.out().shape,
                     {*scales, *offsets, *roi}, *sizes);
}

std::vector<size_t> neighbouring_axes(const std::vector<ResizeAxis>& axes, std::string& why) {
  std::vector<size_t> resized;
  for (size_t i = 0; i < axes.size(); ++i)
    if (!axes[i].identity()) resized.push_back(i);
  if (!resized.empty() && resized.size() <= 2 && resized.back() - resized.front() <= 1)
    return resized;
  why = "not one axis, or two that follow each other";
  return {};
}

namespace {

// Rows of elements of some bytes, from places that a table for each axis tells.
struct NearestRows {
  int64_t count = 0, bytes = 0;
  std::vector<std::vector<int64_t>> tables;  // bytes from the first element, by place in y
  PickedRow picked;                          // of a row, if it can be made so

  void run(const char* from, char* to, int64_t begin, int64_t end) const {
    const int64_t row_bytes = bytes * std::ssize(tables.back());
    to += begin * row_bytes;
    // Divisions would take as long as a short row, so there is one for each run along the axis.
    static const std::vector<int64_t> kOne{0};
    const std::vector<int64_t>& axis = tables.size() > 1 ? tables[tables.size() - 2] : kOne;
    for (int64_t row = begin; row < end;) {
      const char* image = from + offset(row / std::ssize(axis));
      const int64_t first = row % std::ssize(axis),
                    last = std::min(std::ssize(axis), first + end - row);
      for (int64_t i = first; i < last;) {
        int64_t same = 1;  // rows that are made of one
        while (i + same < last && axis[i + same] == axis[i]) ++same;
        run_rows(image + axis[i], same, to);
        to += same * row_bytes;
        i += same;
      }
      row += last - first;
    }
  }

 private:
  // Of what lies outside of the last two axes.
  int64_t offset(int64_t index) const {
    int64_t sum = 0;
    for (size_t i = std::max<size_t>(2, tables.size()) - 2; i-- > 0;) {
      const auto extent = std::ssize(tables[i]);
      sum += tables[i][index % extent];
      index /= extent;
    }
    return sum;
  }
  void run_rows(const char* source, int64_t same, char* to) const {
    const int64_t row_bytes = bytes * std::ssize(tables.back());
    if (!picked.empty()) {
      if (count * row_bytes <= kCached) return copy_picked(picked, source, same, to);
      for (int64_t i = 0; i < same; ++i) copy_picked(picked, source, 1, to + i * row_bytes);
      return;
    }
    run_row(source, to);
    for (int64_t i = 1; i < same; ++i) std::memcpy(to + i * row_bytes, to, row_bytes);
  }
  void run_row(const char* source, char* to) const {
    switch (bytes) {
      case 1:
        return copy_elements<1>(source, to);
      case 2:
        return copy_elements<2>(source, to);
      case 4:
        return copy_elements<4>(source, to);
      case 8:
        return copy_elements<8>(source, to);
      default:
        return bytes < kBlock ? copy_short(source, to) : copy_runs(source, to);
    }
  }
  template <size_t kBytes>
  void copy_elements(const char* source, char* to) const {
    for (const int64_t at : tables.back()) {
      std::memcpy(to, source + at, kBytes);
      to += kBytes;
    }
  }
  void copy_short(const char* source, char* to) const {
    for (const int64_t at : tables.back()) {
      for (int64_t i = 0; i < bytes; ++i) to[i] = source[at + i];
      to += bytes;
    }
  }
  void copy_runs(const char* source, char* to) const {
    for (const int64_t at : tables.back()) {
      std::memcpy(to, source + at, bytes);
      to += bytes;
    }
  }

  // Larger results go to memory, which takes one stream better than several: 26 MB in 840 instead
  // of 1300 us, but 6.5 MB in 154 instead of 115.
  static constexpr int64_t kCached = int64_t{12} << 20;
  static constexpr int64_t kBlock = 16;  // a call for fewer bytes would take longer
};

KernelPtr make_nearest(const KernelRequest& request, std::string& why) {
  const TensorDesc &x = request.in(0), &y = request.out();
  if (request.attrs.s("mode") != "nearest") return refuse(why, "mode is not nearest");
  if (request.attrs.s("coordinate") == "tf_crop_and_resize") return refuse(why, "a crop");
  if (!y.contiguous()) return refuse(why, "y is not contiguous");
  if (y.count() == 0) return make_kernel([](const KernelArgs&) {});
  if (x.count() == 0) return refuse(why, "x is empty");
  const auto axes = resized_axes(request, why);
  if (!axes) return nullptr;
  const NearestRounding rounding = resize_filter(request.attrs).rounding;
  const int64_t size = size_of(x.dtype);
  // Trailing axes that keep their places and lie together are copied as one element.
  size_t rank = x.shape.size();
  int64_t run = 1;
  while (rank > 0 && (*axes)[rank - 1].identity() && x.strides[rank - 1] == run)
    run *= x.shape[--rank];
  NearestRows rows;
  rows.bytes = run * size;
  rows.tables.resize(std::max<size_t>(rank, 1), {0});
  for (size_t i = 0; i < rank; ++i) {
    rows.tables[i].clear();
    for (int64_t at = 0; at < y.shape[i]; ++at)
      rows.tables[i].push_back(((*axes)[i].identity() ? at : (*axes)[i].nearest(at, rounding)) *
                               x.strides[i] * size);
  }
  rows.count = y.count() / run / std::ssize(rows.tables.back());
  if (rank > 0 && rows.bytes == 4 && x.strides[rank - 1] == 1) {
    AxisTaps taps;
    taps.in = x.shape[rank - 1];
    for (const int64_t offset : rows.tables.back()) {
      taps.first.push_back(++taps.out);
      taps.indices.push_back(offset / 4);
      taps.weights.push_back(1);
    }
    rows.picked = make_picked(taps, 1);
    if (rows.picked.reads > taps.in) rows.picked = {};
  }
  const double ns = static_cast<double>(rows.tables.back().size()) *
                    (0.5 + static_cast<double>(rows.bytes) * 0.05);
  return make_kernel([rows = std::move(rows), ns](const KernelArgs& args) {
    parallel_for(0, rows.count, ns, [&](int64_t begin, int64_t end) {
      rows.run(static_cast<const char*>(args.inputs[0]), static_cast<char*>(args.outputs[0]), begin,
               end);
    });
  });
}

// One axis of a separable resize, over [outer, extent, inner].
template <typename T>
struct Pass {
  int64_t outer = 1, in = 1, out = 1, inner = 1;
  std::vector<int64_t> first;    // of output j's taps, with one more at the end
  std::vector<int64_t> indices;  // of the taps
  std::vector<T> weights;
  int64_t taps = 0;           // of the output in the middle
  int64_t low = 0, high = 0;  // and of those around it, from low to high
  T outside = 0;

  int64_t results() const { return outer * out * inner; }

  void run(const T* from, T* to) const {
    const double ns = static_cast<double>(indices.size()) * 0.3 + 2 * static_cast<double>(out);
    if (inner == 1)
      parallel_for(0, outer, ns, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) run_row(from + row * in, to + row * out);
      });
    else
      parallel_for(0, outer * out, ns * static_cast<double>(inner) / static_cast<double>(out),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t row = begin; row < end; ++row)
                       run_line(from + row / out * in * inner, row % out, to + row * inner);
                   });
  }

 private:
  // The last axis: each output is a sum of a few elements.
  void run_row(const T* source, T* target) const {
    const bool few = taps == 2 || taps == 4;
    for (int64_t j = 0; j < out; ++j) {
      if (few && j == low) {
        taps == 2 ? run_taps<2>(source, target) : run_taps<4>(source, target);
        j = high;
        if (j == out) return;
      }
      const int64_t a = first[j], b = first[j + 1];
      T sum = a == b ? outside : T{0};
      for (int64_t t = a; t < b; ++t) sum += weights[t] * source[indices[t]];
      target[j] = sum;
    }
  }
  template <int64_t kTaps>
  void run_taps(const T* source, T* target) const {
    const int64_t* index = indices.data() + first[low];
    const T* weight = weights.data() + first[low];
    for (int64_t j = low; j < high; ++j, index += kTaps, weight += kTaps) {
      T sum = weight[0] * source[index[0]];
      for (int64_t t = 1; t < kTaps; ++t) sum += weight[t] * source[index[t]];
      target[j] = sum;
    }
  }

  // Another axis: a sum of a few lines.
  void run_line(const T* source, int64_t j, T* target) const {
    const int64_t a = first[j], b = first[j + 1];
    if (a == b) std::fill_n(target, inner, outside);
    if (b - a == 2) {
      const T *one = source + indices[a] * inner, *other = source + indices[a + 1] * inner;
      const T u = weights[a], v = weights[a + 1];
      for (int64_t k = 0; k < inner; ++k) target[k] = u * one[k] + v * other[k];
      return;
    }
    for (int64_t t = a; t < b; ++t) {
      const T weight = weights[t];
      const T* line = source + indices[t] * inner;
      if (t == a)
        for (int64_t k = 0; k < inner; ++k) target[k] = weight * line[k];
      else
        for (int64_t k = 0; k < inner; ++k) target[k] += weight * line[k];
    }
  }
};

template <typename T>
class Separable final : public Kernel {
 public:
  explicit Separable(std::vector<Pass<T>> passes) : passes_(std::move(passes)) {
    for (size_t i = 0; i + 1 < passes_.size(); ++i)
      buffer_ = std::max(buffer_, passes_[i].results());
  }
  size_t scratch_bytes() const override {
    return static_cast<size_t>(buffer_) * sizeof(T) * std::min<size_t>(2, passes_.size() - 1);
  }
  void run(const KernelArgs& args) const override {
    const T* from = static_cast<const T*>(args.inputs[0]);
    for (size_t i = 0; i < passes_.size(); ++i) {
      T* to = i + 1 == passes_.size()
                  ? static_cast<T*>(args.outputs[0])
                  : static_cast<T*>(args.scratch) + static_cast<int64_t>(i % 2) * buffer_;
      passes_[i].run(from, to);
      from = to;
    }
  }

 private:
  std::vector<Pass<T>> passes_;
  int64_t buffer_ = 0;
};

template <typename T>
KernelPtr make_passes(const KernelRequest& request, const std::vector<ResizeAxis>& axes) {
  const TensorDesc& x = request.in(0);
  const ResizeFilter filter = resize_filter(request.attrs);
  // The axes that shrink most come first: the rest has less to do. Of equals the last, which goes
  // element by element.
  std::vector<size_t> order;
  for (size_t i = axes.size(); i-- > 0;)
    if (!axes[i].identity()) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return axes[a].out * axes[b].in < axes[b].out * axes[a].in;
  });
  Shape shape = x.shape;
  std::vector<Pass<T>> passes;
  for (const size_t i : order) {
    const ResizeAxis& axis = axes[i];
    Pass<T> pass;
    pass.outside = static_cast<T>(request.attrs.f("extrapolation_value"));
    for (size_t k = 0; k < i; ++k) pass.outer *= shape[k];
    for (size_t k = i + 1; k < shape.size(); ++k) pass.inner *= shape[k];
    pass.in = axis.in;
    pass.out = axis.out;
    for (int64_t at = 0; at < axis.out; ++at) {
      pass.first.push_back(std::ssize(pass.indices));
      for (const ResizeTap& tap : axis.taps(at, filter)) {
        pass.indices.push_back(tap.index);
        pass.weights.push_back(static_cast<T>(tap.weight));
      }
    }
    pass.first.push_back(std::ssize(pass.indices));
    const auto taps = [&](int64_t j) { return pass.first[j + 1] - pass.first[j]; };
    pass.low = axis.out / 2;
    pass.high = pass.low + 1;
    pass.taps = taps(pass.low);
    while (pass.low > 0 && taps(pass.low - 1) == pass.taps) --pass.low;
    while (pass.high < axis.out && taps(pass.high) == pass.taps) ++pass.high;
    shape[i] = axis.out;
    passes.push_back(std::move(pass));
  }
  if (passes.empty())
    return make_kernel([bytes = x.bytes()](const KernelArgs& args) {
      if (bytes) std::memcpy(args.outputs[0], args.inputs[0], bytes);
    });
  return std::make_shared<Separable<T>>(std::move(passes));
}

KernelPtr make_separable(const KernelRequest& request, std::string& why) {
  const TensorDesc &x = request.in(0), &y = request.out();
  if (request.attrs.s("mode") == "nearest") return refuse(why, "mode is nearest");
  if (is_half(x.dtype)) return widened(request, make_separable, why);
  if (x.dtype != DType::kF32 && x.dtype != DType::kF64)
    return refuse(why, fmt::format("dtype {}", name(x.dtype)));
  if (!x.contiguous() || !y.contiguous()) return refuse(why, "not contiguous");
  if (y.count() == 0) return make_kernel([](const KernelArgs&) {});
  if (x.count() == 0) return refuse(why, "x is empty");
  const auto axes = resized_axes(request, why);
  if (!axes) return nullptr;
  return x.dtype == DType::kF64 ? make_passes<double>(request, *axes)
                                : make_passes<float>(request, *axes);
}

const KernelRegistrar kNearest("cpu", "resize", "nearest", 10, make_nearest);
const KernelRegistrar kSeparable("cpu", "resize", "separable", 20, make_separable);

}  // namespace

}  // namespace anymps::cpu
