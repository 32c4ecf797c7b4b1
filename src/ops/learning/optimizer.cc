// SPDX-License-Identifier: Apache-2.0
// Steps of optimizers. Nothing is changed in place: the new values are outputs, which the caller
// feeds to the next step.
#include "ops/elementwise/elementwise_infer.h"
#include "ops/expect.h"
#include "ops/gradient.h"

namespace anymps {

OP(sgd)
    .doc("A step of stochastic gradient descent.")
    .formula("y = values - learning_rate * gradient")
    .mps("stochasticGradientDescentWithLearningRateTensor:valuesTensor:gradientTensor:name:")
    .mps("applyStochasticGradientDescentWithLearningRateTensor:variable:gradientTensor:name:")
    .input("values", kFloat)
    .input("gradient", kFloat)
    .input("learning_rate", kFloat, "T", "usually a scalar")
    .output("y")
    .facts(kElementwise)
    .infer(infer_elementwise);

OP(adam)
    .doc(
        "A step of Adam. With the powers of the betas the learning rate is corrected for the first "
        "steps; without, it is taken as it is. With a maximum velocity (AMSGrad), that is what the "
        "step is divided by.")
    .formula(
        "m' = beta1 * m + (1 - beta1) * g; v' = beta2 * v + (1 - beta2) * g^2; "
        "max' = max(max, v'); lr' = lr * sqrt(1 - beta2_power) / (1 - beta1_power); "
        "values' = values - lr' * m' / (sqrt(max' or v') + epsilon)")
    .mps(
        "adamWithLearningRateTensor:beta1Tensor:beta2Tensor:epsilonTensor:beta1PowerTensor:"
        "beta2PowerTensor:valuesTensor:momentumTensor:velocityTensor:maximumVelocityTensor:"
        "gradientTensor:name:")
    .mps(
        "adamWithCurrentLearningRateTensor:beta1Tensor:beta2Tensor:epsilonTensor:valuesTensor:"
        "momentumTensor:velocityTensor:maximumVelocityTensor:gradientTensor:name:")
    .input("values", kFloat)
    .input("gradient", kFloat)
    .input("momentum", kFloat)
    .input("velocity", kFloat)
    .input("learning_rate", kFloat, "T", "a scalar, as the next three")
    .input("beta1", kFloat)
    .input("beta2", kFloat)
    .input("epsilon", kFloat)
    .optional("maximum_velocity", kFloat)
    .optional("beta1_power", kFloat, "T", "a scalar: beta1 to the power of the step's number")
    .optional("beta2_power", kFloat, "T", "a scalar: beta2 to the power of the step's number")
    .outputs({"new_values", "new_momentum", "new_velocity"})
    .output("new_maximum_velocity", "T", "the new velocity where there is no maximum")
    .infer([](InferContext& ctx) {
      for (size_t i : std::initializer_list<size_t>{1, 2, 3, 8}) expect_shape(ctx, i, ctx.shape(0));
      for (size_t i : std::initializer_list<size_t>{4, 5, 6, 7, 9, 10})
        if (ctx.has(i) && ctx.type(i).ranked)
          ctx.check(
              ctx.shape(i).empty() || (ctx.shape(i).size() == 1 && may_equal(ctx.shape(i)[0], 1)),
              "{} must be a scalar, it has the shape {}", ctx.op.inputs[i].name,
              to_string(ctx.shape(i)));
      ctx.check(ctx.has(9) == ctx.has(10), "beta1_power and beta2_power come together");
      for (size_t i = 0; i < ctx.output_count(); ++i) ctx.set(i, ctx.shape(0));
    })
    .domain("velocity", 0.1, 1)
    .domain("maximum_velocity", 0.1, 1)
    .domain("learning_rate", 0.01, 0.1)
    .domain("beta1", 0.5, 0.9)
    .domain("beta2", 0.5, 0.9)
    .domain("epsilon", 0.001, 0.1)
    .domain("beta1_power", 0.1, 0.9)
    .domain("beta2_power", 0.1, 0.9)
    .sample({"current", {{3, 4}, {3, 4}, {3, 4}, {3, 4}, {}, {}, {}, {}}, {}})
    .sample({"maximum", {{5}, {5}, {5}, {5}, {}, {}, {}, {}, {5}}, {}})
    .sample({"powers", {{5}, {5}, {5}, {5}, {1}, {1}, {}, {}, Sample::absent, {}, {}}, {}})
    .sample({"all", {{2, 3}, {2, 3}, {2, 3}, {2, 3}, {}, {}, {}, {}, {2, 3}, {}, {}}, {}})
    .sample({"empty", {{0}, {0}, {0}, {0}, {}, {}, {}, {}}, {}});

GRADIENT(sgd) {
  const Term dy = ctx.dy();
  ctx.set(0, dy);
  ctx.set(1, -dy * ctx.x(2));
  ctx.set(2, -dy * ctx.x(1));
}

GRADIENT(adam) {
  const auto number = [&](size_t i) { return ctx.x(i).op("reshape", {{"shape", Ints{}}}); };
  const Term g = ctx.x(1), beta1 = number(5), beta2 = number(6);
  const Term momentum = ctx.x(2) * beta1 + g * (1 - beta1);
  const Term velocity = ctx.x(3) * beta2 + g * g * (1 - beta2);
  const Term highest = ctx.has(8) ? ctx.add("max", {ctx.x(8), velocity}) : velocity;
  Term rate = number(4);
  if (ctx.has(9)) rate = rate * (1 - number(10)).op("sqrt") / (1 - number(9));
  const Term values = ctx.x(0) - momentum * rate / (highest.op("sqrt") + number(7));
  // A velocity that is its own maximum is two outputs.
  ctx.through({values, momentum, velocity, ctx.has(8) ? highest : highest.op("identity")});
}

}  // namespace anymps
