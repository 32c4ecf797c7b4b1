// SPDX-License-Identifier: Apache-2.0
#include "ops/gradient_parts.h"

#include "semantics/fused_activation.h"

namespace anymps {

Term move_back(GradientContext& ctx, const Term& places, const Term& dy) {
  const auto flat = [&](const Term& value) { return ctx.reshape(value, {-1}); };
  if (dy.type().static_shape() && element_count(to_shape(dy.shape())) == 0)
    return ctx.fill_like(ctx.x(), 0);
  const Term start = flat(ctx.fill_like(ctx.x(), 0));
  const Term sums =
      ctx.add("scatter", {flat(dy), flat(places), start}, {{"axis", 0}, {"mode", "add"}});
  return ctx.reshape_like(sums, ctx.x());
}

Term move_back(GradientContext& ctx) {
  const Term x = ctx.x(), count = x.op("size");
  const Term numbers =
      ctx.add("range", {ctx.scalar(0, DType::kI64), count, ctx.scalar(1, DType::kI64)});
  std::vector<Term> inputs{ctx.reshape_like(numbers, x)};
  for (size_t i = 1; i < ctx.input_count(); ++i) inputs.push_back(ctx.x(i));
  return move_back(ctx, ctx.add(ctx.op().name.c_str(), inputs, ctx.attrs().named()), ctx.dy());
}

bool through_activation(GradientContext& ctx, const char* alpha, const char* beta) {
  const std::string& name = ctx.attrs().s("activation");
  if (name == "none") return false;
  const double a = ctx.attrs().f(alpha), b = ctx.attrs().f(beta);
  Attrs attrs = ctx.attrs();
  attrs.set({"activation", "none"});
  std::vector<Term> inputs;
  for (size_t i = 0; i < ctx.input_count(); ++i) inputs.push_back(ctx.x(i));
  const Term plain = ctx.add(ctx.op().name.c_str(), inputs, attrs.named());
  switch (parse_activation(name)) {
    case Activation::kClamp:
      ctx.through({plain.op("clamp", {{"min", a}, {"max", b}})});
      break;
    case Activation::kLeakyRelu:
    case Activation::kElu:
      ctx.through({plain.op(name.c_str(), {{"alpha", a}})});
      break;
    case Activation::kGeluTanh:
      ctx.through({plain.op("gelu", {{"approximate", "tanh"}})});
      break;
    case Activation::kHardSigmoid:
      ctx.through({plain.op("hard_sigmoid", {{"alpha", a}, {"beta", b}})});
      break;
    default:
      ctx.through({plain.op(name.c_str())});
  }
  return true;
}

}  // namespace anymps
