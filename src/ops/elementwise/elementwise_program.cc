// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise_program.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "ops/elementwise/program_words.h"
#include "ops/infer.h"

namespace anymps {

namespace {

using Arg = ProgramArg;
using Instruction = ElementwiseProgram::Instruction;
using program_words::AttrForm;

constexpr const char* kName = "fused_elementwise";

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

// Whether another argument, one that has a dtype of its own, must have the same dtype as number i;
// `known` says which have one.
template <typename Known>
std::optional<size_t> told_by(const Instruction& instruction, size_t i, Known&& known) {
  const auto& specs = instruction.op->inputs;
  for (size_t k = 0; k < instruction.args.size(); ++k)
    if (k != i && known(k) && !specs[i].type.empty() && specs[k].type == specs[i].type) return k;
  return std::nullopt;
}

bool has_dtype(const Arg& arg) {
  return arg.kind == Arg::Kind::kInput || arg.kind == Arg::Kind::kResult;
}

std::optional<DType> only_dtype(const InputSpec& spec) {
  if (!std::has_single_bit(spec.dtypes)) return std::nullopt;
  return static_cast<DType>(std::countr_zero(spec.dtypes));
}

bool representable(double value, DType dtype) {
  return dispatch<kAny>(dtype, [&]<typename T>() {
    if constexpr (std::is_integral_v<T>) {
      return value == std::trunc(value) &&
             value >= static_cast<double>(std::numeric_limits<T>::lowest()) &&
             value < std::ldexp(1.0, std::numeric_limits<T>::digits);
    } else {
      return true;
    }
  });
}

}  // namespace

class ElementwiseProgram::Reader {
 public:
  explicit Reader(std::span<const int64_t> words) : words_(words) {}

  ElementwiseProgram read() {
    program_words::WordReader head(next());
    const uint64_t version = head.field(16), count = head.field(16), outputs = head.field(16);
    check(version == program_words::kVersion && head.empty(), "the program is of another version");
    check(count > 0 && count <= kMaxInstructions, "{} instructions, there may be 1 to {}", count,
          kMaxInstructions);
    check(outputs > 0 && outputs <= kMaxOutputs, "{} outputs, there may be 1 to {}", outputs,
          kMaxOutputs);
    // Each is at least two words: a lie is noticed before memory is taken.
    check(count <= words_.size() / 2, "{} instructions in {} words", count, words_.size());
    program_.instructions_.reserve(count);
    while (program_.instructions_.size() < count) read_instruction();
    for (uint64_t i = 0; i < outputs; ++i) {
      const int64_t number = next();
      check(number >= 0 && number < static_cast<int64_t>(count),
            "output {} is the result of instruction {}, there are {}", i, number, count);
      program_.outputs_.push_back(static_cast<size_t>(number));
    }
    check(at_ == words_.size(), "{} words are left over", words_.size() - at_);
    return std::move(program_);
  }

 private:
  void read_instruction() {
    program_words::WordReader head(next());
    const uint64_t name_words = head.field(8), args = head.field(8), attrs = head.field(8);
    check(head.empty(), "it begins with bits that mean nothing");
    const std::string name = name_of(name_words);
    Instruction made;
    made.op = find_op(name);
    check(made.op != nullptr, "there is no op '{}'", name);
    const Op& op = *made.op;
    check(op.is(kElementwise) && !op.is(kInternal) && op.outputs.size() == 1 &&
              op.max_inputs() == op.inputs.size(),
          "op '{}' is not elementwise", name);
    check(args >= op.required_inputs() && args <= op.inputs.size(),
          "op '{}' takes {} to {} arguments, {} given", name, op.required_inputs(),
          op.inputs.size(), args);
    for (uint64_t i = 0; i < args; ++i) made.args.push_back(read_arg(op.inputs[i]));
    NamedAttrs given;
    for (uint64_t i = 0; i < attrs; ++i) read_attr(made, given);
    try {
      made.attrs = Attrs(op, given);
    } catch (const Error& error) {
      fail(error.code(), "[{}] instruction {}: {}", kName, number(), error.what());
    }
    program_.instructions_.push_back(std::move(made));
  }

  Arg read_arg(const InputSpec& spec) {
    const Arg arg = read_arg_word();
    check(arg.kind != Arg::Kind::kAbsent || spec.optional, "input '{}' is not optional", spec.name);
    return arg;
  }

  Arg read_arg_word() {
    program_words::WordReader word(next());
    const uint64_t kind = word.field(8), dtype = word.field(8);
    Arg arg;
    arg.index = word.field(16);
    arg.element = word.field(16);
    check(word.empty() && kind <= static_cast<uint64_t>(Arg::Kind::kParameter),
          "an argument is of kind {}", kind);
    arg.kind = static_cast<Arg::Kind>(kind);
    if (dtype > 0) arg.dtype = static_cast<DType>(dtype - 1);
    check(dtype <= kDTypeCount && (dtype == 0 || contains(kAny, *arg.dtype)),
          "{} is not a dtype of numbers", dtype);
    const bool number = arg.kind == Arg::Kind::kImmediate || arg.kind == Arg::Kind::kParameter;
    check(!arg.dtype || number, "an argument has a dtype, but is not a number");
    check(arg.element == 0 || arg.kind == Arg::Kind::kParameter,
          "an argument has an element, but is no parameter");
    switch (arg.kind) {
      case Arg::Kind::kInput:
      case Arg::Kind::kParameter:
        check(arg.index < kMaxInputs, "x{} is above the limit of {} inputs", arg.index, kMaxInputs);
        use_input(arg);
        break;
      case Arg::Kind::kResult:
        check(arg.index < this->number(), "t{} is used before it is made", arg.index);
        break;
      case Arg::Kind::kImmediate:
        check(arg.index == 0, "a number has the index {}", arg.index);
        arg.value = std::bit_cast<double>(next());
        break;
      case Arg::Kind::kAbsent:
        check(arg.index == 0, "an absent argument has the index {}", arg.index);
        break;
    }
    return arg;
  }

  void use_input(const Arg& arg) {
    std::vector<size_t>& parameters = program_.parameters_in_;
    if (arg.index >= parameters.size()) {
      parameters.resize(arg.index + 1, 0);
      program_.elements_in_.resize(arg.index + 1, false);
    }
    if (arg.kind == Arg::Kind::kParameter)
      parameters[arg.index] = std::max(parameters[arg.index], arg.element + 1);
    else
      program_.elements_in_[arg.index] = true;
    check(parameters[arg.index] == 0 || !program_.elements_in_[arg.index],
          "x{} is read both as a tensor and for parameters", arg.index);
  }

  void read_attr(Instruction& made, NamedAttrs& given) {
    program_words::WordReader head(next());
    const uint64_t form = head.field(8), name_words = head.field(8), value_words = head.field(8);
    check(head.empty() && form <= static_cast<uint64_t>(AttrForm::kParameter),
          "an attribute is of form {}", form);
    const std::string name = name_of(name_words);
    check(form == static_cast<uint64_t>(AttrForm::kString) || value_words == 1,
          "attribute '{}' has {} words", name, value_words);
    switch (static_cast<AttrForm>(form)) {
      case AttrForm::kInt:
        given.emplace_back(name, next());
        break;
      case AttrForm::kFloat:
        given.emplace_back(name, std::bit_cast<double>(next()));
        break;
      case AttrForm::kString:
        given.emplace_back(name, text(value_words));
        break;
      case AttrForm::kParameter: {
        const int index = made.op->attr_index(name);
        check(index >= 0 && made.op->attrs[index].kind == AttrKind::kFloat,
              "op '{}' has no attribute '{}' that could be a parameter", made.op->name, name);
        const Arg arg = read_arg_word();
        check(arg.kind == Arg::Kind::kParameter && !arg.dtype, "attribute '{}' is no parameter",
              name);
        const AttrSpec& spec = made.op->attrs[index];
        given.emplace_back(name, spec.required ? AttrValue(1.0) : spec.default_value);
        made.parameters.push_back({name, arg});
        break;
      }
    }
  }

  // Letters, digits and underscores: safe to show.
  std::string name_of(uint64_t words) {
    std::string name = text(words);
    check(!name.empty() && std::all_of(name.begin(), name.end(), is_word), "a name is no name");
    return name;
  }

  std::string text(uint64_t words) {
    check(words <= program_words::kMaxTextWords, "{} words of text", words);
    std::string text;
    for (uint64_t i = 0; i < words; ++i) {
      program_words::WordReader word(next());
      for (int k = 0; k < 8 && !word.empty(); ++k) {
        const char c = static_cast<char>(word.field(8));
        check(c >= ' ' && c <= '~' && text.size() == i * 8 + static_cast<size_t>(k),
              "text has bytes that are no letters");
        text += c;
      }
    }
    check(text.size() > (words - (words > 0)) * 8 || words == 0, "text ends early");
    return text;
  }

  int64_t next() {
    check(at_ < words_.size(), "the words end");
    return words_[at_++];
  }

  size_t number() const { return program_.instructions_.size(); }

  template <typename... Args>
  void check(bool condition, fmt::format_string<Args...> format, Args&&... args) const {
    if (condition) [[likely]]
      return;
    fail(Code::kInvalidArgument, "[{}] instruction {}: {}", kName, number(),
         fmt::format(format, std::forward<Args>(args)...));
  }

  std::span<const int64_t> words_;
  size_t at_ = 0;
  ElementwiseProgram program_;
};

ElementwiseProgram ElementwiseProgram::decode(std::span<const int64_t> words) {
  return Reader(words).read();
}

void ElementwiseProgram::check_parameters(size_t i, std::span<const int64_t> shape) const {
  require(shape.size() == 1 && shape[0] >= static_cast<int64_t>(parameters_in_[i]),
          "[{}] x{} must be a vector of at least {} parameters, its shape is [{}]", kName, i,
          parameters_in_[i], fmt::join(shape, ", "));
}

std::string ElementwiseProgram::print(const Instruction& instruction, const Arg& arg,
                                      size_t i) const {
  std::string text;
  switch (arg.kind) {
    case Arg::Kind::kAbsent:
      return "_";
    case Arg::Kind::kInput:
      return fmt::format("x{}", arg.index);
    case Arg::Kind::kResult:
      return fmt::format("t{}", arg.index);
    case Arg::Kind::kImmediate:
      text = fmt::format("{}", arg.value);
      break;
    case Arg::Kind::kParameter:
      text = fmt::format("x{}[{}]", arg.index, arg.element);
      break;
  }
  const bool told =
      told_by(instruction, i, [&](size_t k) { return has_dtype(instruction.args[k]); }).has_value();
  return arg.dtype && !told ? fmt::format("{}({})", name(*arg.dtype), text) : text;
}

std::string ElementwiseProgram::print(size_t number) const {
  const Instruction& instruction = instructions_[number];
  std::vector<std::string> args, attrs;
  for (size_t i = 0; i < instruction.args.size(); ++i)
    args.push_back(print(instruction, instruction.args[i], i));
  const auto& parameters = instruction.parameters;
  for (const NamedAttr& attr : instruction.attrs.named()) {
    const AttrSpec& spec = instruction.op->attrs[instruction.op->attr_index(attr.name)];
    if (std::none_of(parameters.begin(), parameters.end(),
                     [&](const AttrParameter& p) { return p.name == attr.name; }))
      attrs.push_back(attr.name + "=" + to_string(spec.kind, attr.value));
  }
  for (const AttrParameter& parameter : parameters)
    attrs.push_back(
        fmt::format("{}=x{}[{}]", parameter.name, parameter.arg.index, parameter.arg.element));
  const bool last =
      outputs_.size() == 1 && outputs_[0] == number && number + 1 == instructions_.size();
  return fmt::format("{}={}({}{}{})", last ? "y" : fmt::format("t{}", number), instruction.op->name,
                     fmt::join(args, ","), attrs.empty() ? "" : ";", fmt::join(attrs, ","));
}

std::string ElementwiseProgram::print() const {
  std::string text;
  for (size_t i = 0; i < instructions_.size(); ++i) text += (i ? "; " : "") + print(i);
  if (outputs_.size() == 1 && outputs_[0] + 1 == instructions_.size()) return text;
  text += "; return";
  for (const size_t output : outputs_) text += fmt::format(" t{}", output);
  return text;
}

ElementwiseProgram::Types ElementwiseProgram::infer(std::span<const DType> inputs) const {
  require(inputs.size() >= input_count(), "[{}] the program reads {} inputs, {} given", kName,
          input_count(), inputs.size());
  for (size_t i = 0; i < input_count(); ++i)
    require(!holds_parameters(i) || inputs[i] == DType::kF64 || inputs[i] == DType::kI64,
            "[{}] x{} holds parameters, so it must be f64 or i64, not {}", kName, i,
            name(inputs[i]));
  Types types;
  for (size_t number = 0; number < instructions_.size(); ++number) {
    const Instruction& instruction = instructions_[number];
    const size_t count = instruction.args.size();
    std::vector<DType> args(count, DType::kF32);
    for (size_t i = 0; i < count; ++i) {
      const Arg& arg = instruction.args[i];
      if (arg.kind == Arg::Kind::kInput) args[i] = inputs[arg.index];
      if (arg.kind == Arg::Kind::kResult) args[i] = types.results[arg.index];
    }
    std::vector<ValueType> values(count);
    std::vector<const ValueType*> pointers(count, nullptr);
    for (size_t i = 0; i < count; ++i) {
      const Arg& arg = instruction.args[i];
      if (arg.kind == Arg::Kind::kAbsent) continue;
      if (!has_dtype(arg)) {
        const auto known = [&](size_t k) { return has_dtype(instruction.args[k]); };
        const std::optional<size_t> beside = told_by(instruction, i, known);
        const std::optional<DType> only = only_dtype(instruction.op->inputs[i]);
        require(arg.dtype || beside || only, "[{}] {}: the dtype of argument {} is not told", kName,
                print(number), i);
        args[i] = arg.dtype ? *arg.dtype : beside ? args[*beside] : *only;
        require(contains(kAny, args[i]), "[{}] {}: a number cannot be {}", kName, print(number),
                name(args[i]));
      }
      if (arg.kind == Arg::Kind::kImmediate)
        require(representable(arg.value, args[i]), "[{}] {}: {} is not a value of {}", kName,
                print(number), arg.value, name(args[i]));
      values[i].dtype = args[i];
      pointers[i] = &values[i];
    }
    try {
      types.results.push_back(
          InferContext::run(*instruction.op, instruction.attrs, pointers, 1, "")[0].dtype);
    } catch (const Error& error) {
      fail(error.code(), "[{}] {}: {}", kName, print(number), error.what());
    }
    require(types.results.back() != DType::kString, "[{}] {}: the result is a string", kName,
            print(number));
    types.args.push_back(std::move(args));
  }
  return types;
}

}  // namespace anymps
