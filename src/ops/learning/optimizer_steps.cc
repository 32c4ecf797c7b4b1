// SPDX-License-Identifier: Apache-2.0
// Steps of optimizers as frameworks take them: one parameter at a time with its states, which an
// eager call may overwrite. In mixed precision the parameter may have a wide copy (master), which
// is what the step changes; gradients may be scaled, and a step is left out where found_inf says
// so.
#include "ops/expect.h"
#include "ops/gradient.h"

namespace anymps {

namespace {

const DTypeSet kWide = bit(DType::kF32) | bit(DType::kF64);

int input_named(const Op& op, std::string_view name) {
  for (size_t i = 0; i < op.inputs.size(); ++i)
    if (op.inputs[i].name == name) return static_cast<int>(i);
  return -1;
}

// New values have the shape and dtype of the old ones; where there are none and the step makes
// none, they are empty.
void infer_step(InferContext& ctx) {
  const Op& op = ctx.op;
  for (size_t i = 1; i < op.inputs.size(); ++i) {
    const std::string& name = op.inputs[i].name;
    if (name == "learning_rate" || name == "step" || name == "grad_scale" || name == "found_inf")
      expect_one_element(ctx, i);
    else
      expect_shape(ctx, i, ctx.shape(0));
  }
  ctx.set(0, ctx.shape(0));
  for (size_t i = 1; i < ctx.output_count(); ++i) {
    const size_t input = input_named(op, op.outputs[i].name.substr(4));
    // The first step of sgd makes the momentum.
    const bool made = op.name == "sgd_step" && i == 1 && ctx.attrs.f("momentum") != 0;
    const DType dtype = ctx.has(input) ? ctx.dtype(input) : made ? ctx.dtype(1) : DType::kF32;
    ctx.set(i, dtype, ctx.has(input) || made ? ctx.shape(0) : Dims{0});
  }
  if (op.attr_index("nesterov") >= 0 && ctx.attrs.b("nesterov"))
    ctx.check(ctx.attrs.f("momentum") > 0 && ctx.attrs.f("dampening") == 0,
              "nesterov needs a momentum and no dampening");
}

const char* const kNoStepGradient = "a step changes what is trained; it is no part of it";
const char* const kStepDoc = "a scalar: the number of this step, from 1";

OpWriter& step_begin(OpWriter& op) {
  return op.input("values", kFloat, "T", "the parameter")
      .input("gradient", kFloat, "G")
      .input("learning_rate", kWide, "R", "a scalar");
}

OpWriter& step_end(OpWriter& op) {
  return op.optional("master", kWide, "M", "the parameter in full precision")
      .optional("grad_scale", kWide, "A", "a scalar by which the gradient is divided")
      .optional("found_inf", kWide, "B", "a scalar; not 0: nothing changes")
      .infer(infer_step)
      .domain("learning_rate", 0.01, 0.1)
      .domain("step", 1, 9)
      .domain("grad_scale", 2, 4)
      .domain("found_inf", 0, 0)
      .tolerance({.f32 = 2e-5, .f16 = 2e-3, .bf16 = 2e-2, .f64 = 1e-10});
}

OpWriter& step_attrs(OpWriter& op) {
  return op.attr("weight_decay", 0.0).attr("maximize", false, "uphill");
}

// The states of Adam and its relatives: means of the gradients and of their squares.
OpWriter& moments(OpWriter& op) {
  return op.input("step", kWide, "N", kStepDoc)
      .input("momentum", kFloat, "S")
      .input("velocity", kFloat, "S")
      .domain("velocity", 0.1, 1);
}

OpWriter& new_moments(OpWriter& op) {
  return op.output("new_values").output("new_momentum", "S").output("new_velocity", "S");
}

OpWriter& moment_rates(OpWriter& op) { return op.attr("beta1", 0.9).attr("beta2", 0.999); }

OpWriter& found_inf(OpWriter& op) {
  return op.input("found_inf", kWide, "B", "a scalar").domain("found_inf", 0, 0);
}

}  // namespace

OP(sgd_step)
    .doc(
        "A step of stochastic gradient descent with momentum. Where a momentum is asked for and "
        "none is given, this is the first step, and the gradient becomes the momentum. An output "
        "that does not apply is empty.")
    .formula(
        "g += weight_decay * values; m' = momentum * m + (1 - dampening) * g; "
        "values' = values - learning_rate * (nesterov ? g + momentum * m' : m')")
    .with(step_begin)
    .optional("momentum_buffer", kFloat, "S")
    .with(step_end)
    .output("new_values")
    .by_product("new_momentum_buffer", "f32")
    .by_product("new_master", "f32")
    .attr("momentum", 0.0)
    .attr("dampening", 0.0)
    .attr("nesterov", false)
    .with(step_attrs)
    .sample({"plain", {{3, 5}, {3, 5}, {}}, {{"weight_decay", 0.1}}})
    .sample({"first", {{7}, {7}, {1}}, {{"momentum", 0.9}, {"dampening", 0.2}}})
    .sample({"momentum", {{40}, {40}, {}, {40}}, {{"momentum", 0.9}, {"dampening", 0.2}}})
    .sample({"nesterov",
             {{9}, {9}, {}, {9}, {-1}, {}, {}},
             {{"momentum", 0.9}, {"nesterov", true}, {"maximize", true}}})
    .sample({"master", {{1050}, {1050}, {}, {1050}, {1050}}, {{"momentum", 0.5}}})
    .sample({"empty", {{0}, {0}, {}}, {}});

OP(adam_step)
    .doc(
        "A step of Adam, or of AdamW where the decay is decoupled. With a maximum velocity it is "
        "AMSGrad. An output that does not apply is empty.")
    .formula(
        "g += weight_decay * values, or values *= 1 - learning_rate * weight_decay if decoupled; "
        "m' = m + (1 - beta1) * (g - m); v' = beta2 * v + (1 - beta2) * g^2; max' = max(max, v'); "
        "values' = values - learning_rate / (1 - beta1^step) * m' / "
        "(sqrt(max' or v') / sqrt(1 - beta2^step) + epsilon)")
    .with(step_begin)
    .with(moments)
    .optional("maximum", kFloat, "S")
    .with(step_end)
    .with(new_moments)
    .by_product("new_maximum", "S")
    .by_product("new_master", "f32")
    .with(moment_rates)
    .attr("epsilon", 1e-8)
    .attr("decoupled", false, "AdamW's decay")
    .with(step_attrs)
    .domain("maximum", 0.1, 1)
    .sample({"plain", {{3, 5}, {3, 5}, {}, {}, {3, 5}, {3, 5}}, {{"weight_decay", 0.1}}})
    .sample({"decoupled",
             {{40}, {40}, {}, {}, {40}, {40}},
             {{"weight_decay", 0.1}, {"decoupled", true}, {"maximize", true}}})
    .sample({"maximum", {{9}, {9}, {}, {}, {9}, {9}, {9}, {-1}, {}, {}}, {}})
    .sample({"master", {{1050}, {1050}, {}, {}, {1050}, {1050}, {-1}, {1050}}, {}})
    .sample({"empty", {{0}, {0}, {}, {}, {0}, {0}}, {}});

OP(lamb_step)
    .doc(
        "A step of LAMB: Adam's change, with the decay, scaled by the norm of the parameter over "
        "its own; by 1 where one of them is 0. An output that does not apply is empty.")
    .formula(
        "m' = m + (1 - beta1) * (g - m); v' = beta2 * v + (1 - beta2) * g^2; r = m' / (1 - "
        "beta1^step) / (sqrt(v' / (1 - beta2^step)) + epsilon) + weight_decay * values; "
        "values' = values - learning_rate * norm(values) / norm(r) * r")
    .with(step_begin)
    .with(moments)
    .with(step_end)
    .with(new_moments)
    .by_product("new_master", "f32")
    .with(moment_rates)
    .attr("epsilon", 1e-6)
    .with(step_attrs)
    .sample({"plain", {{3, 5}, {3, 5}, {}, {}, {3, 5}, {3, 5}}, {{"weight_decay", 0.1}}})
    .sample({"long",
             {{5000}, {5000}, {}, {}, {5000}, {5000}, {-1}, {}, {}},
             {{"weight_decay", 0.01}, {"maximize", true}}})
    .sample({"master", {{40}, {40}, {}, {}, {40}, {40}, {40}}, {}})
    .sample({"empty", {{0}, {0}, {}, {}, {0}, {0}}, {}});

OP(adagrad_step)
    .doc("A step of Adagrad.")
    .formula(
        "g += weight_decay * values; sum' = sum + g^2; "
        "values' = values - learning_rate / (1 + (step - 1) * decay) * g / (sqrt(sum') + epsilon)")
    .with(step_begin)
    .input("step", kWide, "N", kStepDoc)
    .input("sum", kFloat, "S", "of squares of gradients")
    .with(step_end)
    .output("new_values")
    .output("new_sum", "S")
    .by_product("new_master", "f32")
    .attr("decay", 0.0, "of the learning rate")
    .attr("epsilon", 1e-10)
    .with(step_attrs)
    .domain("sum", 0.1, 1)
    .sample({"plain", {{3, 5}, {3, 5}, {}, {}, {3, 5}}, {{"weight_decay", 0.1}, {"decay", 0.1}}})
    .sample({"master", {{9}, {9}, {}, {}, {9}, {9}, {}, {}}, {}})
    .sample({"empty", {{0}, {0}, {}, {}, {0}}, {}});

OP(rmsprop_step)
    .doc(
        "A step of RMSProp: centered where a mean gradient is given, with momentum where that is "
        "given. An output that does not apply is empty.")
    .formula(
        "g += weight_decay * values; square' = alpha * square + (1 - alpha) * g^2; "
        "mean' = mean + (1 - alpha) * (g - mean); d = g / (sqrt(square' - mean'^2) + epsilon); "
        "momentum' = rate * momentum + d; values' = values - learning_rate * (momentum' or d)")
    .with(step_begin)
    .input("square", kFloat, "S", "the mean of squares of gradients")
    .optional("mean", kFloat, "S", "of gradients")
    .optional("momentum_buffer", kFloat, "S")
    .with(step_end)
    .output("new_values")
    .output("new_square", "S")
    .by_product("new_mean", "S")
    .by_product("new_momentum_buffer", "S")
    .by_product("new_master", "f32")
    .attr("alpha", 0.99)
    .attr("epsilon", 1e-8)
    .attr("momentum", 0.0)
    .with(step_attrs)
    .domain("square", 4, 5)
    .domain("mean", -0.5, 0.5)
    .sample({"plain", {{3, 5}, {3, 5}, {}, {3, 5}}, {{"weight_decay", 0.1}}})
    .sample({"centered", {{9}, {9}, {}, {9}, {9}}, {}})
    .sample({"momentum", {{9}, {9}, {}, {9}, {-1}, {9}}, {{"momentum", 0.9}}})
    .sample({"all", {{40}, {40}, {}, {40}, {40}, {40}, {40}, {}, {}}, {{"momentum", 0.9}}})
    .sample({"empty", {{0}, {0}, {}, {0}}, {}});

OP(adadelta_step)
    .doc("A step of Adadelta.")
    .formula(
        "g += weight_decay * values; square' = rho * square + (1 - rho) * g^2; "
        "d = sqrt(delta + epsilon) / sqrt(square' + epsilon) * g; "
        "delta' = rho * delta + (1 - rho) * d^2; values' = values - learning_rate * d")
    .with(step_begin)
    .input("square", kFloat, "S", "the mean of squares of gradients")
    .input("delta", kFloat, "S", "the mean of squares of changes")
    .with(step_end)
    .output("new_values")
    .output("new_square", "S")
    .output("new_delta", "S")
    .by_product("new_master", "f32")
    .attr("rho", 0.9)
    .attr("epsilon", 1e-6)
    .with(step_attrs)
    .domain("square", 0.1, 1)
    .domain("delta", 0.1, 1)
    .sample({"plain", {{3, 5}, {3, 5}, {}, {3, 5}, {3, 5}}, {{"weight_decay", 0.1}}})
    .sample({"master", {{9}, {9}, {}, {9}, {9}, {9}, {}, {}}, {{"maximize", true}}})
    .sample({"empty", {{0}, {0}, {}, {0}, {0}}, {}});

OP(lion_step)
    .doc("A step of Lion, whose decay is decoupled.")
    .formula(
        "values' = values * (1 - learning_rate * weight_decay) - learning_rate * "
        "sign(beta1 * m + (1 - beta1) * g); m' = beta2 * m + (1 - beta2) * g")
    .with(step_begin)
    .input("momentum", kFloat, "S")
    .with(step_end)
    .output("new_values")
    .output("new_momentum", "S")
    .by_product("new_master", "f32")
    .attr("beta1", 0.9)
    .attr("beta2", 0.99)
    .with(step_attrs)
    .sample({"plain", {{3, 5}, {3, 5}, {}, {3, 5}}, {{"weight_decay", 0.1}}})
    .sample({"master", {{9}, {9}, {}, {9}, {9}, {}, {}}, {}})
    .sample({"empty", {{0}, {0}, {}, {0}}, {}});

OP(amp_unscale)
    .doc(
        "A gradient times inv_scale, and whether one of its elements is not finite: 1, else what "
        "was found before.")
    .formula("y = gradient * inv_scale; new_found_inf = any(!finite(gradient)) ? 1 : found_inf")
    .input("gradient", kFloat)
    .input("inv_scale", kWide, "R", "a scalar")
    .with(found_inf)
    .output("y")
    .output("new_found_inf", "B")
    .infer([](InferContext& ctx) {
      expect_one_element(ctx, 1);
      expect_one_element(ctx, 2);
      ctx.set(0, ctx.shape(0));
      if (ctx.output_count() > 1) ctx.set(1, ctx.shape(2));
    })
    .sample({"plain", {{3, 5}, {}, {}}, {}})
    .sample({"long", {{2500}, {1}, {1}}, {}})
    .sample({"empty", {{0}, {}, {}}, {}});

OP(amp_update_scale)
    .doc(
        "The scale of gradients for the next step: smaller where one was not finite, larger after "
        "growth_interval steps in a row without.")
    .formula(
        "found_inf: scale * backoff_factor, tracker 0; else tracker + 1, and when that is "
        "growth_interval: scale * growth_factor if that is finite, tracker 0")
    .input("scale", kWide, "R", "a scalar")
    .input("tracker", kIndex, "I", "a scalar: steps in a row without")
    .with(found_inf)
    .output("new_scale", "R")
    .output("new_tracker", "I")
    .attr("growth_factor", 2.0)
    .attr("backoff_factor", 0.5)
    .attr("growth_interval", 2000)
    .reference_only("two numbers")
    .infer([](InferContext& ctx) {
      for (size_t i = 0; i < 3; ++i) expect_one_element(ctx, i);
      ctx.set(0, ctx.shape(0));
      if (ctx.output_count() > 1) ctx.set(1, ctx.shape(1));
    })
    .sample({"grows", {{}, {}, {}}, {{"growth_interval", 3}}, {{1, {2}}}})
    .sample({"stays", {{1}, {1}, {1}}, {}, {{1, {5}}}});

NO_GRADIENT(sgd_step, kNoStepGradient);
NO_GRADIENT(adam_step, kNoStepGradient);
NO_GRADIENT(lamb_step, kNoStepGradient);
NO_GRADIENT(adagrad_step, kNoStepGradient);
NO_GRADIENT(rmsprop_step, kNoStepGradient);
NO_GRADIENT(adadelta_step, kNoStepGradient);
NO_GRADIENT(lion_step, kNoStepGradient);
NO_GRADIENT(amp_unscale, kNoStepGradient);
NO_GRADIENT(amp_update_scale, kNoStepGradient);

}  // namespace anymps
