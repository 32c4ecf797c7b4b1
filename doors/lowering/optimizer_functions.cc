// SPDX-License-Identifier: Apache-2.0
// Steps of optimizers and the scaling of gradients over lists of tensors.
#include "lowering/evaluate.h"
#include "lowering/functions.h"

namespace anymps::lowering {

namespace {

// The item of a list that may be absent, or shorter than the others (one rate for all).
Value item(const Value& list, size_t i) {
  const auto* values = std::get_if<Values>(&list);
  if (!values || values->empty()) return {};
  return (*values)[std::min(i, values->size() - 1)];
}

// One definition for each of a list; results come as a list for each output of the definition.
Values each(Call& c, const char* definition, size_t lists, size_t outputs, auto&& more) {
  const size_t count = c.part(0).values().size();
  std::vector<Values> columns(outputs);
  for (size_t i = 0; i < count; ++i) {
    Values arguments;
    for (size_t k = 0; k < lists; ++k) arguments.push_back(item(c.part(k), i));
    more(arguments, i);
    const Values results = apply(c.builder, definition, std::move(arguments), {}, outputs);
    for (size_t k = 0; k < outputs; ++k)
      columns[k].push_back(k < results.size() ? results[k] : Value());
  }
  Values all;
  for (const Values& column : columns) all.insert(all.end(), column.begin(), column.end());
  return all;
}

// merged_momentum(param, grad, velocity, rate, master, mu, nesterov, methods, coefficients,
// rescale)
Values merged_momentum(Call& c) {
  const bool masters = c.has(4);
  return each(c, "momentum_of", 5, masters ? 3 : 2, [&](Values& arguments, size_t i) {
    const Ints methods = c.part(7).ints();
    const Floats coefficients = c.part(8).floats();
    const bool decayed = i < methods.size() && methods[i] && i < coefficients.size();
    arguments.insert(arguments.end(),
                     {c.part(5), c.part(6), decayed ? coefficients[i] : 0.0, c.part(9)});
  });
}

// merged_adam(param, grad, rate, m1, m2, m2max, p1, p2, master, beta1, beta2, epsilon, global,
// amsgrad)
//
// Without amsgrad there is no list of the largest moments among the outputs.
Values merged_adam(Call& c) {
  constexpr ptrdiff_t kLargest = 3;
  Values all = each(c, "adam_of", 9, 7, [&](Values& arguments, size_t) {
    arguments.insert(arguments.end(), {Value(), c.part(9), c.part(10), c.part(11), 1.0, 0.0,
                                       c.part(12), c.part(13)});
  });
  if (!c.part(13).flag()) {
    const auto count = std::ssize(c.part(0).values());
    all.erase(all.begin() + kLargest * count, all.begin() + (kLargest + 1) * count);
  }
  return all;
}

// unscaled(grads, scale): the gradients over the scale, and whether one was not finite.
Values unscaled(Call& c) {
  Builder& b = c.builder;
  const Tensor scale = b.reshape(c.part(1).tensor(), {});
  Values results;
  Value found;
  for (const Value& grad : c.part(0).values()) {
    const Value wide =
        is_half(b.dtype(grad.tensor())) ? b.cast(grad.tensor(), AMPS_F32) : grad.tensor();
    const Value bad = b.op("reduce_or", {b.op("logical_not", {b.op("is_finite", {wide})})},
                           {{"keep_dims", false}});
    found = found.absent() ? bad : b.op("logical_or", {found, bad});
    results.push_back(b.cast(b.op("div", {wide, b.cast(scale, b.dtype(wide.tensor()))}).tensor(),
                             b.dtype(grad.tensor())));
  }
  results.push_back(b.reshape(found.tensor(), {1}));
  return results;
}

// updated_scale(grads, found, scale, good, bad, grow_after, shrink_after, grow, shrink, stop)
Values updated_scale(Call& c) {
  Builder& b = c.builder;
  const Value found = b.reshape(c.part(1).tensor(), {});
  Values results;
  for (const Value& grad : c.part(0).values())
    results.push_back(b.op("where", {found, int64_t{0}, grad}));
  if (c.part(9).flag()) {
    results.insert(results.end(), {c.part(2), c.part(3), c.part(4)});
    return results;
  }
  const Values now = apply(
      b, "scale_now",
      {found, c.part(2), c.part(3), c.part(4), c.part(5), c.part(6), c.part(7), c.part(8)}, {}, 3);
  results.insert(results.end(), now.begin(), now.end());
  return results;
}

const Functions registered = {{"merged_momentum", merged_momentum},
                              {"merged_adam", merged_adam},
                              {"unscaled", unscaled},
                              {"updated_scale", updated_scale}};

}  // namespace

}  // namespace anymps::lowering
