// SPDX-License-Identifier: Apache-2.0
#include "formats/executorch/program/program_text.h"

#include <map>

#include "base/shape.h"
#include "base/text.h"
#include "formats/executorch/payload/payload.h"
#include "formats/executorch/payload/payload_info.h"

namespace anymps::executorch {

namespace {

std::string number(double value) {
  const std::string text = fmt::format("{}", value);
  return text.find_first_of("in") == std::string::npos ? text : json_string(text);
}

std::string type_text(const EValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return fmt::format("Int {}", *number);
  if (const auto* flag = std::get_if<bool>(&value)) return fmt::format("Bool {}", *flag);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("Double {}", *number);
  const auto* tensor = std::get_if<Tensor>(&value);
  if (!tensor) return kind_of(value);
  std::string text = fmt::format("{}[{}]", name(tensor->dtype), fmt::join(tensor->sizes, ", "));
  if (tensor->dynamism != Tensor::Dynamism::kStatic) text += ", dynamic up to that";
  if (!in_logical_order(*tensor))
    text += fmt::format(", axes in memory [{}]", fmt::join(tensor->dim_order, ", "));
  return text;
}

// Constants and buffers of a method: how many, and their bytes.
struct Sizes {
  size_t constants = 0, constant_bytes = 0, states = 0, state_bytes = 0;
};

Sizes sizes_of(const Method& method) {
  Sizes sizes;
  for (const EValue& value : method.values) {
    const auto* tensor = std::get_if<Tensor>(&value);
    if (!tensor || !tensor->data) continue;
    ++(tensor->planned ? sizes.states : sizes.constants);
    (tensor->planned ? sizes.state_bytes : sizes.constant_bytes) += tensor->data->size();
  }
  return sizes;
}

std::map<std::string, size_t> operators_of(const Method& method) {
  std::map<std::string, size_t> counts;
  for (const Instruction& instruction : method.instructions)
    if (const auto* kernel = std::get_if<KernelCall>(&instruction)) ++counts[kernel->op];
  return counts;
}

// Options are raw bytes: small ones are numbers, others text.
std::string option_text(const std::string& value) {
  if (value.size() == 1) return std::to_string(static_cast<int>(static_cast<uint8_t>(value[0])));
  return shown(value);
}

struct DelegateInfo : PayloadInfo {
  std::string wrong;  // why it could not be read
};

// The payloads of other backends are not looked into.
DelegateInfo info_of(const Program& program, const Delegate& delegate) {
  if (!is_payload(delegate.payload)) return {};
  try {
    return {
        payload_info({delegate.payload, program.source.owner, program.source.mapped, "payload"}),
        ""};
  } catch (const Error& error) {
    return {{}, error.what()};
  }
}

std::string text_of(const Program& program, const Delegate& delegate) {
  std::string text =
      fmt::format("{}, {}", shown(delegate.backend), human_bytes(delegate.payload.size()));
  for (const auto& [key, value] : delegate.options)
    text += fmt::format(", {}={}", shown(key), option_text(value));
  const DelegateInfo info = info_of(program, delegate);
  if (!info.wrong.empty()) text += ", not readable: " + shown(info.wrong);
  if (!info.kinds.empty()) {
    size_t nodes = 0;
    for (const auto& [kind, count] : info.kinds) nodes += count;
    text += fmt::format(", {} nodes, {} constants of {}", nodes, info.constants,
                        human_bytes(info.constant_bytes));
  }
  text += "\n";
  for (const auto& [kind, count] : info.kinds)
    text += fmt::format("      {:<30} {:>5}\n", kind, count);
  return text;
}

void add_method(const Bundle& bundle, const Method& method, std::string& text) {
  text +=
      fmt::format("method {}: {} instructions\n", shown(method.name), method.instructions.size());
  const auto list = [&](const char* what, const std::vector<int32_t>& ids) {
    for (size_t i = 0; i < ids.size(); ++i)
      text += fmt::format("  {} {}: {}\n", what, i, type_text(method.values[ids[i]]));
  };
  list("input", method.inputs);
  list("output", method.outputs);
  const Sizes sizes = sizes_of(method);
  text += fmt::format("  {} constants of {} outside delegates\n", sizes.constants,
                      human_bytes(sizes.constant_bytes));
  if (sizes.states)
    text += fmt::format("  {} buffers with initial content of {}\n", sizes.states,
                        human_bytes(sizes.state_bytes));
  for (size_t i = 0; i < method.delegates.size(); ++i)
    text += fmt::format("  delegate {}: {}", i, text_of(bundle.program, method.delegates[i]));
  const auto operators = operators_of(method);
  if (!operators.empty()) text += "  operators outside delegates\n";
  for (const auto& [op, count] : operators)
    text += fmt::format("      {:<30} {:>5}\n", shown(op), count);
  const auto& tests = bundle.tests(method);
  if (!tests.empty()) text += fmt::format("  {} test cases\n", tests.size());
}

std::string to_text(const Bundle& bundle) {
  const Program& program = bundle.program;
  std::string text = fmt::format("ExecuTorch {}, version {}, {}, {} methods\n",
                                 bundle.bundled ? "bundled program" : "program", program.version,
                                 human_bytes(program.source.bytes.size()), program.methods.size());
  for (const auto& [key, data] : program.named_data)
    text += fmt::format("named data {}: {}\n", shown(key), human_bytes(data.size()));
  for (const Method& method : program.methods) add_method(bundle, method, text);
  return text;
}

template <typename List, typename Fn>
std::string json_list(const List& list, Fn&& item) {
  std::string text = "[";
  for (const auto& element : list) text += (text.size() > 1 ? ", " : "") + item(element);
  return text + "]";
}

std::string json_counts(const std::map<std::string, size_t>& counts) {
  std::string text = "{";
  for (const auto& [key, count] : counts)
    text += fmt::format("{}{}: {}", text.size() > 1 ? ", " : "", json_string(key), count);
  return text + "}";
}

std::string json_value(const EValue& value) {
  if (const auto* i = std::get_if<int64_t>(&value))
    return fmt::format(R"({{"kind": "Int", "value": {}}})", *i);
  if (const auto* flag = std::get_if<bool>(&value))
    return fmt::format(R"({{"kind": "Bool", "value": {}}})", *flag);
  if (const auto* f = std::get_if<double>(&value))
    return fmt::format(R"({{"kind": "Double", "value": {}}})", number(*f));
  const auto* tensor = std::get_if<Tensor>(&value);
  if (!tensor) return fmt::format(R"({{"kind": "{}"}})", kind_of(value));
  return fmt::format(
      R"({{"kind": "Tensor", "dtype": "{}", "sizes": [{}], "dim_order": [{}], "dynamic": {}}})",
      name(tensor->dtype), fmt::join(tensor->sizes, ", "), fmt::join(tensor->dim_order, ", "),
      tensor->dynamism != Tensor::Dynamism::kStatic);
}

std::string json_delegate(const Program& program, const Delegate& delegate) {
  const DelegateInfo info = info_of(program, delegate);
  const std::string options = json_list(delegate.options, [](const auto& option) {
    return fmt::format(R"({{"key": {}, "value": {}}})", json_string(option.first),
                       json_string(option_text(option.second)));
  });
  return fmt::format(
      R"({{"backend": {}, "bytes": {}, "options": {}, "nodes": {}, "constants": {}, )"
      R"("constant_bytes": {}, "error": {}}})",
      json_string(delegate.backend), delegate.payload.size(), options, json_counts(info.kinds),
      info.constants, info.constant_bytes, info.wrong.empty() ? "null" : json_string(info.wrong));
}

// Which instructions call which delegate: profiles go by the number of an instruction.
std::string json_delegate_calls(const Method& method) {
  std::string text = "[";
  for (size_t pc = 0; pc < method.instructions.size(); ++pc)
    if (const auto* call = std::get_if<DelegateCall>(&method.instructions[pc]))
      text += fmt::format(R"({}{{"instruction": {}, "delegate": {}}})", text.size() > 1 ? ", " : "",
                          pc, call->delegate);
  return text + "]";
}

std::string json_method(const Bundle& bundle, const Method& method) {
  const auto values = [&](const std::vector<int32_t>& ids) {
    return json_list(ids, [&](int32_t id) { return json_value(method.values[id]); });
  };
  const Sizes sizes = sizes_of(method);
  return fmt::format(
      R"({{"name": {}, "inputs": {}, "outputs": {}, "instructions": {}, "operators": {}, )"
      R"("delegates": {}, "delegate_calls": {}, "constants": {}, "constant_bytes": {}, "buffers": {}, )"
      R"("planned_bytes": [{}], "tests": {}}})",
      json_string(method.name), values(method.inputs), values(method.outputs),
      method.instructions.size(), json_counts(operators_of(method)),
      json_list(method.delegates,
                [&](const Delegate& delegate) { return json_delegate(bundle.program, delegate); }),
      json_delegate_calls(method), sizes.constants, sizes.constant_bytes, sizes.states,
      fmt::join(method.planned_bytes, ", "), bundle.tests(method).size());
}

std::string to_json(const Bundle& bundle) {
  const Program& program = bundle.program;
  return fmt::format(
      R"({{"format": "executorch", "bundled": {}, "version": {}, "bytes": {}, "named_data": {}, )"
      R"("methods": {}}})",
      bundle.bundled, program.version, program.source.bytes.size(),
      json_list(program.named_data,
                [](const auto& data) {
                  return fmt::format(R"({{"key": {}, "bytes": {}}})", json_string(data.first),
                                     data.second.size());
                }),
      json_list(program.methods,
                [&](const Method& method) { return json_method(bundle, method); }));
}

}  // namespace

std::string program_text(const Bundle& bundle, const std::string& format) {
  if (format == "text") return to_text(bundle);
  if (format == "json") return to_json(bundle);
  fail(Code::kInvalidArgument, "[executorch] format \"{}\" is neither text nor json", format);
}

}  // namespace anymps::executorch
