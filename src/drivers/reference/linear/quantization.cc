// SPDX-License-Identifier: Apache-2.0
// Reference kernels of quantization.
#include "semantics/quantization_rules.h"

#include <algorithm>
#include <cmath>

#include "drivers/reference/reference.h"
#include "semantics/elements.h"

namespace anymps {

namespace {

// A scale or zero point for each element: from a tensor, or one number.
class Grouped {
 public:
  Grouped(const ReferenceArgs& args, size_t input, const char* attr, int64_t block_size)
      : view_(args.has(input) ? &args.in[input] : nullptr),
        number_(attr ? args.attrs.f(attr) : 0.0) {
    if (view_)
      groups_ = quant_groups(args.op.name.c_str(), args.in[0].shape(), view_->shape(),
                             view_->strides(), args.attrs.i("axis"), block_size);
  }
  double operator()(const Shape& index) const {
    if (!view_) return number_;
    const int64_t at = groups_.offset(index) * static_cast<int64_t>(size_of(view_->dtype));
    return load_number(view_->dtype, view_->data + at);
  }

 private:
  const View* view_;
  double number_;
  QuantGroups groups_;
};

double number_at(const View& view, const Shape& index) {
  return load_number(view.dtype,
                     view.data + view.offset(index) * static_cast<int64_t>(size_of(view.dtype)));
}

void store_rounded(const View& view, const Shape& index, double value) {
  if (is_narrow(view.dtype)) {
    view.at<uint8_t>(index) = quantize_narrow(view.dtype, value);
    return;
  }
  dispatch<kInt>(view.dtype, [&]<typename T>() { view.at<T>(index) = scalar::saturate<T>(value); });
}

}  // namespace

REFERENCE(quantize) {
  const View &x = args.in[0], &y = args.out[0];
  const int64_t block = args.attrs.i("block_size");
  const Grouped scale(args, 1, "scale", block), zero(args, 2, "zero_point", block);
  const bool saturate = args.attrs.b("saturate");
  for_each_index(y.shape(), [&](const Shape& index) {
    const double quotient = dispatch<kFloat>(x.dtype, [&]<typename T>() {
      using C = Compute<T>;
      return static_cast<double>(static_cast<C>(
          static_cast<T>(static_cast<C>(x.at<T>(index)) / static_cast<C>(scale(index)))));
    });
    if (contains(kNarrowFloat, y.dtype))
      y.at<uint8_t>(index) = encode_narrow(y.dtype, quotient + zero(index), saturate);
    else
      store_rounded(y, index, std::nearbyint(quotient) + zero(index));
  });
}

REFERENCE(dequantize) {
  const View &x = args.in[0], &y = args.out[0];
  const int64_t block = args.attrs.i("block_size");
  const Grouped scale(args, 1, "scale", block), zero(args, 2, "zero_point", block);
  for_each_index(y.shape(), [&](const Shape& index) {
    const double value = (number_at(x, index) - zero(index)) * scale(index);
    dispatch<kFloat>(y.dtype, [&]<typename T>() {
      y.at<T>(index) = static_cast<T>(static_cast<Compute<T>>(value));
    });
  });
}

REFERENCE(requantize) {
  const View &x = args.in[0], &y = args.out[0];
  const Grouped scale(args, 1, nullptr, 0), zero(args, 2, nullptr, 0);
  for_each_index(y.shape(), [&](const Shape& index) {
    store_rounded(
        y, index,
        std::nearbyint(static_cast<double>(x.at<int32_t>(index)) * scale(index)) + zero(index));
  });
}

REFERENCE(dequantize_lut) {
  const View &x = args.in[0], &table = args.in[1], &y = args.out[0];
  const bool whole = table.rank() == 1, vector = table.rank() == x.rank() + 2;
  const int64_t entries = table.extent(table.rank() - (vector ? 2 : 1));
  const size_t axis = vector ? normalize_axis(args.attrs.i("axis"), x.rank(), "dequantize_lut") : 0;
  const int64_t length = vector ? table.extent(table.rank() - 1) : 1;
  const auto size = static_cast<int64_t>(size_of(y.dtype));
  for_each_index(y.shape(), [&](const Shape& index) {
    Shape source = index, place;
    if (vector) source[axis] /= length;
    const auto entry = static_cast<int64_t>(number_at(x, source));
    require(entry < entries, "[dequantize_lut] element {} of x is {}, the table has {} entries",
            to_string(source), entry, entries);
    for (size_t i = 0; !whole && i < source.size(); ++i)
      place.push_back(source[i] / (x.shape()[i] / table.shape()[i]));
    place.push_back(entry);
    if (vector) place.push_back(index[axis] % length);
    std::memcpy(y.data + y.offset(index) * size, table.data + table.offset(place) * size, size);
  });
}

REFERENCE(dynamic_quantize) {
  const View &x = args.in[0], &y = args.out[0];
  float low = 0, high = 0;
  for_each_index(x.shape(), [&](const Shape& index) {
    low = std::min(low, x.at<float>(index));
    high = std::max(high, x.at<float>(index));
  });
  const DynamicSteps steps(low, high);
  for_each_index(x.shape(), [&](const Shape& index) {
    y.at<uint8_t>(index) = scalar::saturate<uint8_t>(
        static_cast<double>(std::nearbyint(x.at<float>(index) / steps.scale) + steps.zero));
  });
  if (args.out.size() > 1) *args.out[1].as<float>() = steps.scale;
  if (args.out.size() > 2) *args.out[2].as<uint8_t>() = static_cast<uint8_t>(steps.zero);
}

}  // namespace anymps
