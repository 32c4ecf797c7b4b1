// SPDX-License-Identifier: Apache-2.0
#include "semantics/elements.h"

#include <charconv>

namespace anymps {

namespace {

std::string float_text(auto value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-INF" : "INF";
  return fmt::format("{}", value);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

template <typename T>
bool parse_whole(std::string_view text, T& value) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc() && end == text.data() + text.size();
}

double parse_double(std::string_view text) {
  const std::string word = lower(text);
  if (word == "nan") return NAN;
  if (word == "inf" || word == "infinity") return INFINITY;
  if (word == "-inf" || word == "-infinity") return -INFINITY;
  if (word == "true") return 1;
  if (word == "false") return 0;
  double value = 0;
  const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool whole = end == word.data() + word.size() && !word.empty();
  if (status == std::errc::result_out_of_range && whole) {
    const size_t exponent = word.find('e');
    const bool tiny = exponent != std::string::npos && word[exponent + 1] == '-';
    return tiny ? 0.0 : word[0] == '-' ? -INFINITY : INFINITY;
  }
  require(status == std::errc() && whole, "[cast] \"{}\" is not a number", text);
  return value;
}

}  // namespace

std::string number_text(DType dtype, const void* in) {
  if (is_narrow(dtype)) return float_text(decode_narrow(dtype, *static_cast<const uint8_t*>(in)));
  return dispatch<kAny>(dtype, [&]<typename T>() -> std::string {
    if constexpr (std::is_same_v<T, bool>) {
      return *static_cast<const uint8_t*>(in) != 0 ? "1" : "0";
    } else if constexpr (kIsComplexType<T>) {
      fail(Code::kUnsupported, "[cast] complex numbers have no text");
    } else {
      T value;
      std::memcpy(&value, in, sizeof value);
      if constexpr (std::is_integral_v<T>)
        return fmt::format("{}", +value);
      else
        return float_text(static_cast<Compute<T>>(value));
    }
  });
}

void parse_number(std::string_view text, DType dtype, void* out, bool saturate,
                  NarrowRounding rounding) {
  const std::string_view given = text;
  const auto space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  int64_t whole = 0;
  uint64_t large = 0;
  require(!text.empty(), "[cast] \"{}\" is not a number", given);
  if (is_narrow(dtype)) {
    auto* code = static_cast<uint8_t*>(out);
    if (contains(kNarrowInt, dtype) && parse_whole(text, whole))
      *code = wrap_narrow(dtype, whole);
    else
      *code = encode_narrow(dtype, parse_double(text), saturate, rounding);
    return;
  }
  dispatch<kAny>(dtype, [&]<typename T>() {
    T value;
    if (std::is_integral_v<T> && parse_whole(text, whole))
      value = scalar::convert<T>(whole);
    else if (std::is_integral_v<T> && parse_whole(text, large))
      value = scalar::convert<T>(large);
    else
      value = scalar::convert<T>(parse_double(text));
    std::memcpy(out, &value, sizeof value);
  });
}

}  // namespace anymps
