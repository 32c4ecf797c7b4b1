// SPDX-License-Identifier: Apache-2.0
// Types, gradients and small compositions of the engine's ops.
#include "lowering/functions.h"

#include <algorithm>

namespace anymps::lowering {

namespace {

// vjp(y, dy, x, ...): the gradients of sum(dy * y) to each x.
Values vjp(Call& c) {
  std::vector<Tensor> xs;
  for (size_t i = 2; i < c.parts.size(); ++i) xs.push_back(c.parts[i].tensor());
  const Tensor y = c.part(0).tensor();
  return c.builder.gradient(y, c.builder.cast(c.part(1).tensor(), c.builder.dtype(y)), xs);
}

// vjp_list(y, dy, xs): to each of a list.
Values vjp_list(Call& c) {
  std::vector<Tensor> xs;
  for (const Value& x : c.part(2).values()) xs.push_back(x.tensor());
  return c.builder.gradient(c.part(0).tensor(), c.part(1).tensor(), xs);
}
// with_kept(y, xs): y, copies of xs for the gradient, and outputs behind them that stay as they
// are.
Values with_kept(Call& c) {
  Values results{c.part(0)};
  for (const Value& x : c.part(1).values())
    results.push_back(Tensor{x.tensor().value, false, true});
  results.resize(std::max(c.results, results.size()));
  return results;
}

// A tensor, or a number, as a tensor of a type.
Tensor typed(Call& c, amps_dtype type) {
  if (c.part(0).is_tensor()) return c.builder.cast(c.parts[0].tensor(), type);
  return c.builder.number(c.parts[0], type);
}
Values to(Call& c) { return {typed(c, c.part(1).dtype())}; }
Values like(Call& c) { return {typed(c, c.builder.dtype(c.part(1).tensor()))}; }
Values wide(Call& c) {  // half types in f32; numbers as they are
  const Value& x = c.part(0);
  const bool half = x.is_tensor() && is_half(c.builder.dtype(x.tensor()));
  return {half ? Value(c.builder.cast(x.tensor(), AMPS_F32)) : x};
}
Values reshaped(Call& c) { return {c.builder.reshape(c.part(0).tensor(), c.part(1).ints())}; }
// A tensor of one number, in a shape.
Values filled(Call& c) {
  const amps_dtype type = c.part(2).dtype();
  const Tensor number = c.part(1).is_tensor() ? c.builder.cast(c.parts[1].tensor(), type)
                                              : c.builder.number(c.parts[1], type);
  return {c.builder.op("expand", {number}, {{"shape", c.part(0).ints()}})};
}
Values axis_sum(Call& c) {  // x summed to the shape of y
  const Tensor x = c.part(0).tensor(), y = c.part(1).tensor();
  if (c.builder.dims(x) == c.builder.dims(y)) return {x};
  return {c.builder.op("sum_to", {x, y})};
}
Values transposed(Call& c) {
  return {c.builder.op("transpose", {c.part(0)}, {{"perm", c.part(1).ints()}})};
}
// Whether elements, or a number, are not 0.
Values truth(Call& c) {
  const Value& x = c.part(0);
  if (x.is_static_number()) return {c.builder.number(x.number() != 0, AMPS_BOOL)};
  if (c.builder.dtype(x.tensor()) == AMPS_BOOL) return {x};
  return {c.builder.binary("not_equal", x, int64_t{0})};
}
Tensor as_float(Builder& builder, Tensor x) {  // integers as f32
  return is_float(builder.dtype(x)) ? x : builder.cast(x, AMPS_F32);
}
Values floating(Call& c) { return {as_float(c.builder, c.part(0).tensor())}; }
Values add_all(Call& c) {
  const Values& list = c.part(0).values();
  Value sum = list.at(0);
  for (size_t i = 1; i < list.size(); ++i) sum = c.builder.op("add", {sum, list[i]});
  return {sum};
}
// summed(x, axes, keep, dtype): small integers are summed in i64, and halves in f32.
Values summed(Call& c) {
  Tensor x = c.part(0).tensor();
  const amps_dtype type = c.builder.dtype(x);
  if (c.has(3))
    x = c.builder.cast(x, c.parts[3].dtype());
  else if (!is_float(type) && !is_complex(type))
    x = c.builder.cast(x, AMPS_I64);
  return {c.builder.op("reduce_sum", {x},
                       {{"axes", c.part(1)}, {"keep_dims", c.part(2)}, {"empty_axes", "none"}})};
}
// broadcast_back(y, x, axes): what a reduction over these axes made, in the shape of x.
Values broadcast_back(Call& c) {
  const Ints dims = c.builder.dims(c.part(1).tensor());
  Ints kept = dims;
  for (const int64_t axis : c.part(2).ints()) kept.at(axis) = 1;
  const Tensor y = c.builder.reshape(c.part(0).tensor(), kept);
  return {kept == dims ? Value(y) : c.builder.op("expand", {y}, {{"shape", dims}})};
}
// spread(x, axes, keep, correction): the variance, with count - correction as divisor.
Values spread(Call& c) {
  const Tensor x = c.part(0).tensor();
  const Ints dims = c.builder.dims(x), axes = c.part(1).ints();
  double count = 1;
  for (const int64_t axis : axes) count *= static_cast<double>(dims.at(axis));
  const NamedValues over{{"axes", axes}, {"keep_dims", true}, {"empty_axes", "none"}};
  const Tensor wide = is_half(c.builder.dtype(x)) ? c.builder.cast(x, AMPS_F32) : x;
  const Value mean = c.builder.op("reduce_mean", {wide}, over);
  const Value distance = c.builder.op("sub", {wide, mean});
  const Value squares =
      c.builder.op("reduce_sum_square", {distance},
                   {{"axes", axes}, {"keep_dims", c.part(2)}, {"empty_axes", "none"}});
  return {c.builder.cast(
      c.builder.binary("div", squares, std::max(0.0, count - c.part(3).number())).tensor(),
      c.builder.dtype(x))};
}
// near(x, y, rtol, atol, equal_nan)
Values near(Call& c) {
  Builder& b = c.builder;
  const Value x = as_float(b, c.part(0).tensor()), y = as_float(b, c.part(1).tensor());
  const Value distance = b.op("abs", {b.op("sub", {x, y})}),
              most = b.binary("add", b.binary("mul", b.op("abs", {y}), c.part(2)), c.part(3));
  Value close =
      b.op("logical_or",
           {b.op("equal", {x, y}),
            b.op("logical_and", {b.op("is_finite", {y}), b.op("less_equal", {distance, most})})});
  if (c.part(4).flag())
    close = b.op("logical_or",
                 {close, b.op("logical_and", {b.op("is_nan", {x}), b.op("is_nan", {y})})});
  return {close};
}
Values list(Call& c) { return {Value(c.parts)}; }
// As many results as there are in lists and lists of lists.
Values flat(Call& c) {
  Values results;
  const auto add = [&](const auto& self, const Values& parts) -> void {
    for (const Value& part : parts) {
      const auto* inner = std::get_if<Values>(&part);
      if (inner)
        self(self, *inner);
      else
        results.push_back(part);
    }
  };
  add(add, c.parts);
  return results;
}
// A result whose type is right, where the framework has none or another in mind.
Values own(Call& c) { return {Tensor{c.part(0).tensor().value, false, true}}; }

const Functions registered = {{"vjp", vjp},
                              {"vjp_list", vjp_list},
                              {"with_kept", with_kept},
                              {"to", to},
                              {"like", like},
                              {"wide", wide},
                              {"tensor", to},
                              {"reshaped", reshaped},
                              {"filled", filled},
                              {"sum_like", axis_sum},
                              {"transposed", transposed},
                              {"truth", truth},
                              {"floating", floating},
                              {"add_all", add_all},
                              {"summed", summed},
                              {"broadcast_back", broadcast_back},
                              {"spread", spread},
                              {"near", near},
                              {"own", own},
                              {"list", list},
                              {"flat", flat}};

}  // namespace

}  // namespace anymps::lowering
