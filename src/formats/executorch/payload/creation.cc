// SPDX-License-Identifier: Apache-2.0
// Nodes that make tensors from numbers, and those that change the type of elements.
#include <cmath>
#include <cstring>
#include <limits>

#include "formats/executorch/payload/node_kinds.h"

namespace anymps::executorch {

namespace {

// A number that came as a float32, as one of another type: held inside its range.
template <typename T>
T saturated(double number) {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, bool>) {
    return number != 0;
  } else if constexpr (std::is_integral_v<T>) {
    if (std::isnan(number)) return 0;
    if (number >= static_cast<double>(Limits::max())) return Limits::max();
    if (number <= static_cast<double>(Limits::min())) return Limits::min();
    return static_cast<T>(number);
  } else {
    return static_cast<T>(static_cast<Compute<T>>(number));
  }
}

constexpr int64_t kMaxRange = 1 << 27;  // a few bytes of a file must not stand for gigabytes
constexpr DTypeSet kFillable = kReal | kBoolean;

Value* scalar(NodeCall& c, DType dtype, double number) {
  if (!contains(kFillable, dtype)) c.unsupported("dtype {} is not supported", name(dtype));
  return dispatch<kFillable>(dtype, [&]<typename T>() {
    const T element = saturated<T>(number);
    return c.graph.constant(Constant::copy(dtype, {}, std::as_bytes(std::span(&element, 1))));
  });
}

void Full(NodeCall& c) {
  using F = field::Full;
  const Ints shape = c.ints(F::kShape);
  for (const int64_t extent : shape)
    c.check(extent >= 0, "shape [{}] has a negative extent", fmt::join(shape, ", "));
  element_count(Shape(shape.begin(), shape.end()));
  Value* value = scalar(c, c.dtype(F::kType), c.f(F::kFillValue));
  c.out(F::kOutput, c.add("fill", {nullptr, value}, {{"shape", shape}}));
}

void FullLike(NodeCall& c) {
  using F = field::Full;
  Value* like = c.in(F::kLike);
  Value* value = scalar(c, c.dtype(F::kType), c.f(F::kFillValue));
  c.out(F::kOutput, c.add("fill", {c.add("shape", {like}), value}));
}

// The bounds came as float32, so that 0.3 / 0.1 may seem to be just above 3: the declared extent
// says how many there are.
void Arange(NodeCall& c) {
  using F = field::Arange;
  const double start = c.f(F::kStart), end = c.f(F::kEnd), step = c.f(F::kStep);
  const DType dtype = c.dtype(F::kType);
  if (!contains(kReal, dtype)) c.unsupported("dtype {} is not supported", name(dtype));
  c.check(std::isfinite(start) && std::isfinite(end) && std::isfinite(step) && step != 0,
          "there is no range from {} to {} in steps of {}", start, end, step);
  const Ints& dims = c.declared_dims(F::kOutput);
  const double count = std::ceil((end - start) / step);
  c.check(dims.size() == 1 && std::abs(count - static_cast<double>(dims[0])) <= 1,
          "from {} to {} in steps of {} are {} numbers, but the result is declared [{}]", start,
          end, step, count, fmt::join(dims, ", "));
  const int64_t extent = dims[0];
  if (extent > kMaxRange) c.unsupported("{} numbers are more than {}", extent, kMaxRange);
  auto recipe = [=](std::byte* out) {
    dispatch<kReal>(dtype, [&]<typename T>() {
      for (int64_t i = 0; i < extent; ++i) {
        const T element = saturated<T>(start + static_cast<double>(i) * step);
        std::memcpy(out + static_cast<size_t>(i) * sizeof(T), &element, sizeof(T));
      }
    });
  };
  c.out(F::kOutput, c.graph.constant(Constant::lazy(dtype, {extent}, recipe)));
}

void Cast(NodeCall& c) {
  using F = field::Cast;
  c.out_converted(F::kOutput, c.as(c.in(F::kInput), c.dtype(F::kType)));
}

// Each row has a scale for every group_size elements.
void DequantizePerChannelGroup(NodeCall& c) {
  using F = field::DequantizePerChannelGroup;
  Value *x = c.in(F::kInput), *scales = c.in(F::kScales), *zero_points = c.opt(F::kZeroPoints);
  const int64_t group = c.i(F::kGroupSize);
  c.check(c.rank(x) == 2 && x->type.static_shape(), "the input must be a matrix of known extents");
  const int64_t rows = x->shape()[0].value(), columns = x->shape()[1].value();
  c.check(group > 0 && columns % group == 0, "{} columns do not split into groups of {}", columns,
          group);
  const Ints shape = {rows, columns / group};
  scales = c.reshaped(scales, shape);
  if (zero_points) zero_points = c.cast(c.reshaped(zero_points, shape), scales->dtype());
  c.out(F::kOutput, c.add("dequantize", {x, scales, zero_points},
                          {{"dtype", scales->dtype()}, {"axis", 1}, {"block_size", group}}));
}

const NodeConverters kMpsData{
    {"MPSArange", Arange},
    {"MPSCast", Cast},
    {"MPSDequantizePerChannelGroup", DequantizePerChannelGroup},
    {"MPSFull", Full},
    {"MPSFullLike", FullLike},
};

}  // namespace

}  // namespace anymps::executorch
