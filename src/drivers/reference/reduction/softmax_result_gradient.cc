// SPDX-License-Identifier: Apache-2.0
// Gradients of softmax and log_softmax from their results.
#include <cmath>

#include "drivers/reference/lines.h"

namespace anymps {

namespace {

// dx from a line of dy, a line of y and the sum over the line of term(dy, y).
template <typename Term, typename Fn>
void result_gradient(const ReferenceArgs& args, Term term, Fn fn) {
  const View &dy = args.in[0], &y = args.in[1], &dx = args.out[0];
  const int64_t axis = normalize_axis(args.attrs.i("axis"), y.rank(), args.op.name.c_str());
  dispatch<kFloat>(y.dtype, [&]<typename T>() {
    for_each_line(y.shape(), axis, [&](const Shape& index) {
      const std::vector<double> g = read_line<T>(dy, index, axis), s = read_line<T>(y, index, axis);
      double sum = 0;
      for (size_t i = 0; i < s.size(); ++i) sum += term(g[i], s[i]);
      for (size_t i = 0; i < s.size(); ++i)
        dx.as<T>()[dx.offset(index) + static_cast<int64_t>(i) * dx.stride(axis)] =
            narrow<T>(fn(g[i], s[i], sum));
    });
  });
}

}  // namespace

REFERENCE(softmax_result_gradient) {
  result_gradient(
      args, [](double dy, double y) { return dy * y; },
      [](double dy, double y, double dot) { return (dy - dot) * y; });
}

REFERENCE(log_softmax_gradient) {
  result_gradient(
      args, [](double dy, double) { return dy; },
      [](double dy, double y, double sum) { return dy - std::exp(y) * sum; });
}

}  // namespace anymps
