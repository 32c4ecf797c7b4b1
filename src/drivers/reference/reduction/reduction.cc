// SPDX-License-Identifier: Apache-2.0
// Reference kernels of reductions: the elements that go into one result are gathered in a list,
// widened, and one plain function makes the result of it.
#include <algorithm>

#include "drivers/reference/elementwise/elementwise.h"

namespace anymps {

namespace {

template <typename T, typename R = T, typename Fn>
void reduce_lists(const View& in, const View& out, const std::vector<bool>& reduced, bool keep,
                  Fn fn) {
  Shape kept_shape, reduced_shape;
  Strides kept_in, kept_out, reduced_in;
  size_t out_axis = 0;
  for (size_t i = 0; i < reduced.size(); ++i) {
    (reduced[i] ? reduced_shape : kept_shape).push_back(in.shape()[i]);
    (reduced[i] ? reduced_in : kept_in).push_back(in.strides()[i]);
    if (!reduced[i]) kept_out.push_back(out.strides()[out_axis]);
    if (!reduced[i] || keep) ++out_axis;
  }
  const auto dot = [](const Shape& index, const Strides& strides) {
    int64_t sum = 0;
    for (size_t i = 0; i < index.size(); ++i) sum += index[i] * strides[i];
    return sum;
  };
  std::vector<Wide<T>> list;
  for_each_index(kept_shape, [&](const Shape& index) {
    list.clear();
    const int64_t base = dot(index, kept_in);
    for_each_index(reduced_shape, [&](const Shape& inner) {
      list.push_back(widen(load<T>(in, base + dot(inner, reduced_in))));
    });
    out.as<R>()[dot(index, kept_out)] = narrow<R>(fn(list));
  });
}

// fn.template operator()<T>(list) -> Wide<T>, for the op's axes.
template <DTypeSet allowed, typename Fn>
void reduce(const ReferenceArgs& args, Fn fn) {
  const View& in = args.in[0];
  const std::vector<int64_t> axes = args.ints(1, "axes");
  const bool all = axes.empty() && args.attrs.s("empty_axes") == "all";
  std::vector<bool> reduced(in.shape().size(), all);
  for (int64_t axis : axes) reduced[normalize_axis(axis, in.rank(), args.op.name.c_str())] = true;
  dispatch<allowed>(in.dtype, [&]<typename T>() {
    reduce_lists<T>(in, args.out[0], reduced, args.attrs.b("keep_dims"),
                    [&](const std::vector<Wide<T>>& list) -> Wide<T> {
                      return fn.template operator()<T>(list);
                    });
  });
}

template <typename W>
W sum_of(const std::vector<W>& list) {
  W sum{};
  for (W x : list) sum = scalar::add(sum, x);
  return sum;
}

template <typename W>
W sum_of_squares(const std::vector<W>& list) {
  W sum{};
  for (W x : list) sum = scalar::add(sum, scalar::square(x));
  return sum;
}

}  // namespace

REFERENCE(reduce_sum) {
  reduce<kNumber>(args, []<typename T>(const std::vector<Wide<T>>& list) { return sum_of(list); });
}

REFERENCE(reduce_mean) {
  reduce<kNumber>(args, []<typename T>(const std::vector<Wide<T>>& list) -> Wide<T> {
    if constexpr (std::is_integral_v<T>) {
      using Sum = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
      const std::vector<Sum> wide(list.begin(), list.end());
      if (wide.empty()) return 0;
      return static_cast<T>(sum_of(wide) / static_cast<Sum>(wide.size()));
    } else {
      return sum_of(list) / static_cast<double>(list.size());
    }
  });
}

// The extremum of nothing is the one that every element replaces.
template <bool largest>
static void reduce_extremum(const ReferenceArgs& args) {
  const bool propagate_nan = args.attrs.b("propagate_nan");
  reduce<kReal | kBoolean>(args, [=]<typename T>(const std::vector<Wide<T>>& list) {
    Wide<T> result = largest ? lowest<T>() : highest<T>();
    for (Wide<T> x : list)
      result =
          largest ? scalar::max(result, x, propagate_nan) : scalar::min(result, x, propagate_nan);
    return result;
  });
}

REFERENCE(reduce_max) { reduce_extremum<true>(args); }

REFERENCE(reduce_min) { reduce_extremum<false>(args); }

REFERENCE(reduce_prod) {
  reduce<kNumber>(args, []<typename T>(const std::vector<Wide<T>>& list) {
    Wide<T> product{1};
    for (Wide<T> x : list) product = scalar::mul(product, x);
    return product;
  });
}

REFERENCE(reduce_l1) {
  reduce<kReal>(args, []<typename T>(std::vector<Wide<T>> list) {
    for (Wide<T>& x : list) x = scalar::abs(x);
    return sum_of(list);
  });
}

REFERENCE(reduce_l2) {
  reduce<kReal>(args, []<typename T>(const std::vector<Wide<T>>& list) -> Wide<T> {
    if constexpr (std::is_integral_v<T>) {
      const std::vector<double> wide(list.begin(), list.end());
      return scalar::saturate<T>(std::sqrt(sum_of_squares(wide)));
    } else {
      return std::sqrt(sum_of_squares(list));
    }
  });
}

REFERENCE(reduce_sum_square) {
  reduce<kReal>(args,
                []<typename T>(const std::vector<Wide<T>>& list) { return sum_of_squares(list); });
}

REFERENCE(reduce_log_sum) {
  reduce<kFloat>(
      args, []<typename T>(const std::vector<double>& list) { return std::log(sum_of(list)); });
}

REFERENCE(reduce_log_sum_exp) {
  reduce<kFloat>(args, []<typename T>(const std::vector<double>& list) {
    double highest = lowest<double>();
    for (double x : list) highest = scalar::max(highest, x, true);
    if (!std::isfinite(highest)) return highest;
    double sum = 0;
    for (double x : list) sum += std::exp(x - highest);
    return highest + std::log(sum);
  });
}

REFERENCE(reduce_and) {
  reduce<kBoolean>(args, []<typename T>(const std::vector<bool>& list) {
    return std::all_of(list.begin(), list.end(), [](bool x) { return x; });
  });
}

REFERENCE(reduce_or) {
  reduce<kBoolean>(args, []<typename T>(const std::vector<bool>& list) {
    return std::any_of(list.begin(), list.end(), [](bool x) { return x; });
  });
}

// `beats(a, b)`: a is more extreme than b. NaN is more extreme than any number.
template <typename Beats>
static void arg_extremum(const ReferenceArgs& args, Beats beats) {
  const View& in = args.in[0];
  std::vector<bool> reduced(in.shape().size());
  reduced[normalize_axis(args.attrs.i("axis"), in.rank(), args.op.name.c_str())] = true;
  const bool last = args.attrs.b("select_last");
  dispatch<kReal>(in.dtype, [&]<typename T>() {
    reduce_lists<T, int64_t>(
        in, args.out[0], reduced, args.attrs.b("keep_dims"),
        [&](const std::vector<Wide<T>>& list) -> int64_t {
          require(!list.empty(), "[{}] an empty axis has no extremum", args.op.name);
          const auto wins = [&](Wide<T> a, Wide<T> b) {
            if (scalar::is_nan_value(b)) return false;
            return scalar::is_nan_value(a) || beats(a, b);
          };
          size_t best = 0;
          for (size_t i = 1; i < list.size(); ++i)
            if (wins(list[i], list[best]) || (last && !wins(list[best], list[i]))) best = i;
          return static_cast<int64_t>(best);
        });
  });
}

REFERENCE(arg_max) {
  arg_extremum(args, [](auto a, auto b) { return a > b; });
}

REFERENCE(arg_min) {
  arg_extremum(args, [](auto a, auto b) { return a < b; });
}

}  // namespace anymps
