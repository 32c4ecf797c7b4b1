// SPDX-License-Identifier: Apache-2.0
// The gated linear unit on the CPU: the tile functions of sigmoid and mul over the runs that lie
// behind the axis.
#include "drivers/cpu/elementwise/tile_ops.h"
#include "drivers/cpu/threads.h"
#include "drivers/kernel.h"
#include "ops/shape_rules.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kGluRun = 1024;  // elements that stay in the L1 cache

KernelPtr make_glu(const KernelRequest& request, std::string& why) {
  const TensorDesc &x = request.in(0), &y = request.out();
  if (!x.contiguous() || !y.contiguous()) return refuse(why, "x or y has gaps");
  const TileOp *sigmoid = find_tile_op("sigmoid", x.dtype), *mul = find_tile_op("mul", x.dtype);
  if (!sigmoid || !mul) return refuse(why, fmt::format("x is {}", name(x.dtype)));
  const size_t axis = normalize_axis(request.attrs.i("axis"), std::ssize(x.shape), "glu");
  int64_t outer = 1, half = y.shape[axis];
  for (size_t i = 0; i < axis; ++i) outer *= y.shape[i];
  for (size_t i = axis + 1; i < y.shape.size(); ++i) half *= y.shape[i];
  const auto size = static_cast<int64_t>(size_of(x.dtype));
  const int64_t runs = (half + kGluRun - 1) / kGluRun;
  return make_kernel([=](const KernelArgs& args) {
    const char* from = static_cast<const char*>(args.inputs[0]);
    char* to = static_cast<char*>(args.outputs[0]);
    const double none[kTileParams] = {};
    parallel_for(0, outer * runs, (sigmoid->ns + mul->ns) * kGluRun, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        const int64_t line = i / runs, first = i % runs * kGluRun;
        const size_t n = std::min(kGluRun, half - first);
        const char* a = from + (line * 2 * half + first) * size;
        char* out = to + (line * half + first) * size;
        sigmoid->run({{a + half * size}, out, n, none});
        mul->run({{a, out}, out, n, none});
      }
    });
  });
}

const KernelRegistrar kGlu("cpu", "glu", "tiles", 10, make_glu);

}  // namespace

}  // namespace anymps::cpu
