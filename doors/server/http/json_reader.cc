// SPDX-License-Identifier: Apache-2.0
#include "server/http/json_reader.h"

#include <charconv>
#include <limits>
#include <stdexcept>

#include "common/utf8.h"

namespace anymps::server::http {
namespace {

using serving::Code;
using serving::Error;

constexpr int kMaxDepth = 200;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

void JsonReader::malformed(const char* what, size_t position) const {
  throw Error(Code::kInternal, std::string("failed to parse the request JSON buffer: ") + what +
                                   " at " + std::to_string(position));
}

void JsonReader::space() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
    ++at_;
}

JsonReader::Kind JsonReader::peek() {
  space();
  if (at_ == text_.size())
    malformed(depth_ == 0 ? "The document is empty." : "Invalid value.", at_);
  switch (text_[at_]) {
    case '{':
      return Kind::kObject;
    case '[':
      return Kind::kArray;
    case '"':
      return Kind::kString;
    case 't':
    case 'f':
      return Kind::kBool;
    case 'n':
      return Kind::kNull;
    case '-':
    case 'N':
    case 'I':
      return Kind::kNumber;
    default:
      if (is_digit(text_[at_])) return Kind::kNumber;
      malformed("Invalid value.", at_);
  }
}

void JsonReader::open(char bracket, const char* mismatch) {
  peek();
  if (text_[at_] != bracket) throw Error(Code::kInternal, mismatch);
  if (depth_ == kMaxDepth) malformed("The document is nested too deeply.", at_);
  ++depth_;
  ++at_;
}

bool JsonReader::close(char bracket) {
  space();
  if (at_ == text_.size() || text_[at_] != bracket) return false;
  ++at_;
  return true;
}

bool JsonReader::next(char bracket, const char* missing) {
  if (close(bracket)) return false;
  if (at_ == text_.size() || text_[at_] != ',') malformed(missing, at_);
  ++at_;
  return true;
}

bool JsonReader::next_element() {
  return next(']', "Missing a comma or ']' after an array element.");
}

bool JsonReader::next_member() {
  return next('}', "Missing a comma or '}' after an object member.");
}

std::string_view JsonReader::name(std::string& store) {
  space();
  if (at_ == text_.size() || text_[at_] != '"') malformed("Missing a name for object member.", at_);
  const std::string_view name = string(store);
  space();
  if (at_ == text_.size() || text_[at_] != ':')
    malformed("Missing a colon after a name of object member.", at_);
  ++at_;
  return name;
}

void JsonReader::literal(std::string_view word) {
  for (const char c : word) {
    if (at_ == text_.size() || text_[at_] != c) malformed("Invalid value.", at_);
    ++at_;
  }
}

void JsonReader::skip() {
  std::string store;
  switch (peek()) {
    case Kind::kNull:
      return literal("null");
    case Kind::kBool:
      boolean();
      return;
    case Kind::kNumber:
      number();
      return;
    case Kind::kString:
      string(store);
      return;
    case Kind::kArray:
      return array([this] { skip(); });
    case Kind::kObject:
      return object([this](std::string_view) { skip(); });
  }
}

bool JsonReader::boolean() {
  if (peek() != Kind::kBool)
    throw Error(Code::kInternal, "attempt to access JSON non-boolean as boolean");
  const bool value = text_[at_] == 't';
  literal(value ? "true" : "false");
  return value;
}

uint64_t JsonReader::unsigned_integer() {
  constexpr const char* kMismatch =
      "attempt to access JSON non-unsigned-integer as unsigned-integer";
  if (peek() != Kind::kNumber) throw Error(Code::kInternal, kMismatch);
  const Number value = number();
  if (value.form != Number::Form::kUnsigned) throw Error(Code::kInternal, kMismatch);
  return value.integer;
}

int64_t JsonReader::signed_integer() {
  constexpr const char* kMismatch = "attempt to access JSON non-signed-integer as signed-integer";
  if (peek() != Kind::kNumber) throw Error(Code::kInternal, kMismatch);
  const Number value = number();
  if (value.form == Number::Form::kDouble ||
      (value.form == Number::Form::kUnsigned &&
       value.integer > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())))
    throw Error(Code::kInternal, kMismatch);
  return static_cast<int64_t>(value.integer);
}

double JsonReader::real() {
  if (peek() != Kind::kNumber)
    throw Error(Code::kInternal, "attempt to access JSON non-number as double");
  const Number value = number();
  switch (value.form) {
    case Number::Form::kUnsigned:
      return static_cast<double>(value.integer);
    case Number::Form::kNegative:
      return static_cast<double>(static_cast<int64_t>(value.integer));
    case Number::Form::kDouble:
      break;
  }
  return value.real;
}

JsonReader::Number JsonReader::number() {
  if (peek() != Kind::kNumber) malformed("Invalid value.", at_);
  const size_t begin = at_;
  const bool negative = text_[at_] == '-';
  if (negative) ++at_;
  const auto digit = [this] { return at_ < text_.size() && is_digit(text_[at_]); };
  if (!digit()) {
    if (at_ < text_.size() && text_[at_] == 'N' && !negative) {
      literal("NaN");
      return {Number::Form::kDouble, 0, std::numeric_limits<double>::quiet_NaN()};
    }
    if (at_ == text_.size() || text_[at_] != 'I') malformed("Invalid value.", at_);
    literal("Inf");
    if (at_ < text_.size() && text_[at_] == 'i') literal("inity");
    const double infinity = std::numeric_limits<double>::infinity();
    return {Number::Form::kDouble, 0, negative ? -infinity : infinity};
  }
  uint64_t integer = 0;
  bool fits = true;
  if (text_[at_] == '0') {
    ++at_;
  } else {
    for (; digit(); ++at_)
      fits = fits && !__builtin_mul_overflow(integer, uint64_t{10}, &integer) &&
             !__builtin_add_overflow(integer, static_cast<uint64_t>(text_[at_] - '0'), &integer);
  }
  bool whole = true;
  if (at_ < text_.size() && text_[at_] == '.') {
    whole = false;
    ++at_;
    if (!digit()) malformed("Miss fraction part in number.", at_);
    while (digit()) ++at_;
  }
  if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
    whole = false;
    ++at_;
    if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
    if (!digit()) malformed("Miss exponent in number.", at_);
    while (digit()) ++at_;
  }
  if (whole && fits) {
    if (!negative || integer == 0) return {Number::Form::kUnsigned, integer, 0};
    if (integer <= uint64_t{1} << 63) return {Number::Form::kNegative, ~integer + 1, 0};
  }
  return {Number::Form::kDouble, 0, decimal(begin, at_)};
}

double JsonReader::decimal(size_t begin, size_t end) {
  double value = 0;
  const std::string_view token = text_.substr(begin, end - begin);
  const auto [rest, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error == std::errc()) return value;
  // Out of range: too small is zero, too large is refused. The place of the first digit that is not
  // zero and the exponent tell which.
  const size_t e = token.find_first_of("eE");
  const std::string_view mantissa = token.substr(0, e);
  const size_t first = mantissa.find_first_of("123456789");
  if (first == std::string_view::npos) return token[0] == '-' ? -0.0 : 0.0;
  const size_t point = std::min(mantissa.find('.'), mantissa.size());
  int64_t exponent = 0;
  if (e != std::string_view::npos) {
    const bool plus = token[e + 1] == '+';
    const auto parsed =
        std::from_chars(token.data() + e + 1 + plus, token.data() + token.size(), exponent);
    if (parsed.ec != std::errc())
      exponent = token[e + 1] == '-' ? std::numeric_limits<int32_t>::min()
                                     : std::numeric_limits<int32_t>::max();
  }
  const int64_t place = static_cast<int64_t>(point) - static_cast<int64_t>(first);
  if (exponent > 0 ? exponent > -place : place > -exponent)
    malformed("Number too big to be stored in double.", begin);
  return token[0] == '-' ? -0.0 : 0.0;
}

std::string_view JsonReader::string(std::string& store) {
  if (peek() != Kind::kString)
    throw Error(Code::kInternal, "attempt to access JSON non-string as string");
  const size_t begin = at_ + 1;
  for (at_ = begin; at_ < text_.size(); ++at_) {
    const unsigned char c = static_cast<unsigned char>(text_[at_]);
    if (c == '"') return text_.substr(begin, at_++ - begin);
    if (c == '\\') {
      store.assign(text_.substr(begin, at_ - begin));
      unescape(store);
      return store;
    }
    if (c < 0x20) malformed("Invalid escape character in string.", at_);
  }
  malformed("Missing a closing quotation mark in string.", at_);
}

std::string JsonReader::string() {
  std::string store;
  const std::string_view value = string(store);
  return value.data() == store.data() ? store : std::string(value);
}

void JsonReader::unescape(std::string& out) {
  while (at_ < text_.size()) {
    const size_t escape = at_;
    const char c = text_[at_++];
    if (c == '"') return;
    if (static_cast<unsigned char>(c) < 0x20)
      malformed("Invalid escape character in string.", escape);
    if (c != '\\') {
      out.push_back(c);
      continue;
    }
    constexpr std::string_view kEscapes = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    const char kind = at_ < text_.size() ? text_[at_++] : '\0';
    if (const size_t i = kEscapes.find(kind); kind != '\0' && i != std::string_view::npos) {
      out.push_back(kMeant[i]);
    } else if (kind == 'u') {
      uint32_t point = four_digits(escape);
      if (point >= 0xD800 && point < 0xE000) {
        if (point >= 0xDC00 || remaining() < 2 || text_[at_] != '\\' || text_[at_ + 1] != 'u')
          malformed("The surrogate pair in string is invalid.", escape);
        at_ += 2;
        const uint32_t low = four_digits(escape);
        if (low < 0xDC00 || low >= 0xE000)
          malformed("The surrogate pair in string is invalid.", escape);
        point = 0x10000 + ((point - 0xD800) << 10 | (low - 0xDC00));
      }
      common::append_utf8(out, point);
    } else {
      malformed("Invalid escape character in string.", escape);
    }
  }
  malformed("Missing a closing quotation mark in string.", at_);
}

uint32_t JsonReader::four_digits(size_t escape) {
  uint32_t value = 0;
  const std::string_view digits = text_.substr(at_, 4);
  const auto [rest, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc() || rest != digits.data() + 4)
    malformed("Incorrect hex digit after \\u escape in string.", escape);
  at_ += 4;
  return value;
}

void JsonReader::end() {
  space();
  if (at_ != text_.size())
    malformed("The document root must not be followed by other values.", at_);
}

}  // namespace anymps::server::http
