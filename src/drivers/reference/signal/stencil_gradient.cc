// SPDX-License-Identifier: Apache-2.0
// Reference kernel of the gradients of weighted reductions over windows.
#include "drivers/reference/dense.h"
#include "ops/signal/stencil.h"
#include "semantics/border.h"
#include "semantics/scalar_functions.h"

namespace anymps {

namespace {

// One element of a window: what it holds, its weight's place, and its place in x, -1 for none.
struct Tap {
  double element = 0, sign = 1;
  int64_t place = -1;
};

// How the result moves with product k.
double slope(const std::string& reduce, const std::vector<double>& products, size_t k) {
  if (reduce == "sum") return 1;
  if (reduce == "product") {
    double others = 1;
    for (size_t i = 0; i < products.size(); ++i)
      if (i != k) others *= products[i];
    return others;
  }
  const auto winner = reduce == "min" ? std::min_element(products.begin(), products.end())
                                      : std::max_element(products.begin(), products.end());
  return static_cast<size_t>(winner - products.begin()) == k ? 1 : 0;
}

}  // namespace

REFERENCE(stencil_gradient) {
  const View &gradient = args.in[0], &x = args.in[1], &weights = args.in[2];
  const StencilOnX on_x(args.attrs, x.shape(), weights.shape());
  const Stencil& stencil = on_x.stencil;
  const double value = dispatch<kFloat>(x.dtype, [&]<typename T>() {
    return double{static_cast<Compute<T>>(scalar::convert<T>(args.attrs.f("value")))};
  });
  const std::vector<double> dy = read_dense<double>(gradient), xs = read_dense<double>(x),
                            ws = read_dense<double>(weights);
  std::vector<double> dx(xs.size()), dw(ws.size());
  const Strides steps = contiguous_strides(x.shape());
  size_t next = 0;
  for_each_index(gradient.shape(), [&](const Shape& index) {
    const double g = dy[next++];
    std::vector<Tap> taps;
    std::vector<double> products;
    for_each_index(weights.shape(), [&](const Shape& at) {
      Tap tap;
      int64_t place = 0;
      bool inside = true;
      for (size_t i = 0; i < on_x.lead; ++i) place += index[i] * steps[i];
      for (size_t i = 0; i < at.size(); ++i) {
        const int64_t along = index[on_x.lead + i] * stencil.strides[i] +
                              at[i] * stencil.dilations[i] + stencil.first[i];
        const auto element = border_element(on_x.border, along, on_x.in[i]);
        inside = inside && element.has_value();
        if (!element) continue;
        place += element->place * steps[on_x.lead + i];
        if (element->negated) tap.sign = -tap.sign;
      }
      if (inside) tap.place = place;
      tap.element = inside ? tap.sign * xs[place] : value;
      products.push_back(tap.element * ws[taps.size()]);
      taps.push_back(tap);
    });
    for (size_t k = 0; k < taps.size(); ++k) {
      const double share = g * slope(on_x.reduce, products, k);
      dw[k] += share * taps[k].element;
      if (taps[k].place >= 0) dx[taps[k].place] += share * taps[k].sign * ws[k];
    }
  });
  write_dense(args.out[0], dx);
  if (args.out.size() > 1) write_dense(args.out[1], dw);
}

}  // namespace anymps
