// SPDX-License-Identifier: Apache-2.0
// Norms of any order by the formula.
#include "drivers/reference/dense.h"
#include "semantics/distance.h"

namespace anymps {

namespace {

// Absolute values in row-major order.
std::vector<double> sizes_of(const View& view) {
  std::vector<double> sizes;
  if (contains(kComplex, view.dtype)) {
    for (const WideComplex& x : read_dense<WideComplex>(view)) sizes.push_back(std::abs(x));
  } else {
    for (const double x : read_dense<double>(view)) sizes.push_back(std::abs(x));
  }
  return sizes;
}

// The norm for each index of the axes that are not reduced, in row-major order.
std::vector<double> norms_of(const View& x, const std::vector<bool>& reduced, double p) {
  Shape kept;
  for (size_t i = 0; i < reduced.size(); ++i)
    if (!reduced[i]) kept.push_back(x.shape()[i]);
  std::vector<Norm> norms(element_count(kept), Norm(p));
  const std::vector<double> sizes = sizes_of(x);
  size_t next = 0;
  for_each_index(x.shape(), [&](const Shape& index) {
    int64_t at = 0;
    for (size_t i = 0; i < reduced.size(); ++i)
      if (!reduced[i]) at = at * x.shape()[i] + index[i];
    norms[at].add(sizes[next++]);
  });
  std::vector<double> values;
  for (const Norm& norm : norms) values.push_back(norm.value());
  return values;
}

}  // namespace

REFERENCE(vector_norm) {
  const View& x = args.in[0];
  const std::vector<int64_t>& axes = args.attrs.ints("axes");
  std::vector<bool> reduced(x.shape().size(), axes.empty());
  for (const int64_t axis : axes) reduced[normalize_axis(axis, x.rank(), "vector_norm")] = true;
  write_dense(args.out[0], norms_of(x, reduced, args.attrs.f("p")));
}

REFERENCE(renorm) {
  const View& x = args.in[0];
  const size_t axis = normalize_axis(args.attrs.i("axis"), x.rank(), "renorm");
  std::vector<bool> reduced(x.shape().size(), true);
  reduced[axis] = false;
  const double limit = args.attrs.f("max_norm");
  const std::vector<double> norms = norms_of(x, reduced, args.attrs.f("p"));
  std::vector<double> y = read_dense<double>(x);
  size_t next = 0;
  for_each_index(x.shape(), [&](const Shape& index) {
    const double norm = norms[index[axis]];
    if (norm > limit) y[next] *= limit / (norm + 1e-7);
    ++next;
  });
  write_dense(args.out[0], y);
}

}  // namespace anymps
