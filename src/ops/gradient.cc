// SPDX-License-Identifier: Apache-2.0
#include "ops/gradient.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_set>

namespace anymps {

namespace {

using Ints = std::vector<int64_t>;

std::map<std::string, GradientRule, std::less<>>& rules() {
  static std::map<std::string, GradientRule, std::less<>> all;
  return all;
}

Ints known(const Dims& dims) {
  const Shape shape = to_shape(dims);
  return {shape.begin(), shape.end()};
}

}  // namespace

GradientRegistrar::GradientRegistrar(const char* op, GradientRule rule) {
  rules()[op] = std::move(rule);
}

const GradientRule* find_gradient(const Op& op) {
  const auto it = rules().find(op.name);
  return it == rules().end() ? nullptr : &it->second;
}

const ValueType& Term::type() const { return ctx_->builder().type(*value_); }

const Dims& Term::shape() const {
  if (!type().ranked) ctx_->refuse("the rank of '{}' is not known", ctx_->builder().name(*value_));
  return type().shape;
}

Term Term::op(const char* name, const NamedAttrs& attrs) const {
  return ctx_->add(name, {*this}, attrs);
}

Term operator-(const Term& a) { return a.op("neg"); }
#define ANYMPS_TERM_OPERATOR(symbol, op_name)                                                 \
  Term operator symbol(const Term& a, const Term& b) { return a.ctx().add(op_name, {a, b}); } \
  Term operator symbol(const Term& a, double b) {                                             \
    return a.ctx().add(op_name, {a, a.ctx().scalar(b, a.dtype())});                           \
  }                                                                                           \
  Term operator symbol(double a, const Term& b) {                                             \
    return b.ctx().add(op_name, {b.ctx().scalar(a, b.dtype()), b});                           \
  }
ANYMPS_TERM_OPERATOR(+, "add")
ANYMPS_TERM_OPERATOR(-, "sub")
ANYMPS_TERM_OPERATOR(*, "mul")
ANYMPS_TERM_OPERATOR(/, "div")
ANYMPS_TERM_OPERATOR(<, "less")
ANYMPS_TERM_OPERATOR(>, "greater")
ANYMPS_TERM_OPERATOR(<=, "less_equal")
ANYMPS_TERM_OPERATOR(>=, "greater_equal")
ANYMPS_TERM_OPERATOR(==, "equal")
#undef ANYMPS_TERM_OPERATOR

Term both(const Term& a, const Term& b) { return a.ctx().add("logical_and", {a, b}); }
Term either(const Term& a, const Term& b) { return a.ctx().add("logical_or", {a, b}); }
Term where(const Term& condition, const Term& a, const Term& b) {
  return condition.ctx().add("where", {condition, a, b});
}
Term where(const Term& condition, const Term& a, double b) {
  return where(condition, a, condition.ctx().scalar(b, a.dtype()));
}
Term where(const Term& condition, double a, const Term& b) {
  return where(condition, condition.ctx().scalar(a, b.dtype()), b);
}

GradientContext::GradientContext(GradientBuilder& builder, GradientNode node,
                                 std::vector<Value*> dys, std::vector<bool> wanted)
    : builder_(builder),
      node_(std::move(node)),
      dys_(std::move(dys)),
      dxs_(node_.inputs.size(), nullptr),
      wanted_(std::move(wanted)) {}

Term GradientContext::x(size_t i) { return {this, input_at(i)}; }
Term GradientContext::y(size_t i) { return {this, node_.outputs.at(i)}; }
Term GradientContext::dy(size_t i) { return {this, i < dys_.size() ? dys_[i] : nullptr}; }
Term GradientContext::dy_or_zero(size_t i) { return dy(i) ? dy(i) : fill_like(y(i), 0); }
bool GradientContext::wants(size_t input) const { return input < wanted_.size() && wanted_[input]; }

std::optional<Ints> GradientContext::ints(size_t i, const char* attr) const {
  const Value* value = input_at(i);
  return value ? builder_.known_ints(*value) : node_.attrs.ints(attr);
}

void GradientContext::set(size_t i, const Term& dx) {
  if (!wants(i)) return;
  const Term result = reduce_to_shape_of(dx, x(i));
  const ValueType &type = result.type(), &wanted = x(i).type();
  const bool fits = type.dtype == wanted.dtype &&
                    (!type.ranked || !wanted.ranked || type.shape.size() == wanted.shape.size());
  if (!fits || (type.static_shape() && wanted.static_shape() && !(type.shape == wanted.shape)))
    fail(Code::kInternal, "[gradient] op '{}' makes a gradient {} for input {}, which is {} ({})",
         op().name, to_string(type), i, to_string(wanted), node_.label);
  dxs_[i] = dxs_[i] ? builder_.add(get_op("add"), {dxs_[i], result.value()}, {}, "", 1)[0]
                    : result.value();
}

void GradientContext::through(const std::vector<Term>& outputs) {
  std::vector<Value*> xs;
  std::vector<size_t> places;
  std::unordered_set<const Value*> done;  // an input that comes twice has one gradient
  for (size_t i = 0; i < wanted_.size(); ++i) {
    if (!wanted_[i] || !done.insert(node_.inputs[i]).second) continue;
    xs.push_back(node_.inputs[i]);
    places.push_back(i);
  }
  GradientBuilder::Seeds seeds;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (i < dys_.size() && dys_[i] && outputs[i]) seeds.emplace_back(outputs[i].value(), dys_[i]);
  const std::vector<Value*> gradients = builder_.pull_back(seeds, xs);
  for (size_t k = 0; k < xs.size(); ++k) dxs_[places[k]] = gradients[k];
}

Term GradientContext::add(const char* op, const std::vector<Term>& inputs,
                          const NamedAttrs& attrs) {
  return add_all(op, inputs, attrs, 1)[0];
}

std::vector<Term> GradientContext::add_all(const char* op, const std::vector<Term>& inputs,
                                           const NamedAttrs& attrs, size_t outputs) {
  std::vector<Value*> values;
  for (const Term& input : inputs) values.push_back(input.value());
  const std::string name = fmt::format("{}/grad/{}", node_.name, op);
  std::vector<Term> results;
  for (Value* value : builder_.add(get_op(op), std::move(values), attrs, name, outputs))
    results.emplace_back(this, value);
  return results;
}

Term GradientContext::scalar(double value, DType dtype) {
  return {this, builder_.scalar(dtype, value)};
}
Term GradientContext::ints(const Ints& values) { return {this, builder_.ints(values)}; }

Term GradientContext::shape_of(const Term& value) {
  if (value.type().static_shape()) return ints(known(value.type().shape));
  return value.op("shape");
}

Extent GradientContext::extent(const Term& value, int64_t axis) {
  const Dim& dim = value.shape().at(axis);
  if (dim.known()) return dim.value();
  return value.op("shape", {{"start", axis}, {"end", axis + 1}});
}

Term GradientContext::fill_like(const Term& like, double value) {
  const Term number = scalar(value, like.dtype());
  if (!like.type().static_shape()) return add("fill", {shape_of(like), number});
  if (like.shape().empty()) return number;
  return add("fill", {Term(), number}, {{"shape", known(like.shape())}});
}

Term GradientContext::reshape(const Term& value, const Extents& shape) {
  Ints numbers;
  std::vector<Term> parts;
  bool all = true;
  for (const Extent& extent : shape) {
    all = all && !extent.term;
    numbers.push_back(extent.number);
    parts.push_back(extent.term ? extent.term : ints({extent.number}));
  }
  if (all) return value.op("reshape", {{"shape", numbers}, {"allow_zero", true}});
  return add("reshape", {value, add("concat", parts)}, {{"allow_zero", true}});
}

Term GradientContext::reshape_like(const Term& value, const Term& like) {
  const ValueType &from = value.type(), &to = like.type();
  if (from.ranked && to.ranked && from.shape == to.shape) return value;
  if (to.static_shape())
    return value.op("reshape", {{"shape", known(to.shape)}, {"allow_zero", true}});
  return add("reshape", {value, shape_of(like)}, {{"allow_zero", true}});
}

Term GradientContext::expand_like(const Term& value, const Term& like) {
  const ValueType &from = value.type(), &to = like.type();
  if (from.ranked && to.ranked && from.shape == to.shape) return value;
  if (to.static_shape()) return value.op("expand", {{"shape", known(to.shape)}});
  return add("expand", {value, shape_of(like)});
}

Term GradientContext::reduce_to_shape_of(const Term& value, const Term& like) {
  const ValueType &from = value.type(), &to = like.type();
  if (from.ranked && to.ranked && from.shape == to.shape) return value;
  if (!from.ranked || !to.ranked || from.shape.size() < to.shape.size())
    return add("sum_to", {value, like});
  const size_t lead = from.shape.size() - to.shape.size();
  Ints axes(lead);
  std::iota(axes.begin(), axes.end(), 0);
  for (size_t i = 0; i < to.shape.size(); ++i) {
    const Dim &wide = from.shape[lead + i], &narrow = to.shape[i];
    if (wide == narrow) continue;
    if (!narrow.known()) return add("sum_to", {value, like});  // it may turn out to be 1
    if (narrow.is(1)) axes.push_back(static_cast<int64_t>(lead + i));
  }
  if (axes.empty()) return value;
  const Term sums = sum(value, axes, lead == 0);
  return lead == 0 ? sums : reshape_like(sums, like);
}

Term GradientContext::sum(const Term& value, const Ints& axes, bool keep_dims) {
  if (axes.empty()) return value;
  return value.op("reduce_sum", {{"axes", axes}, {"keep_dims", keep_dims}});
}

Term GradientContext::mean(const Term& value, const Ints& axes) {
  if (axes.empty()) return value;
  return value.op("reduce_mean", {{"axes", axes}, {"keep_dims", true}});
}

Term GradientContext::ratio(const Term& value, const Term& part) {
  const auto count = [&](const Term& term) {
    return term.op("size").op("cast", {{"dtype", value.dtype()}});
  };
  if (!value.type().static_shape() || !part.type().static_shape())
    return count(value) / count(part);
  const int64_t whole = element_count(to_shape(value.shape())),
                pieces = element_count(to_shape(part.shape()));
  return scalar(pieces == 0 ? 0 : static_cast<double>(whole) / static_cast<double>(pieces),
                value.dtype());
}

Term GradientContext::per_channel(const Term& vector, int64_t axis, int64_t rank) {
  Ints shape(rank, 1);
  const Dim& channels = vector.shape().at(0);
  shape.at(axis) = channels.known() ? channels.value() : -1;
  return vector.op("reshape", {{"shape", shape}, {"allow_zero", true}});
}

Term GradientContext::swap_last(const Term& value) {
  Ints perm(value.rank());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm.at(perm.size() - 1), perm.at(perm.size() - 2));
  return value.op("transpose", {{"perm", perm}});
}

void GradientContext::refuse_text(const std::string& reason) const {
  fail(Code::kUnsupported, "[gradient] op '{}': {} ({})", op().name, reason, node_.label);
}

}  // namespace anymps
