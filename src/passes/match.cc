// SPDX-License-Identifier: Apache-2.0
#include "passes/match.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/half.h"
#include "graph/copy_body.h"
#include "graph/known.h"
#include "memory/refreshable.h"

namespace anymps {

bool can_replace(const Graph& graph, const Value* from, const Value* to) {
  if (from == to || from->dtype() != to->dtype()) return false;
  return !graph.is_output(from) || (!graph.is_output(to) && !to->is_input());
}

bool Rewriter::replace(Value* from, Value* to) {
  if (!can_replace(graph_, from, to)) return false;
  graph_.replace_uses(from, to);
  if (from->producer) erase_unused(from->producer);
  return true;
}

void Rewriter::erase_unused(Node* node) {
  std::vector<Node*> todo = {node};
  while (!todo.empty()) {
    Node* next = todo.back();
    todo.pop_back();
    if (gone_.contains(next) || has_effects(*next)) continue;
    const bool used = std::any_of(next->outputs.begin(), next->outputs.end(), [&](Value* value) {
      return !value->users.empty() || graph_.is_output(value);
    });
    if (used) continue;
    for (Value* input : next->inputs)
      if (input && input->producer) todo.push_back(input->producer);
    gone_.insert(next);
    graph_.erase(next);
  }
}

Node* made_by(const Value* value, std::string_view op) {
  return value && value->producer && value->producer->is(op) ? value->producer : nullptr;
}

Node* made_by(const Value* value, std::initializer_list<std::string_view> ops) {
  for (std::string_view op : ops)
    if (Node* node = made_by(value, op)) return node;
  return nullptr;
}

bool single_use(const Graph& graph, const Value* value) {
  return value->users.size() == 1 && !graph.is_output(value);
}

int64_t rank_of(const Value* value) { return value->type.ranked ? std::ssize(value->shape()) : -1; }

bool same_shape(const Dims& a, const Dims& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

bool same_shape(const Value* a, const Value* b) {
  return a->type.ranked && b->type.ranked && same_shape(a->shape(), b->shape());
}

bool is_scalar(const Value* value) {
  return value->type.ranked && std::all_of(value->shape().begin(), value->shape().end(),
                                           [](const Dim& dim) { return dim.is(1); });
}

std::optional<Affine> as_affine(const Node& node) {
  const bool product = node.is("mul") || node.is("div");
  if (!product && !node.is("add") && !node.is("sub")) return std::nullopt;
  if (!is_float(node.output()->dtype())) return std::nullopt;
  if (node.is("div") && node.attrs.s("rounding") != "none") return std::nullopt;
  Value *a = node.input(0), *b = node.input(1);
  if (auto number = scalar_of(b); number && same_shape(a, node.output())) {
    if (node.is("mul")) return Affine{a, *number, 0};
    if (node.is("div"))
      return *number == 0 ? std::nullopt : std::optional(Affine{a, 1 / *number, 0});
    return Affine{a, 1, node.is("add") ? *number : -*number};
  }
  if (auto number = scalar_of(a); number && !node.is("div") && same_shape(b, node.output())) {
    if (node.is("mul")) return Affine{b, *number, 0};
    return Affine{b, node.is("add") ? 1.0 : -1.0, *number};
  }
  return std::nullopt;
}

bool near(double a, double b, DType dtype) {
  const double tolerance = dtype == DType::kBF16 ? 8e-3 : dtype == DType::kF16 ? 2e-3 : 1e-5;
  return std::abs(a - b) <= tolerance * std::max(std::abs(b), 1e-3);
}

namespace {

bool has_number(DType half, double number) {
  const auto value = static_cast<float>(number);
  return half == DType::kF16 ? static_cast<float>(Half(value)) == value
                             : static_cast<float>(BFloat(value)) == value;
}

}  // namespace

void StoredNumbers::add(double number) {
  for (const DType half : {DType::kF16, DType::kBF16})
    if (contains(halves_, half) && !has_number(half, number) && !has_number(half, 1 / number))
      halves_ &= ~bit(half);
}

DType StoredNumbers::dtype() const {
  for (const DType half : {DType::kF16, DType::kBF16})
    if (contains(halves_, half)) return half;
  return dtype_;
}

std::optional<std::vector<double>> numbers_of(const Value* value, int64_t limit) {
  if (!value || !value->constant || !contains(kReal, value->dtype())) return std::nullopt;
  if (value->constant->desc().count() > limit) return std::nullopt;
  if (is_refreshable(*value->constant)) return std::nullopt;
  return doubles_of(*value->constant);
}

ConstantPtr constant_from(DType dtype, Shape shape, const std::vector<double>& numbers) {
  return dispatch<kFloat>(dtype, [&]<typename T>() {
    std::vector<T> elements;
    for (double number : numbers)
      elements.push_back(static_cast<T>(static_cast<Compute<T>>(number)));
    return Constant::copy(dtype, std::move(shape), std::as_bytes(std::span(elements)));
  });
}

std::optional<std::vector<int64_t>> known_ints(const Node& node, size_t i, const char* attr) {
  const Value* value = node.input(i);
  return value ? known_ints(*value) : node.attrs.ints(attr);
}

std::optional<std::vector<int64_t>> reshape_attr(const Dims& from, const Dims& to) {
  if (to.empty()) return std::nullopt;  // an empty attribute would mean no shape
  std::vector<int64_t> shape;
  bool inferred = false;
  for (size_t i = 0; i < to.size(); ++i) {
    const bool copied = i < from.size() && from[i] == to[i];
    if (to[i].known() && to[i].value() > 0) {
      shape.push_back(to[i].value());
    } else if (copied) {
      shape.push_back(0);
    } else if (!to[i].known() && !inferred) {
      shape.push_back(-1);
      inferred = true;
    } else {
      return std::nullopt;
    }
  }
  return shape;
}

Value* reshaped(Graph& graph, Value* value, const Dims& shape, const std::string& name) {
  if (value->type.ranked && same_shape(value->shape(), shape)) return value;
  if (!value->type.ranked) return nullptr;
  auto attr = reshape_attr(value->shape(), shape);
  return attr ? graph.add("reshape", {value}, {{"shape", *attr}}, name) : nullptr;
}

std::vector<int64_t> perm_of(const Node& transpose) {
  const auto rank = std::ssize(transpose.input(0)->shape());
  std::vector<int64_t> perm = transpose.attrs.ints("perm");
  if (perm.empty()) {
    perm.resize(rank);
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  for (int64_t& axis : perm)
    if (axis < 0) axis += rank;
  return perm;
}

}  // namespace anymps
