// SPDX-License-Identifier: Apache-2.0
// Steps of optimizers, of the domain ai.onnx.preview.training. A node updates any number of
// tensors: its inputs are the learning rate, the number of the step, and then all tensors, all
// gradients and all of each kind of state.
#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

namespace {

// Arithmetic on values and numbers of the values' dtype.
struct Math {
  Call& c;
  Value* number(const Value* like, double value) { return c.scalar_like(like, value); }
  Value* add(Value* a, Value* b) { return c.add("add", {a, b}); }
  Value* sub(Value* a, Value* b) { return c.add("sub", {a, b}); }
  Value* mul(Value* a, Value* b) { return c.add("mul", {a, b}); }
  Value* div(Value* a, Value* b) { return c.add("div", {a, b}); }
  Value* scale(Value* x, double by) { return mul(x, number(x, by)); }
  Value* plus(Value* x, double by) { return add(x, number(x, by)); }
  Value* sqrt(Value* x) { return c.add("sqrt", {x}); }
  // norm * x + g, the gradient with the one of a penalty on x's square.
  Value* regularized(Value* x, Value* g, double norm) { return add(scale(x, norm), g); }
  // `yes` from the second step on, whose number is above 0, else `no`.
  Value* after_first(Value* step, Value* yes, Value* no) {
    return c.add("where", {c.add("greater", {step, number(step, 0)}), yes, no});
  }
};

// The inputs after rate and step, as lists of one kind each.
std::vector<Values> lists(Call& c, size_t kinds) {
  const size_t count = c.input_count();
  c.check(count > 2 && (count - 2) % kinds == 0, "{} inputs do not make {} lists of one length",
          count - 2, kinds);
  std::vector<Values> all(kinds);
  const size_t each = (count - 2) / kinds;
  for (size_t kind = 0; kind < kinds; ++kind)
    for (size_t i = 0; i < each; ++i) all[kind].push_back(c.in(2 + kind * each + i));
  return all;
}

Values joined(const std::vector<Values>& all) {
  Values flat;
  for (const Values& list : all) flat.insert(flat.end(), list.begin(), list.end());
  return flat;
}

ONNX_READ_IN(kTraining, Adagrad) {
  Math m{c};
  const double decay = c.f("decay_factor", 0.0), epsilon = c.f("epsilon", 0.0);
  const double norm = c.f("norm_coefficient", 0.0);
  Value *rate = c.in(0), *step = c.in(1);
  const auto in = lists(c, 3);
  std::vector<Values> out(2);
  for (size_t i = 0; i < in[0].size(); ++i) {
    Value *x = in[0][i], *g = m.regularized(x, in[1][i], norm);
    const DType dtype = x->dtype();
    Value* r = m.div(c.cast(rate, dtype), m.plus(m.scale(c.cast(step, dtype), decay), 1));
    Value* h = m.add(in[2][i], m.mul(g, g));
    out[0].push_back(m.sub(x, m.div(m.mul(r, g), m.plus(m.sqrt(h), epsilon))));
    out[1].push_back(h);
  }
  return joined(out);
}

ONNX_READ_IN(kTraining, Adam) {
  Math m{c};
  const double alpha = c.f("alpha", 0.9), beta = c.f("beta", 0.999), epsilon = c.f("epsilon", 1e-6);
  const double norm = c.f("norm_coefficient", 0.0), post = c.f("norm_coefficient_post", 0.0);
  Value *rate = c.in(0), *step = c.in(1);
  const auto in = lists(c, 4);
  std::vector<Values> out(3);
  for (size_t i = 0; i < in[0].size(); ++i) {
    Value *x = in[0][i], *g = m.regularized(x, in[1][i], norm);
    Value* v = m.add(m.scale(in[2][i], alpha), m.scale(g, 1 - alpha));
    Value* h = m.add(m.scale(in[3][i], beta), m.scale(m.mul(g, g), 1 - beta));
    Value *r = c.cast(rate, x->dtype()), *t = c.cast(step, x->dtype());
    auto rest = [&](double base) {
      return m.sub(m.number(x, 1), c.add("pow", {m.number(x, base), t}));
    };
    r = m.after_first(step, m.div(m.mul(r, m.sqrt(rest(beta))), rest(alpha)), r);
    Value* y = m.sub(x, m.div(m.mul(r, v), m.plus(m.sqrt(h), epsilon)));
    out[0].push_back(post == 0 ? y : m.scale(y, 1 - post));
    out[1].push_back(v);
    out[2].push_back(h);
  }
  return joined(out);
}

ONNX_READ_IN(kTraining, Momentum) {
  Math m{c};
  const double alpha = c.f("alpha"), beta = c.f("beta"), norm = c.f("norm_coefficient");
  const std::string mode = c.s("mode");
  c.check(mode == "standard" || mode == "nesterov", "mode '{}' is not standard or nesterov", mode);
  Value *rate = c.in(0), *step = c.in(1);
  const auto in = lists(c, 3);
  std::vector<Values> out(2);
  for (size_t i = 0; i < in[0].size(); ++i) {
    Value *x = in[0][i], *g = m.regularized(x, in[1][i], norm);
    Value* share = m.after_first(step, m.number(x, beta), m.number(x, 1));
    Value* v = m.add(m.scale(in[2][i], alpha), m.mul(share, g));
    Value* move = mode == "standard" ? v : m.add(g, m.scale(v, alpha));
    out[0].push_back(m.sub(x, m.mul(c.cast(rate, x->dtype()), move)));
    out[1].push_back(v);
  }
  return joined(out);
}

}  // namespace

}  // namespace anymps::onnx
