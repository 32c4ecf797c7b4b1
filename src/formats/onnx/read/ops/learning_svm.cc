// SPDX-License-Identifier: Apache-2.0
// ai.onnx.ml: models of support vectors. A classifier compares each pair of classes: the scores of
// the pairs are one matrix product, and so is counting their votes.
#include "formats/onnx/read/ops/learning.h"
#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

namespace {

using Ints = std::vector<int64_t>;

// The kernel of support vectors: [N, F] and n vectors -> [N, n].
Value* kernel_values(Call& c, Value* x, Value* vectors) {
  const std::string type = c.s("kernel_type", "LINEAR");
  const auto params = numbers_of(c, "kernel_params");
  const auto param = [&](size_t i) { return c.scalar_like(x, i < params.size() ? params[i] : 0); };
  if (type == "RBF") {
    Value* row = c.add("unsqueeze", {x}, {{"axes", Ints{1}}});
    Value* far = c.add("square", {c.add("sub", {row, vectors})});
    Value* distance = c.add("reduce_sum", {far}, {{"axes", Ints{2}}, {"keep_dims", false}});
    return c.add("exp", {c.add("neg", {c.add("mul", {distance, param(0)})})});
  }
  Value* dots = c.add("matmul", {x, vectors}, {{"transpose_b", true}});
  if (type == "LINEAR") return dots;
  Value* line = c.add("add", {c.add("mul", {dots, param(0)}), param(1)});
  if (type == "SIGMOID") return c.add("tanh", {line});
  c.check(type == "POLY", "kernel_type '{}' is not known", type);
  return c.add("pow", {line, param(2)});
}

ONNX_READ_IN(kMl, SVMRegressor) {
  Value* x = as_float(c, matrix(c, c.in(0)));
  const auto coefficients = numbers_of(c, "coefficients"), rho = numbers_of(c, "rho"),
             support = numbers_of(c, "support_vectors");
  const int64_t count = c.i("n_supports", 0);
  if (c.s("post_transform", "NONE") != "NONE") c.unsupported("a post_transform is not supported");
  c.check(!rho.empty(), "attribute 'rho' is missing");
  Value* weights =
      c.add("unsqueeze", {float_list(c, x->dtype(), coefficients)}, {{"axes", Ints{1}}});
  Value* values = x;
  if (count > 0) {
    c.check(std::ssize(support) % count == 0 && std::ssize(coefficients) == count,
            "{} coefficients and {} numbers for {} support vectors", coefficients.size(),
            support.size(), count);
    Value* vectors =
        c.add("reshape", {float_list(c, x->dtype(), support)}, {{"shape", Ints{count, -1}}});
    values = kernel_values(c, x, vectors);
  } else {
    c.ignore({"kernel_type", "kernel_params"});
  }
  Value* y = c.add("add", {c.add("matmul", {values, weights}), c.scalar_like(x, rho[0])});
  if (c.flag("one_class", false)) {
    Value* inside = c.add("greater", {y, c.scalar_like(y, 0)});
    y = c.add("where", {inside, c.scalar_like(y, 1), c.scalar_like(y, -1)});
  }
  return {c.cast(y, DType::kF32)};
}

// What a classifier's attributes say of its support vectors.
struct Machine {
  int64_t classes = 0, vectors = 0;
  Ints starts;  // of the vectors of each class, and the end
  int64_t pairs() const { return classes * (classes - 1) / 2; }
};

// fn(pair, i, j) for each two classes i < j.
template <typename Fn>
void for_each_pair(int64_t classes, Fn&& fn) {
  int64_t pair = 0;
  for (int64_t i = 0; i < classes; ++i)
    for (int64_t j = i + 1; j < classes; ++j) fn(pair++, i, j);
}

Machine machine_of(Call& c, int64_t classes, const Ints& per_class) {
  Machine machine{classes, 0, {0}};
  c.check(std::ssize(per_class) == classes, "vectors_per_class has {} entries for {} classes",
          per_class.size(), classes);
  for (const int64_t count : per_class) {
    c.check(count >= 0 && count <= INT32_MAX, "a class has {} support vectors", count);
    machine.starts.push_back(machine.vectors += count);
  }
  return machine;
}

Value* float_matrix(Call& c, DType dtype, const std::vector<double>& numbers, int64_t rows,
                    int64_t columns) {
  return c.add("reshape", {float_list(c, dtype, numbers)}, {{"shape", Ints{rows, columns}}});
}

// [N, pairs]: above 0 speaks for the first class of the pair.
Value* pair_scores(Call& c, Value* x, const Machine& machine) {
  const auto coefficients = numbers_of(c, "coefficients"),
             support = numbers_of(c, "support_vectors"), rho = numbers_of(c, "rho");
  const size_t n = machine.vectors, pairs = machine.pairs();
  c.check(support.size() % n == 0 && !support.empty(), "{} numbers for {} support vectors",
          support.size(), n);
  c.check(
      coefficients.size() >= static_cast<size_t>(machine.classes - 1) * n && rho.size() >= pairs,
      "{} coefficients and {} constants (rho) for {} support vectors and {} pairs of classes",
      coefficients.size(), rho.size(), n, pairs);
  std::vector<double> weights(n * pairs);
  for_each_pair(machine.classes, [&](int64_t pair, int64_t i, int64_t j) {
    const auto fill = [&](int64_t of, int64_t row) {
      for (int64_t m = machine.starts[of]; m < machine.starts[static_cast<size_t>(of) + 1]; ++m)
        weights[static_cast<size_t>(m) * pairs + static_cast<size_t>(pair)] =
            coefficients[static_cast<size_t>(row) * n + static_cast<size_t>(m)];
    };
    fill(i, j - 1);
    fill(j, i);
  });
  Value* vectors = float_matrix(c, x->dtype(), support, machine.vectors, -1);
  Value* values = kernel_values(c, x, vectors);
  Value* by_pair = float_matrix(c, x->dtype(), weights, machine.vectors, machine.pairs());
  const std::vector<double> constants(rho.begin(),
                                      rho.begin() + static_cast<std::ptrdiff_t>(pairs));
  return c.add("matmul", {values, by_pair, float_list(c, x->dtype(), constants)});
}

// The class that wins most pairs, the first of equal ones.
Value* most_votes(Call& c, Value* scores, const Machine& machine) {
  const size_t classes = machine.classes;
  std::vector<double> first(static_cast<size_t>(machine.pairs()) * classes), second(first.size());
  for_each_pair(machine.classes, [&](int64_t pair, int64_t i, int64_t j) {
    first[static_cast<size_t>(pair) * classes + static_cast<size_t>(i)] = 1;
    second[static_cast<size_t>(pair) * classes + static_cast<size_t>(j)] = 1;
  });
  Value* won = c.cast(c.add("greater", {scores, c.scalar_like(scores, 0)}), scores->dtype());
  Value* lost = c.add("sub", {c.scalar_like(scores, 1), won});
  const auto votes = [&](Value* from, const std::vector<double>& to) {
    return c.add("matmul",
                 {from, float_matrix(c, scores->dtype(), to, machine.pairs(), machine.classes)});
  };
  Value* all = c.add("add", {votes(won, first), votes(lost, second)});
  return c.add("arg_max", {all}, {{"axis", 1}, {"keep_dims", false}});
}

// Platt's sigmoid of each pair's score, and what follows from all pairs for the classes.
Value* probabilities(Call& c, Value* scores, const Machine& machine, const std::vector<double>& a,
                     const std::vector<double>& b) {
  const size_t pairs = machine.pairs();
  c.check(a.size() >= pairs && b.size() >= pairs,
          "{} and {} numbers of prob_a and prob_b for {} pairs", a.size(), b.size(), pairs);
  const auto list = [&](const std::vector<double>& numbers) {
    return float_list(c, scores->dtype(),
                      {numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(pairs)});
  };
  Value* line = c.add("add", {c.add("mul", {scores, list(a)}), list(b)});
  Value* p = c.add("sigmoid", {c.add("neg", {line})});
  p = c.add("min", {c.add("max", {p, c.scalar_like(p, 1e-7)}), c.scalar_like(p, 1 - 1e-7)});
  return c.add("pair_coupling", {p}, {{"classes", machine.classes}});
}

ONNX_READ_IN(kMl, SVMClassifier) {
  Value* x = as_float(c, matrix(c, c.in(0)));
  Value* labels = class_labels(c, "classlabels_ints", "classlabels_strings");
  c.check(labels != nullptr, "the labels of the classes are missing");
  const int64_t classes = labels->shape()[0].value();
  const Ints per_class = c.ints("vectors_per_class").value_or(Ints{});
  const auto a = numbers_of(c, "prob_a"), b = numbers_of(c, "prob_b");
  const std::string how = c.s("post_transform", "NONE");
  c.check(a.size() == b.size(), "prob_a has {} numbers, prob_b {}", a.size(), b.size());
  const auto give = [&](Value* best, Value* scores) -> Values {
    return {label_of(c, labels, best), c.cast(transformed(c, scores, how), DType::kF32)};
  };
  if (per_class.empty()) {  // a line for each class
    c.ignore({"kernel_type", "kernel_params", "support_vectors"});
    const auto coefficients = numbers_of(c, "coefficients"), rho = numbers_of(c, "rho");
    c.check(!rho.empty() && std::ssize(coefficients) % classes == 0,
            "{} coefficients and {} constants (rho) for {} classes", coefficients.size(),
            rho.size(), classes);
    if (classes <= 2)
      c.unsupported("linear support vectors of {} classes: runtimes disagree on the label",
                    classes);
    Value* w = float_matrix(c, x->dtype(), coefficients, classes, -1);
    Value* dots = c.add("matmul", {x, w}, {{"transpose_b", true}});
    Value* scores = c.add("add", {dots, c.scalar_like(x, rho[0])});
    return give(c.add("arg_max", {scores}, {{"axis", 1}, {"keep_dims", false}}), scores);
  }
  if (classes < 2) c.unsupported("support vectors of {} class", classes);
  const Machine machine = machine_of(c, classes, per_class);
  c.check(machine.vectors > 0, "there are no support vectors");
  Value* scores = pair_scores(c, x, machine);
  Value* best = most_votes(c, scores, machine);
  if (!a.empty()) return give(best, probabilities(c, scores, machine, a, b));
  if (classes > 2) return give(best, scores);
  if (how != "NONE") c.unsupported("post_transform {} of a single score", how);
  return give(best, c.add("concat", {c.add("neg", {scores}), scores}, {{"axis", 1}}));
}

}  // namespace

}  // namespace anymps::onnx
