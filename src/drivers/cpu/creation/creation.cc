// SPDX-License-Identifier: Apache-2.0
// Tensors from a few numbers on the CPU: range, fill, eye_like, one_hot.
#include <algorithm>
#include <array>
#include <cstring>

#include "drivers/cpu/common/by_size.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/threads.h"
#include "semantics/elements.h"

namespace anymps::cpu {

namespace {

CPU_KERNEL(range, "plain") {
  const TensorDesc& y = request.out();
  if (!y.contiguous()) return refuse(why, "y is not contiguous");
  return make_kernel([dtype = y.dtype, count = y.count()](const KernelArgs& args) {
    dispatch<kReal>(dtype, [&]<typename T>() {
      using C = Compute<T>;
      const C start = static_cast<C>(*static_cast<const T*>(args.inputs[0])),
              delta = static_cast<C>(*static_cast<const T*>(args.inputs[2]));
      T* to = static_cast<T*>(args.outputs[0]);
      parallel_for(0, count, 0.3, [&](int64_t begin, int64_t end) {
        if constexpr (std::is_integral_v<T>) {  // wraps; sums are vectors where products are not
          const auto step = static_cast<uint64_t>(delta);
          uint64_t value = static_cast<uint64_t>(start) + static_cast<uint64_t>(begin) * step;
          for (int64_t i = begin; i < end; ++i, value += step) to[i] = static_cast<T>(value);
        } else {
          for (int64_t i = begin; i < end; ++i)
            to[i] = static_cast<T>(start + static_cast<C>(i) * delta);
        }
      });
    });
  });
}

CPU_KERNEL(fill, "plain") {
  const TensorDesc& y = request.out();
  if (!y.contiguous()) return refuse(why, "y is not contiguous");
  if (!contains(kAny, y.dtype)) return refuse(why, fmt::format("dtype {}", name(y.dtype)));
  return make_kernel([dtype = y.dtype, count = y.count(), from_input = request.has(1),
                      number = request.attrs.f("value"),
                      imaginary = request.attrs.f("imaginary")](const KernelArgs& args) {
    dispatch<kAny>(dtype, [&]<typename T>() {
      T value{};
      if (from_input)
        std::memcpy(&value, args.inputs[1], sizeof(T));
      else if constexpr (kIsComplexType<T>)
        value = T(WideComplex(number, imaginary));
      else
        value = static_cast<T>(static_cast<Compute<T>>(number));
      T* to = static_cast<T*>(args.outputs[0]);
      parallel_for(0, count, 0.1,
                   [&](int64_t begin, int64_t end) { std::fill(to + begin, to + end, value); });
    });
  });
}

CPU_KERNEL(eye_like, "plain") {
  const TensorDesc& y = request.out();
  if (!y.contiguous()) return refuse(why, "y is not contiguous");
  const int64_t rows = y.shape[0], columns = y.shape[1];
  const int64_t k = std::clamp(request.attrs.i("k"), -rows, columns);
  const int64_t size = size_of(y.dtype);
  std::array<char, 16> one{};
  store_number(y.dtype, 1, one.data());
  return make_kernel([=](const KernelArgs& args) {
    parallel_for(0, rows, 5 + 0.1 * static_cast<double>(columns * size),
                 [&](int64_t begin, int64_t end) {
                   char* to = static_cast<char*>(args.outputs[0]) + begin * columns * size;
                   std::memset(to, 0, (end - begin) * columns * size);
                   for (int64_t i = begin; i < end; ++i, to += columns * size)
                     if (i + k >= 0 && i + k < columns)
                       std::memcpy(to + (i + k) * size, one.data(), size);
                 });
  });
}

// y is [outer, depth, inner]: all off, then one on for each index.
template <typename T, typename Index>
KernelPtr make_one_hot_typed(const KernelRequest& request, int64_t axis) {
  const Shape& shape = request.out().shape;
  int64_t inner = 1;
  for (size_t i = static_cast<size_t>(axis) + 1; i < shape.size(); ++i) inner *= shape[i];
  const int64_t depth = shape[axis], count = request.in(0).count();
  const int64_t on_step = request.in(2).strides[0];
  return make_kernel([=](const KernelArgs& args) {
    const T off = static_cast<const T*>(args.inputs[2])[0];
    const T on = static_cast<const T*>(args.inputs[2])[on_step];
    parallel_for(0, count, 3 + 0.3 * static_cast<double>(depth), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* line = static_cast<T*>(args.outputs[0]) + i / inner * depth * inner + i % inner;
        for (int64_t k = 0; k < depth; ++k) line[k * inner] = off;
        int64_t at = static_cast<const Index*>(args.inputs[0])[i];
        if (at < 0) at += depth;
        if (at >= 0 && at < depth) line[at * inner] = on;
      }
    });
  });
}

CPU_KERNEL(one_hot, "lines") {
  const TensorDesc &indices = request.in(0), &y = request.out();
  if (!indices.contiguous() || !y.contiguous())
    return refuse(why, "indices or y are not contiguous");
  if (!contains(kIndex, indices.dtype)) return refuse(why, "indices are not i32 or i64");
  const int64_t axis = normalize_axis(request.attrs.i("axis"), y.rank(), "one_hot");
  const auto make = [&]<typename T>() {
    return indices.dtype == DType::kI32 ? make_one_hot_typed<T, int32_t>(request, axis)
                                        : make_one_hot_typed<T, int64_t>(request, axis);
  };
  return by_size(size_of(y.dtype), make);
}

}  // namespace

}  // namespace anymps::cpu
