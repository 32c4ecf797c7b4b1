// SPDX-License-Identifier: Apache-2.0
// Reference kernels of the gradients of gelu, which has two formulas, and of softmax.
#include "drivers/reference/elementwise/elementwise.h"
#include "drivers/reference/lines.h"
#include "semantics/softmax.h"

namespace anymps {

REFERENCE(gelu_gradient) {
  if (args.attrs.s("approximate") == "tanh")
    map_binary<kFloat>(args, scalar::gelu_tanh_gradient);
  else
    map_binary<kFloat>(args, scalar::gelu_gradient);
}

REFERENCE(softmax_gradient) {
  const View &dy = args.in[0], &x = args.in[1], &dx = args.out[0];
  const int64_t axis = normalize_axis(args.attrs.i("axis"), x.rank(), "softmax_gradient");
  const int64_t length = x.extent(axis);
  dispatch<kFloat>(x.dtype, [&]<typename T>() {
    for_each_line(x.shape(), axis, [&](const Shape& index) {
      std::vector<double> s = read_line<T>(x, index, axis), g = read_line<T>(dy, index, axis);
      const SoftmaxLine softmax = softmax_line(s);
      double dot = 0;
      for (size_t i = 0; i < s.size(); ++i) dot += g[i] * (s[i] /= softmax.sum);
      for (int64_t i = 0; i < length; ++i) {
        const size_t at = i;
        dx.as<T>()[dx.offset(index) + i * dx.stride(axis)] = narrow<T>(s[at] * (g[at] - dot));
      }
    });
  });
}

}  // namespace anymps
