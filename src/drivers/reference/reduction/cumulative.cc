// SPDX-License-Identifier: Apache-2.0
// Reference kernels of running sums, products and extrema.
#include "drivers/reference/lines.h"

namespace anymps {

namespace {

template <typename T, typename Fn>
void run_lines(const ReferenceArgs& args, Wide<T> start, Fn join) {
  const View &in = args.in[0], &out = args.out[0];
  const int64_t axis = axis_of(args, 1, in.rank()), length = in.extent(axis);
  const bool exclusive = args.attrs.b("exclusive"), reverse = args.attrs.b("reverse");
  for_each_line(in.shape(), axis, [&](const Shape& index) {
    Wide<T> before = start;
    for (int64_t i = 0; i < length; ++i) {
      const int64_t at = reverse ? length - 1 - i : i;
      const Wide<T> with =
          join(before, widen(load<T>(in, in.offset(index) + at * in.stride(axis))));
      out.as<T>()[out.offset(index) + at * out.stride(axis)] = narrow<T>(exclusive ? before : with);
      before = with;
    }
  });
}

}  // namespace

REFERENCE(cumsum) {
  dispatch<kNumber>(args.in[0].dtype, [&]<typename T>() {
    run_lines<T>(args, Wide<T>(0), [](Wide<T> a, Wide<T> b) { return scalar::add(a, b); });
  });
}

REFERENCE(cumprod) {
  dispatch<kNumber>(args.in[0].dtype, [&]<typename T>() {
    run_lines<T>(args, Wide<T>(1), [](Wide<T> a, Wide<T> b) { return scalar::mul(a, b); });
  });
}

REFERENCE(cummin) {
  dispatch<kReal>(args.in[0].dtype, [&]<typename T>() {
    run_lines<T>(args, highest<T>(), [](Wide<T> a, Wide<T> b) { return scalar::min(a, b, true); });
  });
}

REFERENCE(cummax) {
  dispatch<kReal>(args.in[0].dtype, [&]<typename T>() {
    run_lines<T>(args, lowest<T>(), [](Wide<T> a, Wide<T> b) { return scalar::max(a, b, true); });
  });
}

}  // namespace anymps
