// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

#include <algorithm>
#include <filesystem>
#include <map>

namespace anymps {

namespace {

using Table = std::map<std::string, std::unique_ptr<Op>, std::less<>>;

Table& table() {
  // Never destroyed: a stream may still compute when the program ends.
  static Table& ops = *new Table;
  return ops;
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
    case DType::kC128:
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

size_t Op::main_outputs() const {
  return std::count_if(outputs.begin(), outputs.end(),
                       [](const auto& output) { return !output.by_product; });
}

size_t Op::required_inputs() const {
  return std::count_if(inputs.begin(), inputs.end(),
                       [](const InputSpec& in) { return !in.optional; });
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
  const std::filesystem::path path(file);
  op_->family = path.parent_path().filename();
  op_->file = path.stem();
}

OpWriter& OpWriter::doc(std::string text) {
  op_->doc = std::move(text);
  return *this;
}
OpWriter& OpWriter::formula(std::string text) {
  op_->formula = std::move(text);
  return *this;
}
OpWriter& OpWriter::mps(std::string selector) {
  op_->mps.push_back(std::move(selector));
  return *this;
}

OpWriter& OpWriter::onnx(std::string name, std::vector<std::string> attrs) {
  op_->onnx = std::move(name);
  op_->onnx_attrs = std::move(attrs);
  return *this;
}
OpWriter& OpWriter::aten(std::string name) {
  op_->aten = std::move(name);
  return *this;
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
OpWriter& OpWriter::outputs(std::initializer_list<const char*> names) {
  for (const char* name : names) output(name);
  return *this;
}
OpWriter& OpWriter::by_product(std::string name, std::string type, std::string doc) {
  op_->outputs.push_back({std::move(name), std::move(type), std::move(doc), true});
  return *this;
}
OpWriter& OpWriter::variadic_outputs(std::string name, std::string type, std::string doc) {
  op_->variadic_outputs = true;
  return output(std::move(name), std::move(type), std::move(doc));
}

OpWriter& OpWriter::add_attr(AttrSpec spec) {
  op_->attrs.push_back(std::move(spec));
  return *this;
}

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
OpWriter& OpWriter::ints(std::string name, std::string doc, std::string type,
                         std::string input_doc) {
  optional(name, kIndex, std::move(type), std::move(input_doc));
  return attr(std::move(name), kNoInts, std::move(doc));
}
OpWriter& OpWriter::integer(std::string name, int64_t value, std::string doc, std::string type,
                            std::string input_doc) {
  optional(name, kIndex, std::move(type), std::move(input_doc));
  return attr(std::move(name), value, std::move(doc));
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

OpWriter& OpWriter::facts(uint32_t facts) {
  op_->facts |= facts;
  return *this;
}
OpWriter& OpWriter::layout(LayoutRule rule) {
  op_->layout = rule;
  return *this;
}
OpWriter& OpWriter::reference_only(std::string why) {
  op_->reference_only = std::move(why);
  return *this;
}
OpWriter& OpWriter::containers(ContainerSet set) {
  op_->inputs.back().containers = set;
  return *this;
}
OpWriter& OpWriter::infer(InferFn fn) {
  op_->infer = std::move(fn);
  return *this;
}
OpWriter& OpWriter::measure(MeasureFn fn) {
  op_->measure = std::move(fn);
  return *this;
}
OpWriter& OpWriter::view(ViewFn fn) {
  op_->facts |= kViewLike | kMoves;
  op_->view = std::move(fn);
  return *this;
}
OpWriter& OpWriter::cost(CostFn fn) {
  op_->cost = std::move(fn);
  return *this;
}
OpWriter& OpWriter::domain(double low, double high) {
  op_->test.domain = {low, high};
  return *this;
}
OpWriter& OpWriter::domain(std::string input, double low, double high) {
  op_->test.input_domains.push_back({std::move(input), {low, high}});
  return *this;
}
OpWriter& OpWriter::tolerance(Tolerance tolerance) {
  op_->test.tolerance = tolerance;
  return *this;
}
OpWriter& OpWriter::sample(Sample sample) {
  op_->test.samples.push_back(std::move(sample));
  return *this;
}
OpWriter& OpWriter::no_layout_tests() {
  op_->test.layouts = false;
  return *this;
}
OpWriter& OpWriter::no_tests(std::string why) {
  op_->test.skip = std::move(why);
  return *this;
}

}  // namespace anymps
