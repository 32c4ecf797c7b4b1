// SPDX-License-Identifier: Apache-2.0
#include "server/http/json_writer.h"

#include <charconv>
#include <cmath>

namespace anymps::server::http {

void append_json(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF", kEscapes[] = "\"\\bfnrt";
  constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t";
  out.push_back('"');
  size_t plain = 0;  // where the characters begin that need no escape
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text.substr(plain, i - plain));
    plain = i + 1;
    out.push_back('\\');
    if (const size_t at = kEscaped.find(static_cast<char>(c)); at != kEscaped.npos) {
      out.push_back(kEscapes[at]);
    } else {
      out.append("u00");
      out.push_back(kHex[c >> 4]);
      out.push_back(kHex[c & 15]);
    }
  }
  out.append(text.substr(plain));
  out.push_back('"');
}

void append_json(std::string& out, int64_t value) {
  char text[24];
  out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

void append_json(std::string& out, uint64_t value) {
  char text[24];
  out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

void append_json(std::string& out, double value) {
  if (std::isnan(value)) {
    out.append("NaN");
    return;
  }
  if (std::signbit(value)) out.push_back('-');
  value = std::fabs(value);
  if (std::isinf(value)) {
    out.append("Infinity");
    return;
  }
  if (value == 0) {
    out.append("0.0");
    return;
  }
  // "d.ddde±xx": the digits, and the place of the point after the first one.
  char text[40];
  const char* end =
      std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr;
  const std::string_view all(text, end - text);
  const size_t e = all.find('e');
  int exponent = 0;
  std::from_chars(text + e + 1 + (text[e + 1] == '+'), end, exponent);
  char digits[24];
  int count = 0;
  for (size_t i = 0; i < e; ++i)
    if (text[i] != '.') digits[count++] = text[i];
  const int point = exponent + 1;  // digits before the point
  if (count <= point && point <= 21) {
    out.append(digits, digits + count);
    out.append(point - count, '0').append(".0");
  } else if (point > 0 && point <= 21) {
    out.append(digits, digits + point);
    out.push_back('.');
    out.append(digits + point, digits + count);
  } else if (point > -6 && point <= 0) {
    out.append("0.").append(-point, '0').append(digits, digits + count);
  } else {
    out.push_back(digits[0]);
    if (count > 1) {
      out.push_back('.');
      out.append(digits + 1, digits + count);
    }
    out.push_back('e');
    append_json(out, static_cast<int64_t>(exponent));
  }
}

void append_json(std::string& out, const Parameter& value) {
  if (const bool* flag = std::get_if<bool>(&value)) {
    out.append(*flag ? "true" : "false");
  } else if (const int64_t* integer = std::get_if<int64_t>(&value)) {
    append_json(out, *integer);
  } else if (const uint64_t* natural = std::get_if<uint64_t>(&value)) {
    append_json(out, *natural);
  } else if (const double* real = std::get_if<double>(&value)) {
    append_json(out, *real);
  } else {
    append_json(out, std::string_view(std::get<std::string>(value)));
  }
}

std::string error_json(std::string_view message) {
  std::string out = "{\"error\":";
  append_json(out, message);
  out.push_back('}');
  return out;
}

}  // namespace anymps::server::http
