// SPDX-License-Identifier: Apache-2.0
// Local response normalization: for each element, the squares of its neighbouring channels.
#include <algorithm>
#include <cmath>

#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

CPU_KERNEL(lrn, "plain") {
  const TensorDesc &x = request.in(0), &y = request.out();
  if (is_half(x.dtype)) return widened(request, make_lrn, why);
  if (x.dtype != DType::kF32) return refuse(why, fmt::format("dtype {}", name(x.dtype)));
  if (!x.contiguous() || !y.contiguous()) return refuse(why, "not contiguous");
  const int64_t channels = x.shape[1], size = request.attrs.i("size");
  int64_t inner = 1;
  for (size_t i = 2; i < x.shape.size(); ++i) inner *= x.shape[i];
  const int64_t before = (size - 1) / 2, after = size - 1 - before;
  const auto alpha = static_cast<float>(request.attrs.f("alpha") / static_cast<double>(size)),
             beta = static_cast<float>(request.attrs.f("beta")),
             bias = static_cast<float>(request.attrs.f("bias"));
  constexpr int64_t kTile = 256;
  const int64_t tiles = (inner + kTile - 1) / kTile;
  return make_kernel([=, images = x.shape[0]](const KernelArgs& args) {
    const double ns = static_cast<double>(channels * std::min(inner, kTile)) * 15;
    parallel_for(0, images * tiles, ns, [&](int64_t begin, int64_t end) {
      float sums[kTile];
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % tiles * kTile, n = std::min(kTile, inner - first);
        const int64_t offset = i / tiles * channels * inner + first;
        const float* from = static_cast<const float*>(args.inputs[0]) + offset;
        float* to = static_cast<float*>(args.outputs[0]) + offset;
        for (int64_t c = 0; c < channels; ++c) {
          // Summed afresh for each channel: a sum that is slid along keeps NaN and rounding errors.
          std::fill_n(sums, n, 0.0f);
          for (int64_t k = std::max<int64_t>(0, c - before); k <= std::min(channels - 1, c + after);
               ++k)
            for (int64_t j = 0; j < n; ++j) sums[j] += from[k * inner + j] * from[k * inner + j];
          for (int64_t j = 0; j < n; ++j)
            to[c * inner + j] = from[c * inner + j] / std::pow(bias + alpha * sums[j], beta);
        }
      }
    });
  });
}

}  // namespace

}  // namespace anymps::cpu
