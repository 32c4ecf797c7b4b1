// SPDX-License-Identifier: Apache-2.0
// band_part and trilu on the CPU, for contiguous tensors: rows are shared out among threads.
#include <algorithm>
#include <cstring>

#include "drivers/cpu/common/lines.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/threads.h"

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
  const int64_t size = size_of(x.dtype);
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
            const auto bytes = [&](int64_t count) { return count * size; };
            std::memset(to, 0, bytes(start));
            std::memcpy(to + start * size, from + start * size, bytes(stop - start));
            std::memset(to + stop * size, 0, bytes(columns - stop));
          }
        });
  });
}

constexpr int64_t kFar = int64_t{1} << 60;

CPU_KERNEL(band_part, "rows") {
  const auto lower = known_int(request, 1, "lower"), upper = known_int(request, 2, "upper");
  if (!lower || !upper) return refuse(why, "the band is not known");
  return make_band(request, *lower < 0 ? -kFar : -std::min(*lower, kFar),
                   *upper < 0 ? kFar : std::min(*upper, kFar) + 1, why);
}

CPU_KERNEL(trilu, "rows") {
  const auto k = known_int(request, 1, "k");
  if (!k) return refuse(why, "k is not known");
  const int64_t diagonal = std::clamp(*k, -kFar, kFar);
  return request.attrs.b("upper") ? make_band(request, diagonal, kFar, why)
                                  : make_band(request, -kFar, diagonal + 1, why);
}

}  // namespace

}  // namespace anymps::cpu
