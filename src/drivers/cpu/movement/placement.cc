// SPDX-License-Identifier: Apache-2.0
// Ops on the CPU that only say where elements lie: reverse_sequence, reinterpret and planar, and
// those whose elements follow from their places: eye_like and coordinate_along_axis.
#include <cstring>

#include "drivers/cpu/common/copy.h"
#include "drivers/cpu/common/lines.h"
#include "drivers/cpu/common/rows.h"
#include "semantics/elements.h"

namespace anymps::cpu {

namespace {

// How many of the last axes, down to `first`, lie as one dense run in both tensors.
size_t dense_axes(const TensorDesc& x, const TensorDesc& y, size_t first) {
  int64_t step = 1;
  size_t axis = x.shape.size();
  while (axis > first) {
    const size_t i = axis - 1;
    if (x.shape[i] != 1 && (x.strides[i] != step || y.strides[i] != step)) break;
    step *= x.shape[i];
    axis = i;
  }
  return axis;
}

template <typename Index>
KernelPtr make_reverse(const KernelRequest& request) {
  const TensorDesc &x = request.in(0), &lengths = request.in(1), &y = request.out();
  const auto axis = [&](const char* attr) {
    return static_cast<size_t>(normalize_axis(request.attrs.i(attr), x.rank(), "reverse_sequence"));
  };
  const size_t time = axis("time_axis"), batch = axis("batch_axis");
  const size_t tail = dense_axes(x, y, std::max(time, batch) + 1);
  Shape shape(x.shape.begin(), x.shape.begin() + static_cast<ptrdiff_t>(tail));
  int64_t run = static_cast<int64_t>(size_of(x.dtype));
  for (size_t i = tail; i < x.shape.size(); ++i) run *= x.shape[i];
  Strides to, from, length, step, sequence;
  for (size_t i = 0; i < tail; ++i) {
    to.push_back(y.strides[i]);
    from.push_back(i == time ? 0 : x.strides[i]);
    length.push_back(i == batch ? lengths.strides[0] : 0);
    step.push_back(i == time);
    sequence.push_back(i == batch);
  }
  const Rows rows(merge_loops(shape, {to, from, length, step, sequence}));
  const int64_t steps = x.shape[time], x_step = x.strides[time];
  return make_kernel([=, size = static_cast<int64_t>(size_of(x.dtype))](const KernelArgs& args) {
    const auto* source = static_cast<const char*>(args.inputs[0]);
    auto* target = static_cast<char*>(args.outputs[0]);
    for_each_row(rows, 2 + 0.1 * static_cast<double>(run), [&](const Offsets& at) {
      for (int64_t i = 0; i < rows.length; ++i) {
        const int64_t n = static_cast<const Index*>(args.inputs[1])[at[2] + i * rows.steps[2]];
        require(n >= 0 && n <= steps,
                "[reverse_sequence] length {} of sequence {} is not in [0, {}]", n,
                at[4] + i * rows.steps[4], steps);
        int64_t t = at[3] + i * rows.steps[3];
        if (t < n) t = n - 1 - t;
        std::memcpy(target + (at[0] + i * rows.steps[0]) * size,
                    source + (at[1] + i * rows.steps[1] + t * x_step) * size,
                    static_cast<size_t>(run));
      }
    });
  });
}

KernelPtr make_reverse_sequence(const KernelRequest& request, std::string&) {
  return request.in(1).dtype == DType::kI64 ? make_reverse<int64_t>(request)
                                            : make_reverse<int32_t>(request);
}

KernelPtr make_reinterpret(const KernelRequest& request, std::string& why) {
  const TensorDesc &x = request.in(0), &y = request.out();
  if (!y.contiguous()) return refuse(why, "y is not contiguous");
  if (x.bytes() != y.bytes()) return refuse(why, "y has another number of bytes");
  return make_kernel(
      [copy = StridedCopy(size_of(x.dtype), x.shape, contiguous_strides(x.shape), x.strides)](
          const KernelArgs& args) { copy.run(args.outputs[0], args.inputs[0]); });
}

KernelPtr make_planar(const KernelRequest& request, std::string&) {
  const TensorDesc &x = request.in(0), &y = request.out();
  const Rows rows(merge_loops(x.shape, {x.strides, y.strides}));
  return make_kernel([=, imaginary = x.shape.back() * y.strides.back()](const KernelArgs& args) {
    for_each_row(rows, 1, [&](const Offsets& at) {
      const Complex* from = static_cast<const Complex*>(args.inputs[0]) + at[0];
      float* to = static_cast<float*>(args.outputs[0]) + at[1];
      for (int64_t i = 0; i < rows.length; ++i) {
        const Complex value = from[i * rows.steps[0]];
        to[i * rows.steps[1]] = value.real();
        to[i * rows.steps[1] + imaginary] = value.imag();
      }
    });
  });
}

KernelPtr make_eye_like(const KernelRequest& request, std::string& why) {
  const TensorDesc& y = request.out();
  if (!y.contiguous()) return refuse(why, "y is not contiguous");
  const int64_t rows = y.shape[0], columns = y.shape[1];
  const int64_t k = std::clamp(request.attrs.i("k"), -rows, columns);
  const auto size = static_cast<int64_t>(size_of(y.dtype));
  std::array<char, 16> one{};
  store_number(y.dtype, 1, one.data());
  return make_kernel([=](const KernelArgs& args) {
    parallel_for(0, rows, 5 + 0.1 * static_cast<double>(columns * size),
                 [&](int64_t begin, int64_t end) {
                   char* to = static_cast<char*>(args.outputs[0]) + begin * columns * size;
                   std::memset(to, 0, static_cast<size_t>((end - begin) * columns * size));
                   for (int64_t i = begin; i < end; ++i, to += columns * size)
                     if (i + k >= 0 && i + k < columns)
                       std::memcpy(to + (i + k) * size, one.data(), static_cast<size_t>(size));
                 });
  });
}

KernelPtr make_coordinates(const KernelRequest& request, std::string& why) {
  const TensorDesc& y = request.out();
  const auto axis = known_axis(request, 1, y.rank(), why);
  if (!axis) return nullptr;
  if (!y.contiguous()) return refuse(why, "y is not contiguous");
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < y.shape.size(); ++i)
    if (i != *axis) (i < *axis ? outer : inner) *= y.shape[i];
  return dispatch<kReal>(y.dtype, [&]<typename T>() {
    return make_kernel([=, extent = y.shape[*axis]](const KernelArgs& args) {
      parallel_for(0, outer * extent, 3 + 0.2 * static_cast<double>(inner),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i)
                       std::fill_n(static_cast<T*>(args.outputs[0]) + i * inner, inner,
                                   scalar::convert<T>(i % extent));
                   });
    });
  });
}

const KernelRegistrar kReverseSequence("cpu", "reverse_sequence", "copy", 10,
                                       make_reverse_sequence);
const KernelRegistrar kReinterpret("cpu", "reinterpret", "copy", 10, make_reinterpret);
const KernelRegistrar kPlanar("cpu", "planar", "plain", 10, make_planar);
const KernelRegistrar kEyeLike("cpu", "eye_like", "plain", 10, make_eye_like);
const KernelRegistrar kCoordinates("cpu", "coordinate_along_axis", "plain", 10, make_coordinates);

}  // namespace

}  // namespace anymps::cpu
