// SPDX-License-Identifier: Apache-2.0
#include "formats/executorch/program/bundle.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/shape.h"
#include "formats/executorch/effects.h"
#include "formats/executorch/program/storage.h"
#include "formats/executorch/schema/program_fields.h"

namespace anymps::executorch {

namespace {

EValue read_value(const FlatTable& value) {
  using F = field::BundledValue;
  const auto kind = value.scalar<uint8_t>(F::kType);
  switch (kind) {
    case F::kNone:
      return None{};
    case F::kTensor: {
      using T = field::BundledTensor;
      const FlatTable table = value.table(F::kValue, "Tensor");
      Tensor tensor;
      tensor.dtype = read_dtype(table, T::kScalarType);
      tensor.sizes = read_sizes(table, T::kSizes);
      tensor.dim_order = read_dim_order(table, T::kDimOrder, tensor.sizes.size());
      const size_t bytes = read_bytes(table, T::kSizes, tensor.dtype, tensor.sizes);
      tensor.data = table.bytes(T::kData);
      if (tensor.data->size() < bytes)
        table.fail(T::kData, "{} bytes for [{}] of {}", tensor.data->size(),
                   fmt::join(tensor.sizes, ", "), name(tensor.dtype));
      tensor.data = tensor.data->substr(0, bytes);
      return tensor;
    }
    case F::kInt:
    case F::kBool:
    case F::kDouble:
      return read_number(value, kind);
    default:
      value.fail(F::kType, "{} is not the number of a type", kind);
  }
}

std::vector<EValue> read_values(const FlatTable& test, FlatField field) {
  std::vector<EValue> values;
  for (const FlatTable& value : test.tables(field, "Value")) values.push_back(read_value(value));
  return values;
}

bool same_value(const EValue& a, const EValue& b) {
  if (const auto* i = std::get_if<int64_t>(&a))
    return std::holds_alternative<int64_t>(b) && std::get<int64_t>(b) == *i;
  if (const auto* flag = std::get_if<bool>(&a))
    return std::holds_alternative<bool>(b) && std::get<bool>(b) == *flag;
  if (const auto* f = std::get_if<double>(&a))
    return std::holds_alternative<double>(b) && std::get<double>(b) == *f;
  return std::holds_alternative<None>(b);
}

// A test that feeds what the method does not take would be run with other values than it says.
void check_test(const FlatTable& table, const Method& method, const TestCase& test) {
  if (test.inputs.size() != method.inputs.size())
    table.fail(field::BundledMethodTestCase::kInputs, "there are {}, the method \"{}\" has {}",
               test.inputs.size(), method.name, method.inputs.size());
  if (test.outputs.size() > method.outputs.size())
    table.fail(field::BundledMethodTestCase::kOutputs, "there are {}, the method \"{}\" has {}",
               test.outputs.size(), method.name, method.outputs.size());
  for (size_t i = 0; i < test.inputs.size(); ++i) {
    const EValue& taken = method.values[method.inputs[i]];
    const bool fits =
        std::holds_alternative<Tensor>(taken)
            ? !std::holds_alternative<None>(test.inputs[i])
            : std::holds_alternative<std::string>(taken) || same_value(taken, test.inputs[i]);
    if (!fits)
      table.fail(field::BundledMethodTestCase::kInputs,
                 "input {} is a {}, or of another value than the {} of method \"{}\"", i,
                 kind_of(test.inputs[i]), kind_of(taken), method.name);
  }
}

// How many of the first outputs are inputs that instructions write to: so torch.export gives what a
// module does to its arguments.
size_t changed_inputs(const Method& method) {
  std::set<int32_t> written;
  for (const Instruction& instruction : method.instructions)
    if (const auto* call = std::get_if<KernelCall>(&instruction))
      for (const size_t i : changed_arguments(call->op))
        if (i < call->args.size()) written.insert(call->args[i]);
  size_t count = 0;
  for (const int32_t id : method.outputs) {
    const bool input =
        std::find(method.inputs.begin(), method.inputs.end(), id) != method.inputs.end();
    if (!input || !written.contains(id)) break;
    ++count;
  }
  return count;
}

[[noreturn]] void not_a_program(const Source& source) {
  std::string found;
  for (const char letter : source.bytes.substr(std::min<size_t>(source.bytes.size(), 4), 4))
    found += letter >= ' ' && letter <= '~'
                 ? std::string(1, letter)
                 : fmt::format("\\x{:02x}", static_cast<unsigned char>(letter));
  fail(Code::kCorrupt,
       "[executorch] {}: neither a program of ExecuTorch (ET12 at byte 4) nor a bundle (BP08): {}; "
       "the file is damaged, or of another kind",
       source.name,
       source.bytes.size() < 8 ? fmt::format("it has {} bytes", source.bytes.size())
                               : fmt::format("there is \"{}\"", found));
}

}  // namespace

bool is_bundle(std::string_view bytes) { return has_identifier(bytes, "BP"); }

const std::vector<TestCase>& Bundle::tests(const Method& method) const {
  static const std::vector<TestCase> kNone;
  for (const TestSuite& suite : suites)
    if (suite.method == method.name) return suite.cases;
  return kNone;
}

Bundle read_bundle(const Source& source) {
  Bundle bundle;
  if (!is_bundle(source.bytes)) {
    if (!is_program(source.bytes)) not_a_program(source);
    bundle.program = read_program(source);
    return bundle;
  }
  const FlatBuffer flat(source.bytes, "[executorch] " + source.name);
  if (flat.identifier() != "BP08")
    fail(Code::kUnsupported, "[executorch] {}: identifier \"{}\", only \"BP08\" is known",
         source.name, flat.identifier());
  const FlatTable root = flat.root("BundledProgram");
  bundle.bundled = true;
  Source inner = source;
  inner.bytes = root.bytes(field::BundledProgram::kProgram);
  if (!is_program(inner.bytes))
    root.fail(field::BundledProgram::kProgram, "it is not a program (ET12)");
  bundle.program = read_program(inner);
  for (const FlatTable& suite :
       root.tables(field::BundledProgram::kSuites, "BundledMethodTestSuite")) {
    TestSuite made;
    made.method = std::string(suite.string(field::BundledMethodTestSuite::kMethod));
    const Method* method = nullptr;
    for (const Method& candidate : bundle.program.methods)
      if (candidate.name == made.method) method = &candidate;
    if (!method)
      suite.fail(field::BundledMethodTestSuite::kMethod, "the program has no method \"{}\"",
                 made.method);
    for (const FlatTable& test :
         suite.tables(field::BundledMethodTestSuite::kCases, "BundledMethodTestCase")) {
      TestCase read{read_values(test, field::BundledMethodTestCase::kInputs),
                    read_values(test, field::BundledMethodTestCase::kOutputs)};
      check_test(test, *method, read);
      made.cases.push_back(std::move(read));
    }
    bundle.suites.push_back(std::move(made));
  }
  return bundle;
}

std::vector<size_t> fed_inputs(const Method& method) {
  std::vector<size_t> list;
  for (size_t i = 0; i < method.inputs.size(); ++i)
    if (std::holds_alternative<Tensor>(method.values[method.inputs[i]])) list.push_back(i);
  return list;
}

std::vector<size_t> given_outputs(const Method& method) {
  std::vector<size_t> list;
  for (size_t i = 0; i < method.outputs.size(); ++i) {
    const EValue& value = method.values[method.outputs[i]];
    if (std::holds_alternative<Tensor>(value) || std::holds_alternative<int64_t>(value) ||
        std::holds_alternative<bool>(value) || std::holds_alternative<double>(value))
      list.push_back(i);
  }
  return list;
}

std::vector<const EValue*> expected_outputs(const Method& method, const TestCase& test) {
  const size_t count = test.outputs.size();
  const size_t changed = changed_inputs(method);
  const size_t first = count + changed == method.outputs.size() ? changed : 0;
  std::vector<const EValue*> list;
  for (const size_t i : given_outputs(method)) {
    const EValue* value = i >= first && i - first < count ? &test.outputs[i - first] : nullptr;
    list.push_back(value && !std::holds_alternative<None>(*value) ? value : nullptr);
  }
  return list;
}

bool in_logical_order(const Tensor& tensor) {
  // Axes of extent 1 may stand anywhere.
  int last = -1;
  for (const uint8_t axis : tensor.dim_order) {
    if (tensor.sizes[axis] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

void to_logical_order(const Tensor& tensor, std::string_view from, std::byte* to) {
  const size_t rank = tensor.sizes.size(), element = size_of(tensor.dtype);
  if (from.empty()) return;
  if (in_logical_order(tensor)) {
    std::memcpy(to, from.data(), from.size());
    return;
  }
  Ints strides(rank);  // of each logical axis in `from`, in elements
  int64_t step = 1;
  for (size_t i = rank; i-- > 0; step *= tensor.sizes[tensor.dim_order[i]])
    strides[tensor.dim_order[i]] = step;
  Ints index(rank, 0);
  int64_t at = 0;
  for (size_t done = 0; done < from.size(); done += element) {
    std::memcpy(to + done, from.data() + static_cast<size_t>(at) * element, element);
    for (size_t axis = rank; axis-- > 0;) {
      at += strides[axis];
      if (++index[axis] < tensor.sizes[axis]) break;
      at -= strides[axis] * tensor.sizes[axis];
      index[axis] = 0;
    }
  }
}

}  // namespace anymps::executorch
