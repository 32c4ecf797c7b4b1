// SPDX-License-Identifier: Apache-2.0
// Reference kernels of gelu, which has two formulas, and of softmax.
#include "drivers/reference/elementwise/elementwise.h"
#include "semantics/softmax.h"

namespace anymps {

REFERENCE(gelu) {
  if (args.attrs.s("approximate") == "tanh")
    map_unary<kFloat>(args, scalar::gelu_tanh);
  else
    map_unary<kFloat>(args, scalar::gelu);
}

// Calls fn with each line along the axis, as doubles, and writes back what it left there.
template <typename Fn>
static void map_lines(const ReferenceArgs& args, Fn fn) {
  const View &in = args.in[0], &out = args.out[0];
  const size_t axis = normalize_axis(args.attrs.i("axis"), in.rank(), args.op.name.c_str());
  const size_t length = in.shape()[axis];
  if (length == 0) return;
  Shape lines = in.shape();
  lines[axis] = 1;
  dispatch<kFloat>(in.dtype, [&]<typename T>() {
    std::vector<double> line(length);
    for_each_index(lines, [&](const Shape& index) {
      const T* from = in.as<T>() + in.offset(index);
      T* to = out.as<T>() + out.offset(index);
      for (size_t i = 0; i < length; ++i)
        line[i] = widen(from[static_cast<int64_t>(i) * in.strides()[axis]]);
      fn(line);
      for (size_t i = 0; i < length; ++i)
        to[static_cast<int64_t>(i) * out.strides()[axis]] = narrow<T>(line[i]);
    });
  });
}

REFERENCE(softmax) {
  map_lines(args, [](std::vector<double>& line) {
    const SoftmaxLine softmax = softmax_line(line);
    for (double& x : line) x /= softmax.sum;
  });
}

REFERENCE(log_softmax) {
  map_lines(args, [](std::vector<double>& line) {
    std::vector<double> exponentials = line;
    const SoftmaxLine softmax = softmax_line(exponentials);
    for (double& x : line) x = x - softmax.highest - std::log(softmax.sum);
  });
}

}  // namespace anymps
