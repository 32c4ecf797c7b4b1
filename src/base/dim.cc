// SPDX-License-Identifier: Apache-2.0
#include "base/dim.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/broadcast.h"

namespace anymps {

namespace {

constexpr size_t kMaxExpression =
    160;  // longer ones are replaced by a hash: they are only compared

constexpr std::string_view kLimitMark = "<=";

int64_t floor_divide(int64_t a, int64_t b) {
  require(b != 0, "[shape] division of an extent by zero");
  require(!(b == -1 && a == INT64_MIN), "[shape] extent overflows");
  const int64_t quotient = a / b;
  return quotient - ((a % b != 0) && ((a < 0) != (b < 0)));
}

// The text as an operand: in parentheses if it holds an operator outside of any.
std::string atom(const Dim& dim) {
  std::string text = dim.str();
  int depth = 0;
  for (char c : text) {
    depth += (c == '(') - (c == ')');
    if (depth == 0 && std::string_view("+-*/ ,<").find(c) != std::string_view::npos)
      return "(" + text + ")";
  }
  return text;
}

Dim combine(const Dim& a, const char* op, const Dim& b) {
  return Dim::symbol(atom(a) + op + atom(b));
}

// Whether `dim` is  which(a,b)  with `part` as a or b.
bool is_extreme_of(const Dim& dim, std::string_view which, const Dim& part) {
  if (dim.known()) return false;
  const std::string text = dim.str(), sought = part.str();
  if (!text.starts_with(which)) return false;
  int depth = 0;
  size_t comma = 0;
  for (size_t i = which.size(); i < text.size(); ++i) {
    depth += (text[i] == '(') - (text[i] == ')');
    if (depth == 1 && text[i] == ',') comma = i;
    if (depth == 0 && i + 1 < text.size()) return false;  // it goes on behind
  }
  const size_t first = which.size() + 1;
  return comma != 0 && (text.substr(first, comma - first) == sought ||
                        text.substr(comma + 1, text.size() - comma - 2) == sought);
}

}  // namespace

Dim Dim::symbol(std::string expression, int64_t limit) {
  if (limit != kNoLimit) expression += fmt::format("{}{}", kLimitMark, limit);
  if (expression.size() > kMaxExpression)
    expression = fmt::format("expr_{:016x}", std::hash<std::string>{}(expression));
  Dim dim;
  dim.symbol_ = std::make_shared<const Symbol>(Symbol{std::move(expression), limit});
  return dim;
}

Dim Dim::parse(const std::string& text) {
  const size_t at = text.rfind(kLimitMark);
  if (at == std::string::npos || text.find_first_of("+-*/ ,()") != std::string::npos)
    return symbol(text);  // an expression has no limit of its own
  int64_t limit = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + at + kLimitMark.size(), end, limit);
  const bool exact = error == std::errc() && stop == end;
  return exact ? symbol(text.substr(0, at), limit) : symbol(text);
}

int64_t Dim::value() const {
  if (!known())
    fail(Code::kInvalidArgument, "[shape] dimension '{}' is not known yet", symbol_->text);
  return value_;
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.known() != b.known()) return false;
  return a.known() ? a.value_ == b.value_ : a.symbol_->text == b.symbol_->text;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.known() && b.known()) {
    int64_t sum = 0;
    require(!__builtin_add_overflow(a.value_, b.value_, &sum), "[shape] extent overflows");
    return sum;
  }
  if (a.is(0)) return b;
  if (b.is(0)) return a;
  if (b.known() && b.value_ < 0 && b.value_ != INT64_MIN) return a - Dim(-b.value_);
  return combine(a, "+", b);
}

Dim operator-(const Dim& a, const Dim& b) {
  if (a.known() && b.known()) {
    int64_t difference = 0;
    require(!__builtin_sub_overflow(a.value_, b.value_, &difference), "[shape] extent overflows");
    return difference;
  }
  if (b.is(0)) return a;
  if (a == b) return 0;
  if (b.known() && b.value_ < 0 && b.value_ != INT64_MIN) return a + Dim(-b.value_);
  return combine(a, "-", b);
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.known() && b.known()) {
    int64_t result = 0;
    require(!__builtin_mul_overflow(a.value_, b.value_, &result), "[shape] extent overflows");
    return result;
  }
  if (a.is(0) || b.is(0)) return 0;
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  return a.str() <= b.str() ? combine(a, "*", b) : combine(b, "*", a);
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (a.known() && b.known()) return floor_divide(a.value_, b.value_);
  if (b.is(1)) return a;
  if (a == b) return 1;
  if (!a.known() && !b.known()) {  // (x*y)//y
    const std::string text = a.str(), factor = "*" + atom(b), lead = atom(b) + "*";
    if (text.ends_with(factor) && text.find('*') == text.size() - factor.size())
      return Dim::symbol(text.substr(0, text.size() - factor.size()));
    if (text.starts_with(lead) && text.find('*', lead.size()) == std::string::npos)
      return Dim::symbol(text.substr(lead.size()));
  }
  return combine(a, "//", b);
}

Dim ceil_div(const Dim& a, const Dim& b) {
  if (a.known() && b.known()) {
    const int64_t quotient = floor_divide(a.value_, b.value_);
    return quotient + (a.value_ % b.value_ != 0);
  }
  return b.is(1) ? a : floor_div(a + (b - 1), b);
}

Dim max(const Dim& a, const Dim& b) {
  if (a.known() && b.known()) return std::max(a.value_, b.value_);
  if (a == b || is_extreme_of(b, "min", a)) return a;
  if (is_extreme_of(a, "min", b)) return b;
  return Dim::symbol("max(" + a.str() + "," + b.str() + ")");
}

Dim min(const Dim& a, const Dim& b) {
  if (a.known() && b.known()) return std::min(a.value_, b.value_);
  if (a == b || is_extreme_of(b, "max", a)) return a;
  if (is_extreme_of(a, "max", b)) return b;
  return Dim::symbol("min(" + a.str() + "," + b.str() + ")");
}

std::string to_string(const Dims& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? ", " : "") + dims[i].str();
  return text + "]";
}

bool all_known(const Dims& dims) {
  return std::all_of(dims.begin(), dims.end(), [](const Dim& d) { return d.known(); });
}

Shape to_shape(const Dims& dims) {
  Shape shape;
  for (const Dim& dim : dims) shape.push_back(dim.value());
  return shape;
}

Dims to_dims(const Shape& shape) { return Dims(shape.begin(), shape.end()); }

Dim product(const Dims& dims, size_t first, size_t last) {
  Dim result = 1;
  for (size_t i = first; i < last; ++i) result = result * dims[i];
  return result;
}

Dims broadcast(const Dims& a, const Dims& b, const char* who) {
  return broadcast_lists(a, b, [&](Dim& extent, const Dim& other) {
    if (extent == other || other.is(1)) return;
    if (extent.is(1)) {
      extent = other;
    } else if (extent.known() && other.known()) {
      fail(Code::kInvalidArgument, "[{}] shapes {} and {} do not broadcast", who, to_string(a),
           to_string(b));
    } else if (!extent.known() && other.known()) {
      extent = other;
    } else if (!extent.known() && !other.known()) {
      extent = max(extent, other);
    }
  });
}

}  // namespace anymps
