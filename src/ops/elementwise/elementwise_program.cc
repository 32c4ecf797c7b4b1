// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise_program.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>

#include "ops/infer.h"

namespace anymps {

namespace {

using Arg = ElementwiseProgram::Arg;

constexpr const char* kName = "fused_elementwise";

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  ElementwiseProgram parse() {
    bool done = false;
    while (!done) {
      done = destination();
      expect('=');
      instruction();
      skip_space();
      if (!done) expect(';');
    }
    accept(';');
    skip_space();
    if (at_ != text_.size()) error("nothing may follow the result y");
    return std::move(program_);
  }

 private:
  // Reads "t<next>" or "y"; true for the latter.
  bool destination() {
    const std::string_view word = identifier();
    if (word == "y") return true;
    const std::string expected = fmt::format("t{}", program_.instructions().size());
    if (word != expected)
      error(fmt::format("'{}' is assigned where '{}' or 'y' must be", word, expected));
    return false;
  }

  void instruction() {
    const std::string_view word = identifier();
    const Op* op = find_op(word);
    if (!op) error(fmt::format("there is no op '{}'", word));
    expect('(');
    std::vector<Arg> args;
    do {
      args.push_back(argument());
    } while (accept(','));
    NamedAttrs attrs;
    if (accept(';')) {
      do {
        const std::string_view name = identifier();
        expect('=');
        attrs.push_back(attribute(*op, name));
      } while (accept(','));
    }
    expect(')');
    program_.append(*op, attrs, std::move(args));
  }

  Arg argument() {
    skip_space();
    if (const auto number = parse_number<double>()) return Arg::immediate(*number);
    const std::string_view word = identifier();
    if (word == "_") return Arg::absent();
    if (word.size() > 1 && (word[0] == 'x' || word[0] == 't')) {
      size_t index = 0;
      const char *first = word.data() + 1, *last = word.data() + word.size();
      const auto [end, status] = std::from_chars(first, last, index);
      if (status == std::errc() && end == last && (*first != '0' || word.size() == 2))
        return word[0] == 'x' ? Arg::input(index) : Arg::temp(index);
    }
    error(fmt::format("'{}' is not an input, a temporary or a number", word));
  }

  NamedAttr attribute(const Op& op, std::string_view name) {
    const int index = op.attr_index(name);
    if (index < 0) error(fmt::format("op '{}' has no attribute '{}'", op.name, name));
    const AttrKind kind = op.attrs[static_cast<size_t>(index)].kind;
    const auto value = [&]() -> AttrValue {
      switch (kind) {
        case AttrKind::kInt:
          if (const auto number = parse_number<int64_t>()) return *number;
          error("expected a whole number");
        case AttrKind::kFloat:
          if (const auto number = parse_number<double>()) return *number;
          error("expected a number");
        case AttrKind::kBool: {
          const std::string_view word = identifier();
          if (word != "true" && word != "false") error("expected true or false");
          return int64_t{word == "true"};
        }
        case AttrKind::kDType:
          return static_cast<int64_t>(parse_dtype(identifier()));
        case AttrKind::kString:
          return quoted();
        default:
          error(fmt::format("attribute '{}' of kind {} cannot be written in a program", name,
                            anymps::name(kind)));
      }
    };
    return NamedAttr(std::string(name), value());
  }

  std::string quoted() {
    if (!accept('"')) return std::string(identifier());
    const size_t end = text_.find('"', at_);
    if (end == std::string_view::npos) error("the string does not end");
    const std::string_view word = text_.substr(at_, end - at_);
    at_ = end + 1;
    return std::string(word);
  }

  template <typename T>
  std::optional<T> parse_number() {
    skip_space();
    T value{};
    const char* first = text_.data() + at_;
    const auto [end, status] = std::from_chars(first, text_.data() + text_.size(), value);
    if (status == std::errc::result_out_of_range) error("the number is out of range");
    if (status != std::errc() || (end != text_.data() + text_.size() && is_word(*end)))
      return std::nullopt;
    at_ += static_cast<size_t>(end - first);
    return value;
  }

  std::string_view identifier() {
    skip_space();
    const size_t first = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    if (at_ == first) error("expected a name");
    return text_.substr(first, at_ - first);
  }

  bool accept(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) error(fmt::format("expected '{}'", c));
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }

  // Shows the place, and no more of a hostile text than is readable.
  [[noreturn]] void error(const std::string& reason) const {
    constexpr size_t kContext = 24;
    const size_t first = at_ < kContext ? 0 : at_ - kContext;
    std::string near(text_.substr(first, 2 * kContext));
    for (char& c : near)
      if (c < ' ' || c > '~') c = '?';
    fail(Code::kInvalidArgument, "[{}] program, character {}: {} (near \"{}\")", kName, at_,
         reason.size() > 200 ? reason.substr(0, 200) + "…" : reason, near);
  }

  std::string_view text_;
  size_t at_ = 0;
  ElementwiseProgram program_;
};

// The dtype of an immediate: that of another argument with the same type variable.
DType immediate_dtype(const ElementwiseProgram::Instruction& instruction, size_t i,
                      const std::vector<std::optional<DType>>& known, DType fallback) {
  const InputSpec& spec = instruction.op->inputs[i];
  for (size_t k = 0; k < known.size(); ++k)
    if (known[k] && !spec.type.empty() && instruction.op->inputs[k].type == spec.type)
      return *known[k];
  if (std::has_single_bit(spec.dtypes)) return static_cast<DType>(std::countr_zero(spec.dtypes));
  return fallback;
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

ElementwiseProgram ElementwiseProgram::parse(std::string_view text) { return Parser(text).parse(); }

size_t ElementwiseProgram::append(const Op& op, const NamedAttrs& attrs, std::vector<Arg> args) {
  const size_t number = instructions_.size();
  require(number < kMaxInstructions, "[{}] a program has at most {} instructions", kName,
          kMaxInstructions);
  require(op.is(kElementwise) && !op.is(kInternal) && op.outputs.size() == 1,
          "[{}] instruction {}: op '{}' is not elementwise", kName, number, op.name);
  require(args.size() >= op.required_inputs() && args.size() <= op.max_inputs(),
          "[{}] instruction {}: op '{}' takes {} to {} arguments, {} given", kName, number, op.name,
          op.required_inputs(), op.inputs.size(), args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    const Arg& arg = args[i];
    const std::string& input = op.inputs[i].name;
    switch (arg.kind) {
      case Arg::Kind::kAbsent:
        require(op.inputs[i].optional, "[{}] instruction {}: input '{}' of op '{}' is not optional",
                kName, number, input, op.name);
        break;
      case Arg::Kind::kInput:
        require(arg.index < kMaxInputs, "[{}] instruction {}: x{} is above the limit of {} inputs",
                kName, number, arg.index, kMaxInputs);
        break;
      case Arg::Kind::kTemp:
        require(arg.index < number, "[{}] instruction {}: t{} is used before it is made", kName,
                number, arg.index);
        break;
      case Arg::Kind::kImmediate:
        break;
    }
  }
  Attrs checked(op, attrs);
  for (const Arg& arg : args)
    if (arg.kind == Arg::Kind::kInput) input_count_ = std::max(input_count_, arg.index + 1);
  instructions_.push_back({&op, std::move(checked), std::move(args)});
  return number;
}

std::string ElementwiseProgram::print(size_t number) const {
  const Instruction& instruction = instructions_[number];
  std::vector<std::string> args, attrs;
  for (const Arg& arg : instruction.args) {
    switch (arg.kind) {
      case Arg::Kind::kInput:
        args.push_back(fmt::format("x{}", arg.index));
        break;
      case Arg::Kind::kTemp:
        args.push_back(fmt::format("t{}", arg.index));
        break;
      case Arg::Kind::kImmediate:
        args.push_back(fmt::format("{}", arg.value));
        break;
      case Arg::Kind::kAbsent:
        args.push_back("_");
        break;
    }
  }
  for (const NamedAttr& attr : instruction.attrs.named()) {
    const AttrSpec& spec =
        instruction.op->attrs[static_cast<size_t>(instruction.op->attr_index(attr.name))];
    attrs.push_back(attr.name + "=" + to_string(spec.kind, attr.value));
  }
  const bool last = number + 1 == instructions_.size();
  return fmt::format("{}={}({}{}{})", last ? "y" : fmt::format("t{}", number), instruction.op->name,
                     fmt::join(args, ","), attrs.empty() ? "" : ";", fmt::join(attrs, ","));
}

std::string ElementwiseProgram::print() const {
  std::string text;
  for (size_t i = 0; i < instructions_.size(); ++i) text += (i ? "; " : "") + print(i);
  return text;
}

ElementwiseProgram::Types ElementwiseProgram::infer(std::span<const DType> inputs,
                                                    DType output) const {
  require(!instructions_.empty(), "[{}] the program is empty", kName);
  require(inputs.size() >= input_count_, "[{}] the program reads {} inputs, {} given", kName,
          input_count_, inputs.size());
  Types types;
  for (size_t number = 0; number < instructions_.size(); ++number) {
    const Instruction& instruction = instructions_[number];
    const size_t count = instruction.args.size();
    std::vector<std::optional<DType>> known(count);
    for (size_t i = 0; i < count; ++i) {
      const Arg& arg = instruction.args[i];
      if (arg.kind == Arg::Kind::kInput) known[i] = inputs[arg.index];
      if (arg.kind == Arg::Kind::kTemp) known[i] = types.results[arg.index];
    }
    std::vector<DType> args(count, output);
    std::vector<ValueType> values(count);
    std::vector<const ValueType*> pointers(count, nullptr);
    for (size_t i = 0; i < count; ++i) {
      const Arg& arg = instruction.args[i];
      if (arg.kind == Arg::Kind::kAbsent) continue;
      args[i] = known[i] ? *known[i] : immediate_dtype(instruction, i, known, output);
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
    types.args.push_back(std::move(args));
  }
  require(types.results.back() == output, "[{}] {}: the result is {}, dtype says {}", kName,
          print(instructions_.size() - 1), name(types.results.back()), name(output));
  return types;
}

OP(fused_elementwise)
    .doc(
        "Several elementwise ops in one pass over the elements. Each step is rounded to its dtype "
        "as the separate ops would.")
    .formula("y = program(xs[0], xs[1], …)")
    .variadic("xs", kAny, "", "x0, x1, … of the program; they broadcast together")
    .output("y", "")
    .required("program", AttrKind::kString, "t0=mul(x0,x1); y=relu(t0)")
    .required("dtype", AttrKind::kDType, "the dtype of y")
    .facts(kElementwise | kInternal)
    .infer([](InferContext& ctx) {
      const auto program = ElementwiseProgram::parse(ctx.attrs.s("program"));
      ctx.check(program.input_count() == ctx.input_count(), "the program reads {} inputs, {} given",
                program.input_count(), ctx.input_count());
      std::vector<DType> dtypes;
      for (size_t i = 0; i < ctx.input_count(); ++i) dtypes.push_back(ctx.dtype(i));
      program.infer(dtypes, ctx.attrs.dtype("dtype"));
      infer_broadcast(ctx);
    })
    .cost([](const Attrs& attrs, const std::vector<Shape>&, const std::vector<Shape>& out) {
      const auto program = ElementwiseProgram::parse(attrs.s("program"));
      return static_cast<double>(program.instructions().size()) *
             static_cast<double>(element_count(out[0]));
    })
    .no_tests("programs are made by passes; they have tests of their own");

}  // namespace anymps
