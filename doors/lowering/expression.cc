// SPDX-License-Identifier: Apache-2.0
#include "lowering/expression.h"

#include <cctype>
#include <charconv>
#include <stdexcept>

namespace anymps::lowering {

namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Program program() {
    Program program;
    while (true) {
      const size_t start = at_;
      std::vector<std::string> names = targets();
      if (names.empty()) {
        at_ = start;
        break;
      }
      program.steps.push_back({std::move(names), expression()});
      expect(";");
    }
    do program.results.push_back(expression());
    while (take(","));
    if (skip() < text_.size()) fail("an operator or the end is expected");
    return program;
  }

 private:
  // "a, b =", or nothing.
  std::vector<std::string> targets() {
    std::vector<std::string> names;
    do {
      names.push_back(name());
      if (names.back().empty()) return {};
    } while (take(","));
    if (text_.substr(skip()).starts_with("==") || !take("=")) return {};
    return names;
  }

  Expression expression() {
    static constexpr std::pair<const char*, const char*> kOperators[] = {
        {"==", "equal"},         {"!=", "not_equal"}, {"<=", "less_equal"},
        {">=", "greater_equal"}, {"<", "less"},       {">", "greater"}};
    Expression left = sum();
    for (const auto& [symbol, op] : kOperators)
      if (take(symbol)) return call(op, std::move(left), sum());
    return left;
  }

  struct Operator {
    const char *symbol, *op;
  };

  // Parts joined by either of two operators, from the left.
  Expression chain(Expression (Parser::*part)(), Operator one, Operator other) {
    Expression left = (this->*part)();
    while (true) {
      if (take(one.symbol))
        left = call(one.op, std::move(left), (this->*part)());
      else if (take(other.symbol))
        left = call(other.op, std::move(left), (this->*part)());
      else
        return left;
    }
  }

  Expression sum() { return chain(&Parser::product, {"+", "add"}, {"-", "sub"}); }
  Expression product() { return chain(&Parser::factor, {"*", "mul"}, {"/", "div"}); }

  Expression factor() {
    if (take("-")) {
      Expression minus;
      minus.kind = Expression::Kind::kCall;
      minus.text = "neg";
      minus.parts.push_back(factor());
      return minus;
    }
    if (take("(")) {
      Expression inner = expression();
      expect(")");
      return inner;
    }
    if (take("[")) {
      Expression list;
      list.kind = Expression::Kind::kList;
      if (take("]")) return list;
      do list.parts.push_back(expression());
      while (take(","));
      expect("]");
      return list;
    }
    const char next = skip() < text_.size() ? text_[at_] : '\0';
    if (next == '\'') return text();
    if (std::isdigit(static_cast<unsigned char>(next))) return number();
    Expression named;
    named.text = name();
    if (named.text.empty()) fail("a value is expected");
    if (!take("(")) return named;
    named.kind = Expression::Kind::kCall;
    if (take(")")) return named;
    do {
      const size_t start = at_;
      const std::string key = name();
      if (!key.empty() && !text_.substr(skip()).starts_with("==") && take("=")) {
        named.named.push_back({key, expression()});
      } else {
        at_ = start;
        named.parts.push_back(expression());
      }
    } while (take(","));
    expect(")");
    return named;
  }

  Expression text() {
    const size_t end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) fail("' is missing");
    Expression text;
    text.kind = Expression::Kind::kText;
    text.text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return text;
  }

  Expression number() {
    Expression number;
    const char* first = text_.data() + at_;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), number.number);
    if (error != std::errc()) fail("not a number");
    const std::string_view digits(first, static_cast<size_t>(end - first));
    const bool whole = digits.find_first_of(".e") == std::string_view::npos;
    number.kind = whole ? Expression::Kind::kInteger : Expression::Kind::kNumber;
    at_ += digits.size();
    return number;
  }

  std::string name() {
    const size_t start = skip();
    const auto part = [&](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
    };
    if (start < text_.size() && std::isdigit(static_cast<unsigned char>(text_[start]))) return "";
    while (at_ < text_.size() && part(text_[at_])) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }

  static Expression call(const char* op, Expression left, Expression right) {
    Expression call;
    call.kind = Expression::Kind::kCall;
    call.text = op;
    call.parts = {std::move(left), std::move(right)};
    return call;
  }

  size_t skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return at_;
  }
  bool take(std::string_view symbol) {
    if (!text_.substr(skip()).starts_with(symbol)) return false;
    at_ += symbol.size();
    return true;
  }
  void expect(const char* symbol) {
    if (!take(symbol)) fail((std::string("'") + symbol + "' is expected").c_str());
  }
  [[noreturn]] void fail(const char* what) const {
    throw std::invalid_argument(std::string(what) + " at " + std::to_string(at_) + " of \"" +
                                std::string(text_) + "\"");
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Program parse(std::string_view text) { return Parser(text).program(); }

}  // namespace anymps::lowering
