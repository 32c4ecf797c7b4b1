// SPDX-License-Identifier: Apache-2.0
#include "lowering/evaluate.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "lowering/definitions.h"
#include "lowering/functions.h"

namespace anymps::lowering {

namespace {

// Of two integers, or two numbers; integers stay exact.
template <class T>
Value fold_numbers(const std::string& name, T a, T b) {
  if (name == "equal") return a == b;
  if (name == "not_equal") return a != b;
  if (name == "less") return a < b;
  if (name == "less_equal") return a <= b;
  if (name == "greater") return a > b;
  if (name == "greater_equal") return a >= b;
  if (name == "add") return Value(a + b);
  if (name == "sub") return Value(a - b);
  if (name == "mul") return Value(a * b);
  if (name == "div") return Value(a / b);
  if (name == "max") return Value(std::max(a, b));
  if (name == "min") return Value(std::min(a, b));
  return {};
}

// The value of an operator on numbers that are known; nothing if it is not one.
Value fold(const std::string& name, const Values& parts) {
  const bool one = parts.size() == 1 && parts[0].is_static_number();
  if (one && name == "neg")
    return std::holds_alternative<double>(parts[0]) ? Value(-parts[0].number())
                                                    : Value(-parts[0].integer());
  if (parts.size() != 2 || !parts[0].is_static_number() || !parts[1].is_static_number()) return {};
  const bool whole =
      !std::holds_alternative<double>(parts[0]) && !std::holds_alternative<double>(parts[1]);
  if (name == "pow") return Value(std::pow(parts[0].number(), parts[1].number()));
  if (!whole) return fold_numbers(name, parts[0].number(), parts[1].number());
  if (name == "div" && parts[1].integer() == 0) return Value(parts[0].number() / parts[1].number());
  return fold_numbers(name, parts[0].integer(), parts[1].integer());
}

bool is_binary(const std::string& name) {
  static constexpr const char* kNames[] = {
      "add",     "sub",           "mul", "div", "equal", "not_equal", "less", "less_equal",
      "greater", "greater_equal", "max", "min", "pow",   "floor_mod", "mod",  "atan2"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

class Evaluation {
 public:
  Evaluation(Builder& builder, Names names) : builder_(builder), names_(std::move(names)) {}

  Values run(const Program& program, size_t wanted) {
    for (const Program::Step& step : program.steps) {
      const Values values = all(step.value, step.names.size());
      if (values.size() < step.names.size())
        throw std::invalid_argument(step.value.text + " has " + std::to_string(values.size()) +
                                    " results");
      for (size_t i = 0; i < step.names.size(); ++i)
        names_.insert_or_assign(step.names[i], values[i]);
    }
    if (program.results.size() == 1) return all(program.results[0], wanted);
    Values results;
    for (const Expression& result : program.results) results.push_back(one(result));
    return results;
  }

 private:
  Value one(const Expression& expression) { return all(expression, 1).at(0); }

  Values all(const Expression& e, size_t results) {
    switch (e.kind) {
      case Expression::Kind::kName:
        return {name(e.text)};
      case Expression::Kind::kInteger:
        return {static_cast<int64_t>(e.number)};
      case Expression::Kind::kNumber:
        return {e.number};
      case Expression::Kind::kText:
        return {e.text};
      case Expression::Kind::kList:
        return {list(e)};
      default:
        return call(e, results);
    }
  }

  Value name(const std::string& text) {
    if (const auto found = names_.find(text); found != names_.end()) return found->second;
    if (text == "none") return {};
    if (text == "true" || text == "false") return text == "true";
    if (text == "inf") return static_cast<double>(INFINITY);
    amps_dtype dtype;
    if (builder_.api().dtype_parse(text.c_str(), &dtype) == AMPS_OK) return dtype;
    throw std::invalid_argument("'" + text + "' is not known");
  }

  Value list(const Expression& e) {
    Values items;
    for (const Expression& part : e.parts) items.push_back(one(part));
    const auto whole = [](const Value& item) {
      return std::holds_alternative<int64_t>(item) || std::holds_alternative<bool>(item);
    };
    if (std::all_of(items.begin(), items.end(), whole)) return Value(items).ints();
    if (std::all_of(items.begin(), items.end(), [](auto& v) { return v.is_static_number(); }))
      return Value(items).floats();
    return items;
  }

  Values call(const Expression& e, size_t results) {
    if (e.text == "if") {
      if (e.parts.size() != 3) throw std::invalid_argument("if(condition, a, b) has three parts");
      return all(one(e.parts[0]).flag() ? e.parts[1] : e.parts[2], results);
    }
    Values parts;
    for (const Expression& part : e.parts) parts.push_back(one(part));
    NamedValues named;
    for (const auto& [key, value] : e.named) named.emplace_back(key, one(value));
    return apply(builder_, e.text, std::move(parts), named, results);
  }

  Builder& builder_;
  Names names_;
};

}  // namespace

Values evaluate(Builder& builder, const Program& program, Names names, size_t results) {
  return Evaluation(builder, std::move(names)).run(program, results);
}

Values apply(Builder& builder, const std::string& name, Values parts, const NamedValues& named,
             size_t results) {
  if (const auto function = functions().find(name); function != functions().end()) {
    Call call{builder, std::move(parts), named, results};
    return function->second(call);
  }
  if (const Definition* definition = find_definition(name)) {
    if (parts.size() > definition->parameters.size() || !named.empty())
      throw std::invalid_argument(name + " has " + std::to_string(definition->parameters.size()) +
                                  " parameters");
    parts.resize(definition->parameters.size());
    Names names;
    for (size_t i = 0; i < parts.size(); ++i)
      names.emplace(definition->parameters[i], std::move(parts[i]));
    return evaluate(builder, definition->program, std::move(names), results);
  }
  if (Value folded = fold(name, parts); !folded.absent()) return {folded};
  if (parts.size() == 2 && named.empty() && is_binary(name))
    return {builder.binary(name, parts[0], parts[1])};
  return builder.op(name, parts, named, results);
}

}  // namespace anymps::lowering
