// SPDX-License-Identifier: Apache-2.0
#include "op_table/op_cases.h"

namespace anymps::testing {

namespace {

// Shapes for elementwise ops with n inputs: ordinary, scalar, empty, broadcast, odd, large.
std::vector<Sample> elementwise_samples(size_t inputs) {
  std::vector<Sample> samples;
  for (const Shape& shape :
       {Shape{2, 3, 4}, Shape{}, Shape{0, 3}, Shape{1}, Shape{17, 5}, Shape{3, 1031}})
    samples.push_back({"", std::vector<Shape>(inputs, shape), {}, {}});
  if (inputs < 2) return samples;
  const std::vector<std::vector<Shape>> broadcasts = {
      {{2, 3, 4}, {4}, {3, 1}}, {{3, 1}, {1, 4}, {}},      {{}, {5}, {5}},
      {{0, 3}, {1, 3}, {3}},    {{2, 1, 33}, {7, 1}, {1}}, {{1}, {2, 2, 2}, {2, 1, 1}},
      {{5, 257}, {257}, {5, 1}}};
  for (const auto& shapes : broadcasts) {
    Sample sample{"broadcast ", {}, {}, {}};
    for (size_t i = 0; i < inputs; ++i) sample.shapes.push_back(shapes[i % 3]);
    samples.push_back(std::move(sample));
  }
  return samples;
}

Domain domain_of(const Op& op, const std::string& input) {
  for (const auto& [name, domain] : op.test.input_domains)
    if (name == input) return domain;
  return op.test.domain;
}

// A dtype for a type variable that is not the one being varied.
DType default_dtype(DTypeSet set) {
  for (const DType dtype : {DType::kF32, DType::kI64, DType::kBool})
    if (contains(set, dtype)) return dtype;
  for (int i = 0; i < kDTypeCount; ++i)
    if (contains(set, static_cast<DType>(i))) return static_cast<DType>(i);
  return DType::kF32;
}

const InputSpec& spec_of(const Op& op, size_t i) {
  return op.inputs[std::min(i, op.inputs.size() - 1)];
}

size_t output_count(const Op& op, const Sample& sample) {
  if (!op.variadic_outputs) return op.outputs.size();
  for (const NamedAttr& attr : sample.attrs)
    if (attr.name == "sizes")
      if (const auto* sizes = std::get_if<std::vector<int64_t>>(&attr.value);
          sizes && !sizes->empty())
        return sizes->size();
  return 2;
}

// NaN, infinities and zeros of both signs among ordinary numbers, in the inputs of a float dtype.
void special_values(TestTensor& tensor) {
  if (!is_float(tensor.dtype()) || tensor.count() < 8) return;
  const double values[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0};
  size_t next = 0;
  int64_t at = 0;
  for_each_index(tensor.shape(), [&](const Shape& index) {
    if (at++ % 7 == 3) tensor.put(index, values[next++ % 5]);
  });
}

void cases_of_sample(const Op& op, const Sample& sample, DType dtype,
                     const std::function<void(OpCase&)>& fn) {
  const std::string main = op.inputs.empty() ? "" : op.inputs[0].type;
  OpCase plain;
  plain.op = &op;
  plain.attrs = sample.attrs;
  plain.outputs = output_count(op, sample);
  plain.label = fmt::format("{} {}", name(dtype), sample.label);
  for (size_t i = 0; i < sample.shapes.size(); ++i) {
    const InputSpec& spec = spec_of(op, i);
    if (sample.shapes[i] == Sample::absent) {
      plain.inputs.emplace_back();
      continue;
    }
    const bool fixed =
        std::any_of(sample.values.begin(), sample.values.end(),
                    [&](const auto& item) { return item.first == static_cast<int>(i); });
    DType type = default_dtype(spec.dtypes);
    if (spec.type == main && !main.empty())
      type = dtype;
    else if (fixed && contains(spec.dtypes, DType::kI64))
      type = DType::kI64;
    TestTensor tensor(type, sample.shapes[i]);
    const Domain domain = domain_of(op, spec.name);
    tensor.fill(1000 + i, domain.low, domain.high);
    for (const auto& [index, values] : sample.values)
      if (index == static_cast<int>(i))
        tensor.set(std::vector<double>(values.begin(), values.end()));
    plain.label += (i ? " x " : "") + to_string(sample.shapes[i]);
    plain.inputs.push_back(std::move(tensor));
  }
  fn(plain);
  if (!op.test.layouts || op.inputs.empty()) return;
  OpCase strided = plain;
  strided.label += " strided";
  for (size_t i = 0; i < strided.inputs.size(); ++i)
    if (strided.inputs[i]) strided.inputs[i] = strided.inputs[i]->scrambled();
  fn(strided);
  OpCase offset = plain;
  offset.label += " offset";
  offset.offset = 3;
  fn(offset);
  // Products of infinities with padding or masks, and NaN under a fused activation, are the
  // kernel's own: see "Numbers" in docs/design.md.
  const bool recurrent = op.attr_index("activations") >= 0;
  const bool contraction =
      (op.attr_index("activation") >= 0 && !recurrent) || op.name.starts_with("sdpa");
  if (!is_float(dtype) || contraction) return;
  OpCase special = plain;
  special.label += " special";
  for (auto& input : special.inputs)
    if (input) special_values(*input);
  fn(special);
}

}  // namespace

void for_each_case(const Op& op, const std::function<void(OpCase&)>& fn) {
  std::vector<Sample> samples = op.test.samples;
  if (samples.empty() && op.is(kElementwise)) samples = elementwise_samples(op.required_inputs());
  DTypeSet varied = op.inputs.empty() ? bit(DType::kF32) : op.inputs[0].dtypes;
  for (const InputSpec& spec : op.inputs)
    if (spec.type == op.inputs[0].type && !spec.type.empty()) varied &= spec.dtypes;
  // What moves elements moves them by their size: a few of the narrow types and strings stand for
  // all. Other ops that take narrow types are tried with each.
  const DTypeSet others = contains(varied, DType::kString)
                              ? bit(DType::kI4) | bit(DType::kF8E4M3) | bit(DType::kString)
                              : kNarrow;
  for (int i = 0; i < kDTypeCount; ++i)
    if (contains(varied & (kAny | others), static_cast<DType>(i)))
      for (const Sample& sample : samples) cases_of_sample(op, sample, static_cast<DType>(i), fn);
}

std::string difference(const Op& op, const TestTensor& actual, const TestTensor& expected) {
  if (actual.dtype() != expected.dtype() || !(actual.shape() == expected.shape()))
    return fmt::format("is {}, expected {}", to_string(actual.desc()), to_string(expected.desc()));
  const double tolerance = op.test.tolerance.of(expected.dtype());
  double largest = 0;
  for_each_index(expected.shape(), [&](const Shape& index) {
    const double magnitude = std::abs(expected.get(index));
    if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
  });
  std::string first;
  auto near = [&](double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    return a == b || std::abs(a - b) <= tolerance * (std::abs(b) + largest);
  };
  for_each_index(expected.shape(), [&](const Shape& index) {
    const auto a = actual.get(index), b = expected.get(index);
    if (first.empty() && !(near(a.real(), b.real()) && near(a.imag(), b.imag())))
      first = fmt::format(
          "at {}: {:.9g}{:+.9g}i, expected {:.9g}{:+.9g}i (tolerance {:g}, largest {:g})",
          to_string(index), a.real(), a.imag(), b.real(), b.imag(), tolerance, largest);
  });
  return first;
}

}  // namespace anymps::testing
