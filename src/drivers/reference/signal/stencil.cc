// SPDX-License-Identifier: Apache-2.0
// Reference kernel of weighted reductions over windows.
#include "ops/signal/stencil.h"

#include "drivers/reference/elementwise/elementwise.h"
#include "semantics/border.h"

namespace anymps {

namespace {

// Joins the products of a window one after the other.
class Reducer {
 public:
  explicit Reducer(const std::string& mode) : mode_(mode) {}
  void add(double value) {
    if (count_ == 0) {
      result_ = value;
    } else if (mode_ == "sum") {
      result_ += value;
    } else if (mode_ == "product") {
      result_ *= value;
    } else {
      const bool lower = mode_ == "min" || mode_ == "arg_min";
      const bool wins = !std::isnan(result_) &&
                        (std::isnan(value) || (lower ? value < result_ : value > result_));
      if (wins) result_ = value, place_ = count_;
    }
    ++count_;
  }
  double result() const { return result_; }
  int64_t place() const { return place_; }

 private:
  const std::string& mode_;
  double result_ = 0;
  int64_t count_ = 0, place_ = 0;
};

}  // namespace

REFERENCE(stencil) {
  const View &x = args.in[0], &weights = args.in[1], &y = args.out[0];
  const StencilOnX on_x(args.attrs, x.shape(), weights.shape());
  const Stencil& stencil = on_x.stencil;
  dispatch<kFloat>(x.dtype, [&]<typename T>() {
    const double value = widen(scalar::convert<T>(args.attrs.f("value")));
    for_each_index(y.shape(), [&](const Shape& index) {
      Reducer reducer(on_x.reduce);
      for_each_index(weights.shape(), [&](const Shape& tap) {
        Shape place = index;
        bool inside = true;
        double sign = 1;
        for (size_t i = 0; i < tap.size(); ++i) {
          int64_t& at = place[on_x.lead + i];
          at = at * stencil.strides[i] + tap[i] * stencil.dilations[i] + stencil.first[i];
          const auto element = border_element(on_x.border, at, on_x.in[i]);
          inside &= element.has_value();
          if (element) at = element->place;
          if (element && element->negated) sign = -sign;
        }
        const double element = inside ? sign * widen(x.at<T>(place)) : value;
        reducer.add(element * widen(weights.at<T>(tap)));
      });
      if (y.dtype == DType::kI64)
        y.at<int64_t>(index) = reducer.place();
      else
        y.at<T>(index) = narrow<T>(reducer.result());
    });
  });
}

}  // namespace anymps
