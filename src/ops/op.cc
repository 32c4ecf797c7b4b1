// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

#include <algorithm>
#include <map>

namespace anymps {

namespace {

using Table = std::map<std::string, std::unique_ptr<Op>, std::less<>>;

Table& table() {
  // Never destroyed: a stream may still compute when the program ends.
  static Table& ops = *new Table;
  return ops;
}

std::string family_of(std::string_view file) {
  file = file.substr(file.find_last_of('/') + 1);
  return std::string(file.substr(0, file.find('.')));
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

double Tolerance::of(DType dtype) const {
  switch (dtype) {
    case DType::kF16:
      return f16;
    case DType::kBF16:
      return bf16;
    case DType::kF64:
      return f64;
    case DType::kF32:
    case DType::kC64:
      return f32;
    default:
      return 0;
  }
}

int Op::attr_index(std::string_view name) const {
  for (size_t i = 0; i < attrs.size(); ++i)
    if (attrs[i].name == name) return static_cast<int>(i);
  return -1;
}

int Op::input_index(std::string_view name) const {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].name == name) return static_cast<int>(i);
  return -1;
}

size_t Op::required_inputs() const {
  return static_cast<size_t>(std::count_if(inputs.begin(), inputs.end(),
                                           [](const InputSpec& in) { return !in.optional; }));
}

size_t Op::max_inputs() const {
  return !inputs.empty() && inputs.back().variadic ? std::numeric_limits<size_t>::max()
                                                   : inputs.size();
}

const Op* find_op(std::string_view name) {
  auto it = table().find(name);
  return it == table().end() ? nullptr : it->second.get();
}

const Op& get_op(std::string_view name) {
  if (const Op* op = find_op(name)) return *op;
  std::vector<std::string> near;
  for (const auto& [known, op] : table())
    if (edit_distance(known, name) <= 2) near.push_back(known);
  fail(Code::kNotFound, "[op] there is no op '{}'{}{}", name,
       near.empty() ? "" : "; near: ", fmt::join(near, ", "));
}

const std::vector<const Op*>& all_ops() {
  static const std::vector<const Op*> ops = [] {
    std::vector<const Op*> list;
    for (const auto& [known, op] : table()) list.push_back(op.get());
    std::stable_sort(list.begin(), list.end(),
                     [](const Op* a, const Op* b) { return a->family < b->family; });
    return list;
  }();
  return ops;
}

OpWriter::OpWriter(const char* name, const char* file) {
  auto [it, fresh] = table().emplace(name, std::make_unique<Op>());
  if (!fresh) fail(Code::kInternal, "[op] two records are called '{}'", name);
  op_ = it->second.get();
  op_->name = name;
  op_->family = family_of(file);
}

OpWriter& OpWriter::doc(std::string text) { return op_->doc = std::move(text), *this; }
OpWriter& OpWriter::formula(std::string text) { return op_->formula = std::move(text), *this; }
OpWriter& OpWriter::mps(std::string selector) {
  return op_->mps.push_back(std::move(selector)), *this;
}

OpWriter& OpWriter::input(std::string name, DTypeSet dtypes, std::string type, std::string doc) {
  op_->inputs.push_back({std::move(name), dtypes, std::move(type), false, false, std::move(doc)});
  return *this;
}
OpWriter& OpWriter::optional(std::string name, DTypeSet dtypes, std::string type, std::string doc) {
  op_->inputs.push_back({std::move(name), dtypes, std::move(type), true, false, std::move(doc)});
  return *this;
}
OpWriter& OpWriter::variadic(std::string name, DTypeSet dtypes, std::string type, std::string doc) {
  op_->inputs.push_back({std::move(name), dtypes, std::move(type), false, true, std::move(doc)});
  return *this;
}
OpWriter& OpWriter::output(std::string name, std::string type, std::string doc) {
  op_->outputs.push_back({std::move(name), std::move(type), std::move(doc)});
  return *this;
}
OpWriter& OpWriter::variadic_outputs(std::string name, std::string type, std::string doc) {
  op_->variadic_outputs = true;
  return output(std::move(name), std::move(type), std::move(doc));
}

OpWriter& OpWriter::add_attr(AttrSpec spec) { return op_->attrs.push_back(std::move(spec)), *this; }

OpWriter& OpWriter::attr(std::string name, int64_t value, std::string doc) {
  return add_attr({std::move(name), AttrKind::kInt, value, false, {}, std::move(doc)});
}
OpWriter& OpWriter::attr(std::string name, bool value, std::string doc) {
  return add_attr({std::move(name), AttrKind::kBool, int64_t{value}, false, {}, std::move(doc)});
}
OpWriter& OpWriter::attr(std::string name, double value, std::string doc) {
  return add_attr({std::move(name), AttrKind::kFloat, value, false, {}, std::move(doc)});
}
OpWriter& OpWriter::attr(std::string name, DType value, std::string doc) {
  return add_attr(
      {std::move(name), AttrKind::kDType, static_cast<int64_t>(value), false, {}, std::move(doc)});
}
OpWriter& OpWriter::attr(std::string name, const char* value, std::vector<std::string> choices,
                         std::string doc) {
  return add_attr({std::move(name), AttrKind::kString, std::string(value), false,
                   std::move(choices), std::move(doc)});
}
OpWriter& OpWriter::attr(std::string name, std::vector<int64_t> value, std::string doc) {
  return add_attr({std::move(name), AttrKind::kInts, std::move(value), false, {}, std::move(doc)});
}
OpWriter& OpWriter::attr(std::string name, std::vector<double> value, std::string doc) {
  return add_attr(
      {std::move(name), AttrKind::kFloats, std::move(value), false, {}, std::move(doc)});
}
OpWriter& OpWriter::required(std::string name, AttrKind kind, std::string doc) {
  AttrSpec spec{std::move(name), kind, {}, true, {}, std::move(doc)};
  switch (kind) {
    case AttrKind::kFloat:
      spec.default_value = 0.0;
      break;
    case AttrKind::kString:
      spec.default_value = std::string();
      break;
    case AttrKind::kInts:
      spec.default_value = std::vector<int64_t>();
      break;
    case AttrKind::kFloats:
      spec.default_value = std::vector<double>();
      break;
    case AttrKind::kGraph:
      spec.default_value = std::shared_ptr<Graph>();
      break;
    default:
      spec.default_value = int64_t{0};
  }
  return add_attr(std::move(spec));
}

OpWriter& OpWriter::facts(uint32_t facts) { return op_->facts |= facts, *this; }
OpWriter& OpWriter::containers(ContainerSet set) {
  op_->inputs.back().containers = set;
  return *this;
}
OpWriter& OpWriter::infer(InferFn fn) { return op_->infer = std::move(fn), *this; }
OpWriter& OpWriter::measure(MeasureFn fn) {
  op_->measure = std::move(fn);
  return *this;
}
OpWriter& OpWriter::decompose(DecomposeFn fn) { return op_->decompose = std::move(fn), *this; }
OpWriter& OpWriter::view(ViewFn fn) {
  op_->facts |= kViewLike;
  return op_->view = std::move(fn), *this;
}
OpWriter& OpWriter::cost(CostFn fn) { return op_->cost = std::move(fn), *this; }
OpWriter& OpWriter::domain(double low, double high) {
  return op_->test.domain = {low, high}, *this;
}
OpWriter& OpWriter::domain(std::string input, double low, double high) {
  return op_->test.input_domains.push_back({std::move(input), {low, high}}), *this;
}
OpWriter& OpWriter::tolerance(Tolerance tolerance) {
  return op_->test.tolerance = tolerance, *this;
}
OpWriter& OpWriter::sample(Sample sample) {
  return op_->test.samples.push_back(std::move(sample)), *this;
}
OpWriter& OpWriter::no_layout_tests() { return op_->test.layouts = false, *this; }
OpWriter& OpWriter::no_tests(std::string why) { return op_->test.skip = std::move(why), *this; }

}  // namespace anymps
