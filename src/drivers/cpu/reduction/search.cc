// SPDX-License-Identifier: Apache-2.0
// Searches, sets, counts and histograms on the CPU: binary searches in parallel; counts on one
// thread, so that sums do not depend on how many there are.
#include <cmath>
#include <numeric>
#include <utility>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/threads.h"
#include "semantics/histogram.h"
#include "semantics/sort_items.h"

namespace anymps::cpu {

namespace {

// The first element that is not below the value, or is above it with `right`.
template <typename T, bool right, typename At>
int64_t search(T value, int64_t length, At at) {
  const auto number = static_cast<Compute<T>>(value);
  if (length == 0) return 0;
  int64_t first = 0, count = length;  // the place is in [first, first + count]
  const auto passed = [&](int64_t i) {
    const auto element = static_cast<Compute<T>>(at(i));
    return !(right ? element > number : element >= number);
  };
  while (count > 1) {  // no branch depends on the elements
    const int64_t half = count / 2;
    first += passed(first + half - 1) ? half : 0;
    count -= half;
  }
  return first + (passed(first) ? 1 : 0);
}

template <typename T, bool right>
KernelPtr make_search(const KernelRequest& request) {
  const TensorDesc &sorted = request.in(0), &values = request.in(1);
  const int64_t length = sorted.shape[sorted.shape.size() - 1], count = values.count();
  const int64_t row =
      sorted.rank() > 1 ? values.shape[values.shape.size() - 1] : std::max<int64_t>(count, 1);
  const bool sorter = request.has(2);
  return make_kernel([=](const KernelArgs& args) {
    auto* y = static_cast<int64_t*>(args.outputs[0]);
    const double ns = 5 + 3 * std::log2(static_cast<double>(length + 1));
    parallel_for(0, count, ns, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T value = static_cast<const T*>(args.inputs[1])[i];
        const int64_t first = i / row * length;
        const T* list = static_cast<const T*>(args.inputs[0]) + first;
        if (!sorter) {
          y[i] = search<T, right>(value, length, [&](int64_t k) { return list[k]; });
          continue;
        }
        const int64_t* places = static_cast<const int64_t*>(args.inputs[2]) + first;
        y[i] = search<T, right>(value, length, [&](int64_t k) {
          const int64_t at = places[k] < 0 ? places[k] + length : places[k];
          require(at >= 0 && at < length,
                  "[search_sorted] index {} is out of range for axis {} of extent {}", places[k],
                  sorted.rank() - 1, length);
          return list[at];
        });
      }
    });
  });
}

CPU_KERNEL(search_sorted, "binary") {
  if (!dense(request, why)) return nullptr;
  return dispatch<kReal>(request.in(0).dtype, [&]<typename T>() {
    return request.attrs.b("right") ? make_search<T, true>(request)
                                    : make_search<T, false>(request);
  });
}

CPU_KERNEL(is_in, "binary") {
  if (!dense(request, why)) return nullptr;
  const int64_t count = request.in(0).count(), members = request.in(1).count();
  const bool invert = request.attrs.b("invert");
  return dispatch<kReal | kBoolean>(request.in(0).dtype, [&]<typename T>() {
    return make_kernel([=](const KernelArgs& args) {
      const T* x = static_cast<const T*>(args.inputs[0]);
      auto* y = static_cast<bool*>(args.outputs[0]);
      std::vector<KeyOf<T>> keys;
      keys.reserve(members);
      for (int64_t i = 0; i < members; ++i)
        if (const T member = static_cast<const T*>(args.inputs[1])[i]; !is_nan_element(member))
          keys.push_back(key_of(member));
      std::sort(keys.begin(), keys.end());
      const double ns = 3 + 3 * std::log2(static_cast<double>(members + 1));
      parallel_for(0, count, ns, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          y[i] = (!is_nan_element(x[i]) &&
                  std::binary_search(keys.begin(), keys.end(), key_of(x[i]))) != invert;
      });
    });
  });
}

template <typename T>
std::pair<T, T> range_of(const T* x, int64_t count) {
  T low = x[0], high = x[0];
  for (int64_t i = 1; i < count; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  return {low, high};
}

template <typename T, typename W>
void count_integers(const KernelArgs& args, int64_t count, int64_t length) {
  const T* x = static_cast<const T*>(args.inputs[0]);
  W* y = static_cast<W*>(args.outputs[0]);
  if (count > 0) {
    const auto [low, high] = range_of(x, count);
    require(!std::cmp_less(low, 0) && std::cmp_less(high, length),
            "[bincount] elements {} to {} are not all in [0, {})", +low, +high, length);
  }
  std::vector<double> sums;
  if constexpr (std::is_same_v<W, float>) sums.assign(length, 0.0);
  clear(y, static_cast<size_t>(length) * sizeof(W));
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<int64_t>(x[i]);
    if constexpr (std::is_same_v<W, int64_t>)
      ++y[at];
    else if constexpr (std::is_same_v<W, float>)
      sums[at] += static_cast<const float*>(args.inputs[1])[i];
    else
      y[at] += static_cast<const W*>(args.inputs[1])[i];
  }
  for (size_t i = 0; i < sums.size(); ++i) y[i] = static_cast<W>(sums[i]);
}

CPU_KERNEL(bincount, "plain") {
  if (!dense(request, why)) return nullptr;
  const int64_t count = request.in(0).count(), length = request.out().count();
  return dispatch<kInt>(request.in(0).dtype, [&]<typename T>() {
    return dispatch<bit(DType::kI64) | bit(DType::kF32) | bit(DType::kF64)>(
        request.out().dtype, [&]<typename W>() {
          return make_kernel(
              [=](const KernelArgs& args) { count_integers<T, W>(args, count, length); });
        });
  });
}

template <typename T>
void fill_histogram(const KernelArgs& args, int64_t count, int64_t bin_count, double low,
                    double high, double margin, bool density) {
  const auto number = [](const void* from, int64_t i) {
    return static_cast<double>(static_cast<Compute<T>>(static_cast<const T*>(from)[i]));
  };
  const void *x = args.inputs[0], *edges = args.inputs[1], *weights = args.inputs[2];
  if (low == high && !edges && count > 0) {
    low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < count; ++i) {
      const double value = number(x, i);
      require(std::isfinite(value), "[histogram] the range of the elements is not finite");
      low = std::min(low, value), high = std::max(high, value);
    }
  }
  std::vector<double> given;
  for (int64_t i = 0; edges && i <= bin_count; ++i) given.push_back(number(edges, i));
  const Bins bins = edges ? Bins(std::move(given)) : Bins(bin_count, low, high, margin);
  std::vector<double> sums(bin_count, 0.0);
  for (int64_t i = 0; i < count; ++i)
    if (const int64_t bin = bins.find(number(x, i)); bin >= 0)
      sums[bin] += weights ? number(weights, i) : 1;
  const double total = std::accumulate(sums.begin(), sums.end(), 0.0);
  for (int64_t i = 0; i < bin_count; ++i) {
    const double width = bins.edges()[i + 1] - bins.edges()[i];
    const double value = density ? sums[i] / (total * width) : sums[i];
    static_cast<T*>(args.outputs[0])[i] = static_cast<T>(static_cast<Compute<T>>(value));
  }
  for (int64_t i = 0; i <= bin_count; ++i)
    static_cast<T*>(args.outputs[1])[i] = static_cast<T>(static_cast<Compute<T>>(bins.edges()[i]));
}

CPU_KERNEL(histogram, "plain") {
  if (!dense(request, why)) return nullptr;
  const int64_t count = request.in(0).count(), bins = request.out().count();
  const double low = request.attrs.f("low"), high = request.attrs.f("high"),
               margin = request.attrs.f("margin");
  const bool density = request.attrs.b("density"), edges = request.has(1), weights = request.has(2);
  return dispatch<kFloat>(request.in(0).dtype, [&]<typename T>() {
    return make_kernel([=](const KernelArgs& args) {
      void* const inputs[] = {args.inputs[0], edges ? args.inputs[1] : nullptr,
                              weights ? args.inputs[2] : nullptr};
      fill_histogram<T>({inputs, args.outputs}, count, bins, low, high, margin, density);
    });
  });
}

}  // namespace

}  // namespace anymps::cpu
