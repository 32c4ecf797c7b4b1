// SPDX-License-Identifier: Apache-2.0
// band_part, trilu, one_hot and the steps of Adam on the CPU, for contiguous tensors: rows or
// elements are shared out among threads.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "drivers/cpu/common/by_size.h"
#include "drivers/cpu/common/lines.h"
#include "drivers/cpu/threads.h"
#include "semantics/scalar_functions.h"

namespace anymps::cpu {

namespace {

// Columns [row + first, row + last) of each row stay, the rest is 0.
KernelPtr make_band(const KernelRequest& request, int64_t first, int64_t last, std::string& why) {
  const TensorDesc& x = request.in(0);
  if (!x.contiguous() || !request.out().contiguous())
    return refuse(why, "x or y is not contiguous");
  if (x.count() == 0) return make_kernel([](const KernelArgs&) {});
  const int64_t rows = x.shape[x.shape.size() - 2], columns = x.shape.back();
  const int64_t all = x.count() / columns;
  const auto size = static_cast<int64_t>(size_of(x.dtype));
  first = std::clamp(first, -rows, columns);
  last = std::clamp(last, -rows, columns);
  return make_kernel([=](const KernelArgs& args) {
    parallel_for(
        0, all, 5 + 0.1 * static_cast<double>(columns * size), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const char* from = static_cast<const char*>(args.inputs[0]) + i * columns * size;
            char* to = static_cast<char*>(args.outputs[0]) + i * columns * size;
            const int64_t row = i % rows;
            const int64_t start = std::clamp<int64_t>(row + first, 0, columns);
            const int64_t stop = std::clamp<int64_t>(row + last, start, columns);
            const auto bytes = [&](int64_t count) { return static_cast<size_t>(count * size); };
            std::memset(to, 0, bytes(start));
            std::memcpy(to + start * size, from + start * size, bytes(stop - start));
            std::memset(to + stop * size, 0, bytes(columns - stop));
          }
        });
  });
}

constexpr int64_t kFar = int64_t{1} << 60;

KernelPtr make_band_part(const KernelRequest& request, std::string& why) {
  const auto lower = known_int(request, 1, "lower"), upper = known_int(request, 2, "upper");
  if (!lower || !upper) return refuse(why, "the band is not known");
  return make_band(request, *lower < 0 ? -kFar : -std::min(*lower, kFar),
                   *upper < 0 ? kFar : std::min(*upper, kFar) + 1, why);
}

KernelPtr make_trilu(const KernelRequest& request, std::string& why) {
  const auto k = known_int(request, 1, "k");
  if (!k) return refuse(why, "k is not known");
  const int64_t diagonal = std::clamp(*k, -kFar, kFar);
  return request.attrs.b("upper") ? make_band(request, diagonal, kFar, why)
                                  : make_band(request, -kFar, diagonal + 1, why);
}

// y is [outer, depth, inner]: all off, then one on for each index.
template <typename T, typename Index>
KernelPtr make_one_hot_typed(const KernelRequest& request, int64_t axis) {
  const Shape& shape = request.out().shape;
  int64_t inner = 1;
  for (size_t i = static_cast<size_t>(axis) + 1; i < shape.size(); ++i) inner *= shape[i];
  const int64_t depth = shape[static_cast<size_t>(axis)], count = request.in(0).count();
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

KernelPtr make_one_hot(const KernelRequest& request, std::string& why) {
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

KernelPtr make_adam(const KernelRequest& request, std::string& why) {
  const TensorDesc& x = request.in(0);
  if (x.dtype != DType::kF32 && x.dtype != DType::kF64)
    return refuse(why, fmt::format("values are {}", name(x.dtype)));
  const bool maximum = request.has(8), powers = request.has(9);
  for (size_t i : {size_t{0}, size_t{1}, size_t{2}, size_t{3}, size_t{8}})
    if (request.has(i) && !request.in(i).contiguous())
      return refuse(why, "a tensor is not contiguous");
  for (const TensorDesc& output : request.outputs)
    if (!output.contiguous()) return refuse(why, "an output is not contiguous");
  const int64_t count = x.count();
  const size_t outputs = request.outputs.size();
  constexpr DTypeSet kTypes = bit(DType::kF32) | bit(DType::kF64);
  return dispatch<kTypes>(x.dtype, [&]<typename T>() {
    return make_kernel([=](const KernelArgs& args) {
      const auto number = [&](size_t i) {
        return static_cast<double>(*static_cast<const T*>(args.inputs[i]));
      };
      const auto in = [&](size_t i) { return static_cast<const T*>(args.inputs[i]); };
      double rate = number(4);
      const double beta1 = number(5), beta2 = number(6), epsilon = number(7);
      if (powers) rate *= std::sqrt(1 - number(10)) / (1 - number(9));
      parallel_for(0, count, 5, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const double gradient = in(1)[i];
          const double m = beta1 * in(2)[i] + (1 - beta1) * gradient;
          const double v = beta2 * in(3)[i] + (1 - beta2) * gradient * gradient;
          const double highest = maximum ? scalar::max(static_cast<double>(in(8)[i]), v, true) : v;
          const double results[] = {in(0)[i] - rate * m / (std::sqrt(highest) + epsilon), m, v,
                                    highest};
          for (size_t k = 0; k < outputs; ++k)
            static_cast<T*>(args.outputs[k])[i] = static_cast<T>(results[k]);
        }
      });
    });
  });
}

const KernelRegistrar kBandPart("cpu", "band_part", "rows", 10, make_band_part);
const KernelRegistrar kTrilu("cpu", "trilu", "rows", 10, make_trilu);
const KernelRegistrar kOneHot("cpu", "one_hot", "lines", 10, make_one_hot);
const KernelRegistrar kAdam("cpu", "adam", "elements", 10, make_adam);

}  // namespace

}  // namespace anymps::cpu
