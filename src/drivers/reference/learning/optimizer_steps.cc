// SPDX-License-Identifier: Apache-2.0
// Steps of optimizers with their states, element by element in double.
#include <cmath>
#include <initializer_list>

#include "drivers/reference/dense.h"
#include "semantics/scalar_functions.h"

namespace anymps {

namespace {

using Numbers = std::vector<double>;

// The inputs and outputs of a step, by their names.
class Step {
 public:
  explicit Step(const ReferenceArgs& args) : args_(args) {
    rate = number("learning_rate", 0);
    values = has("master") ? read("master") : read("values");
    gradient = read("gradient");
    const double sign = args.attrs.b("maximize") ? -1 : 1;
    for (double& g : gradient) g = sign * g / number("grad_scale", 1);
  }
  bool has(const char* name) const { return args_.has(input(name)); }
  Numbers read(const char* name) const { return read_dense<double>(args_.in[input(name)]); }
  double number(const char* name, double absent) const {
    return has(name) ? load_double(args_.in[input(name)], 0) : absent;
  }
  double f(const char* attr) const { return args_.attrs.f(attr); }
  bool b(const char* attr) const { return args_.attrs.b(attr); }
  void decay() {  // as a part of the gradient
    if (f("weight_decay") != 0)
      for (size_t i = 0; i < values.size(); ++i) gradient[i] += f("weight_decay") * values[i];
  }
  // A new state. Where found_inf is set, all stays as it was.
  void write(const char* name, const Numbers& state) const {
    const std::string output = std::string("new_") + name;
    for (size_t i = 1; i < args_.out.size(); ++i)
      if (args_.op.outputs[i].name == output && args_.out[i].count() > 0)
        write_dense(args_.out[i], stays() && has(name) ? read(name) : state);
  }
  struct State {
    const char* name;
    const Numbers& numbers;
  };
  void finish(std::initializer_list<State> states = {}) const {
    for (const State& state : states) write(state.name, state.numbers);
    write_dense(args_.out[0], stays() ? read("values") : values);
    write("master", values);
  }

  Numbers values, gradient;
  double rate = 0;

 private:
  bool stays() const { return number("found_inf", 0) != 0; }
  size_t input(const char* name) const {
    for (size_t i = 0; i < args_.op.inputs.size(); ++i)
      if (args_.op.inputs[i].name == name) return i;
    return args_.op.inputs.size();
  }
  const ReferenceArgs& args_;
};

}  // namespace

REFERENCE(sgd_step) {
  Step s(args);
  s.decay();
  const double momentum = s.f("momentum");
  Numbers change = s.gradient;
  if (momentum != 0) {
    Numbers buffer = s.gradient;
    if (s.has("momentum_buffer")) {
      buffer = s.read("momentum_buffer");
      for (size_t i = 0; i < buffer.size(); ++i)
        buffer[i] = momentum * buffer[i] + (1 - s.f("dampening")) * s.gradient[i];
    }
    for (size_t i = 0; i < buffer.size(); ++i)
      change[i] = s.b("nesterov") ? s.gradient[i] + momentum * buffer[i] : buffer[i];
    s.write("momentum_buffer", buffer);
  } else if (s.has("momentum_buffer")) {
    s.write("momentum_buffer", s.read("momentum_buffer"));
  }
  for (size_t i = 0; i < change.size(); ++i) s.values[i] -= s.rate * change[i];
  s.finish();
}

REFERENCE(adam_step) {
  Step s(args);
  if (s.b("decoupled"))
    for (double& value : s.values) value *= 1 - s.rate * s.f("weight_decay");
  else
    s.decay();
  Numbers m = s.read("momentum"), v = s.read("velocity"), highest = v;
  if (s.has("maximum")) highest = s.read("maximum");
  const double step = s.number("step", 1), beta1 = s.f("beta1"), beta2 = s.f("beta2");
  const double size = s.rate / (1 - std::pow(beta1, step));
  const double root = std::sqrt(1 - std::pow(beta2, step));
  for (size_t i = 0; i < m.size(); ++i) {
    const double g = s.gradient[i];
    m[i] += (1 - beta1) * (g - m[i]);
    v[i] = beta2 * v[i] + (1 - beta2) * g * g;
    highest[i] = s.has("maximum") ? scalar::max(highest[i], v[i], true) : v[i];
    s.values[i] -= size * m[i] / (std::sqrt(highest[i]) / root + s.f("epsilon"));
  }
  s.finish({{"momentum", m}, {"velocity", v}, {"maximum", highest}});
}

REFERENCE(lamb_step) {
  Step s(args);
  Numbers m = s.read("momentum"), v = s.read("velocity"), change(m.size());
  const double step = s.number("step", 1), beta1 = s.f("beta1"), beta2 = s.f("beta2");
  double own = 0, other = 0;
  for (size_t i = 0; i < m.size(); ++i) {
    const double g = s.gradient[i];
    m[i] += (1 - beta1) * (g - m[i]);
    v[i] = beta2 * v[i] + (1 - beta2) * g * g;
    change[i] = m[i] / (1 - std::pow(beta1, step)) /
                (std::sqrt(v[i] / (1 - std::pow(beta2, step))) + s.f("epsilon"));
    if (s.f("weight_decay") != 0) change[i] += s.f("weight_decay") * s.values[i];
    own += s.values[i] * s.values[i];
    other += change[i] * change[i];
  }
  const double trust = own > 0 && other > 0 ? std::sqrt(own) / std::sqrt(other) : 1;
  for (size_t i = 0; i < m.size(); ++i) s.values[i] -= s.rate * trust * change[i];
  s.finish({{"momentum", m}, {"velocity", v}});
}

REFERENCE(adagrad_step) {
  Step s(args);
  s.decay();
  Numbers sum = s.read("sum");
  const double rate = s.rate / (1 + (s.number("step", 1) - 1) * s.f("decay"));
  for (size_t i = 0; i < sum.size(); ++i) {
    sum[i] += s.gradient[i] * s.gradient[i];
    s.values[i] -= rate * s.gradient[i] / (std::sqrt(sum[i]) + s.f("epsilon"));
  }
  s.finish({{"sum", sum}});
}

REFERENCE(rmsprop_step) {
  Step s(args);
  s.decay();
  const Numbers zeros(s.values.size(), 0.0);
  Numbers square = s.read("square"), mean = s.has("mean") ? s.read("mean") : zeros,
          buffer = s.has("momentum_buffer") ? s.read("momentum_buffer") : zeros;
  const double alpha = s.f("alpha");
  for (size_t i = 0; i < square.size(); ++i) {
    const double g = s.gradient[i];
    square[i] = alpha * square[i] + (1 - alpha) * g * g;
    if (s.has("mean")) mean[i] += (1 - alpha) * (g - mean[i]);
    double d = g / (std::sqrt(square[i] - mean[i] * mean[i]) + s.f("epsilon"));
    if (s.has("momentum_buffer")) d = buffer[i] = s.f("momentum") * buffer[i] + d;
    s.values[i] -= s.rate * d;
  }
  s.finish({{"square", square}, {"mean", mean}, {"momentum_buffer", buffer}});
}

REFERENCE(adadelta_step) {
  Step s(args);
  s.decay();
  Numbers square = s.read("square"), delta = s.read("delta");
  const double rho = s.f("rho"), epsilon = s.f("epsilon");
  for (size_t i = 0; i < square.size(); ++i) {
    const double g = s.gradient[i];
    square[i] = rho * square[i] + (1 - rho) * g * g;
    const double d = std::sqrt(delta[i] + epsilon) / std::sqrt(square[i] + epsilon) * g;
    delta[i] = rho * delta[i] + (1 - rho) * d * d;
    s.values[i] -= s.rate * d;
  }
  s.finish({{"square", square}, {"delta", delta}});
}

REFERENCE(lion_step) {
  Step s(args);
  Numbers m = s.read("momentum");
  const double beta1 = s.f("beta1"), beta2 = s.f("beta2");
  for (size_t i = 0; i < m.size(); ++i) {
    const double g = s.gradient[i], u = beta1 * m[i] + (1 - beta1) * g;
    const double sign = u > 0 ? 1 : u < 0 ? -1 : u;  // NaN stays
    s.values[i] = s.values[i] * (1 - s.rate * s.f("weight_decay")) - s.rate * sign;
    m[i] = beta2 * m[i] + (1 - beta2) * g;
  }
  s.finish({{"momentum", m}});
}

REFERENCE(amp_unscale) {
  Numbers y = read_dense<double>(args.in[0]);
  const double scale = load_double(args.in[1], 0);
  double found = load_double(args.in[2], 0);
  for (double& value : y) {
    if (!std::isfinite(value)) found = 1;
    value *= scale;
  }
  write_dense(args.out[0], y);
  if (args.out.size() > 1) write_dense(args.out[1], Numbers{found});
}

REFERENCE(amp_update_scale) {
  double scale = load_double(args.in[0], 0);
  auto tracker = static_cast<uint64_t>(load_int(args.in[1], 0));
  if (load_double(args.in[2], 0) != 0) {
    scale *= args.attrs.f("backoff_factor");
    tracker = 0;
  } else if (static_cast<int64_t>(++tracker) == args.attrs.i("growth_interval")) {
    const double grown = scale * args.attrs.f("growth_factor");
    const bool fits = args.in[0].dtype == DType::kF64 ? std::isfinite(grown)
                                                      : std::isfinite(static_cast<float>(grown));
    if (fits) scale = grown;
    tracker = 0;
  }
  write_dense(args.out[0], Numbers{scale});
  if (args.out.size() > 1) write_dense(args.out[1], std::vector<uint64_t>{tracker});
}

}  // namespace anymps
