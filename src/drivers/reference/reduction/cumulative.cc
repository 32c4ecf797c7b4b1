// SPDX-License-Identifier: Apache-2.0
// Reference kernels of running sums, products and extrema.
#include "drivers/reference/lines.h"
#include "semantics/running.h"

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

REFERENCE(log_cumsum_exp) {
  dispatch<kFloat>(args.in[0].dtype,
                   [&]<typename T>() { run_lines<T>(args, -INFINITY, log_of_sum); });
}

namespace {

template <bool maximum>
void run_extremum(const ReferenceArgs& args) {
  const View &in = args.in[0], &values = args.out[0], &indices = args.out[1];
  const int64_t axis = normalize_axis(args.attrs.i("axis"), in.rank(), args.op.name.c_str());
  dispatch<kReal | kBoolean>(in.dtype, [&]<typename T>() {
    for_each_line(in.shape(), axis, [&](const Shape& index) {
      const std::vector<Wide<T>> line = read_line<T>(in, index, axis);
      size_t best = 0;
      for (size_t i = 0; i < line.size(); ++i) {
        if (is_new_extremum<maximum, Wide<T>>(line[i], line[best])) best = i;
        const auto at = static_cast<int64_t>(i);
        values.as<T>()[values.offset(index) + at * values.stride(axis)] = narrow<T>(line[best]);
        indices.as<int64_t>()[indices.offset(index) + at * indices.stride(axis)] =
            static_cast<int64_t>(best);
      }
    });
  });
}

}  // namespace

REFERENCE(cummax_with_indices) { run_extremum<true>(args); }
REFERENCE(cummin_with_indices) { run_extremum<false>(args); }

}  // namespace anymps
