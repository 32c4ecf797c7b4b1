// SPDX-License-Identifier: Apache-2.0
// Codes of boxes on the CPU, for dense tensors.
#include "semantics/box_coding.h"

#include <algorithm>
#include <array>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/dense_rows.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

template <typename A>
KernelPtr make_box_codes(const KernelRequest& request) {
  const bool encodes = request.attrs.s("code") == "encode", first = request.attrs.i("axis") == 1;
  const bool own = request.has(2);
  std::array<A, 4> all = {1, 1, 1, 1};
  const std::vector<double>& given = request.attrs.floats("variance");
  std::transform(given.begin(), given.end(), all.begin(),
                 [](double v) { return static_cast<A>(v); });
  const A edge = request.attrs.b("normalized") ? 0 : 1;
  return make_kernel(
      [=, rows = request.out().shape[0], columns = request.out().shape[1]](const KernelArgs& args) {
        const auto in = [&](size_t i) { return static_cast<const A*>(args.inputs[i]); };
        auto* y = static_cast<A*>(args.outputs[0]);
        parallel_for(0, rows * columns, 30, [&](int64_t begin, int64_t end) {
          for (int64_t at = begin; at < end; ++at) {
            const int64_t i = at / columns, prior = (encodes || !first ? at % columns : i) * 4;
            const A* variance = own ? in(2) + prior : all.data();
            if (encodes)
              encode_box(in(0) + prior, variance, in(1) + i * 4, edge, y + at * 4);
            else
              decode_box(in(0) + prior, variance, in(1) + at * 4, edge, y + at * 4);
          }
        });
      });
}

CPU_KERNEL(box_coder, "dense") {
  if (is_half(request.in(0).dtype)) return widened(request, make_box_coder, why);
  if (!dense(request, why)) return nullptr;
  return with_computed(request.in(0).dtype,
                       [&]<typename A>() { return make_box_codes<A>(request); });
}

}  // namespace

}  // namespace anymps::cpu
