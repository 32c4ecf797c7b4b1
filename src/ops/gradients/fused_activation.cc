// SPDX-License-Identifier: Apache-2.0
#include "ops/gradients/fused_activation.h"

#include "semantics/fused_activation.h"

namespace anymps {

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
