// SPDX-License-Identifier: Apache-2.0
#include "semantics/string_rules.h"

#include <locale.h>
#include <wctype.h>

#include "base/error.h"
#include "base/utf8.h"

namespace anymps {

namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::vector<std::string> split_words(std::string_view text, int64_t most) {
  std::vector<std::string> parts;
  size_t at = 0;
  for (;;) {
    while (at < text.size() && is_space(text[at])) ++at;
    if (at == text.size()) return parts;
    if (most >= 0 && std::ssize(parts) == most) {
      parts.emplace_back(text.substr(at));
      return parts;
    }
    const size_t first = at;
    while (at < text.size() && !is_space(text[at])) ++at;
    parts.emplace_back(text.substr(first, at - first));
  }
}

// Languages in which the case of a letter is not that of Unicode's plain mapping.
bool has_own_rules(const std::string& locale) {
  const std::string language = locale.substr(0, locale.find_first_of("_.@-"));
  return language == "tr" || language == "az" || language == "lt";
}

template <typename Fn>
std::string mapped(std::string_view text, Fn fn) {
  auto points = code_points(text);
  for (char32_t& point : points)
    if (point < kRawByte) point = static_cast<char32_t>(fn(static_cast<wint_t>(point)));
  return utf8_of(points);
}

}  // namespace

std::vector<std::string> split_text(std::string_view text, std::string_view delimiter,
                                    int64_t most) {
  if (delimiter.empty()) return split_words(text, most);
  std::vector<std::string> parts;
  size_t first = 0;
  while (most < 0 || std::ssize(parts) < most) {
    const size_t found = text.find(delimiter, first);
    if (found == std::string_view::npos) break;
    parts.emplace_back(text.substr(first, found - first));
    first = found + delimiter.size();
  }
  parts.emplace_back(text.substr(first));
  return parts;
}

CaseRules::CaseRules(const std::string& name) {
  const std::string encoded = name.substr(0, name.find_first_of(".@")) + ".UTF-8";
  locale_t found = nullptr;
  if (!name.empty()) found = newlocale(LC_CTYPE_MASK, encoded.c_str(), nullptr);
  if (!found && has_own_rules(name))
    fail(Code::kUnsupported, "[string_normalizer] locale '{}' is not installed", name);
  if (!found) found = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  require(found != nullptr, "[string_normalizer] the system has neither locale '{}' nor C.UTF-8",
          name);
  locale_ = found;
}

CaseRules::~CaseRules() { freelocale(static_cast<locale_t>(locale_)); }

std::string CaseRules::lower(std::string_view text) const {
  return mapped(text, [this](wint_t c) { return towlower_l(c, static_cast<locale_t>(locale_)); });
}

std::string CaseRules::upper(std::string_view text) const {
  return mapped(text, [this](wint_t c) { return towupper_l(c, static_cast<locale_t>(locale_)); });
}

TextNormalizer::TextNormalizer(std::string how, bool sensitive, const std::string& locale,
                               const std::vector<std::string>& words)
    : change(std::move(how)), case_sensitive(sensitive), rules(locale) {
  for (const std::string& word : words) stopwords.insert(compared(word));
}

std::string TextNormalizer::compared(std::string_view text) const {
  if (case_sensitive) return std::string(text);
  return change == "upper" ? rules.upper(text) : rules.lower(text);
}

std::vector<std::string> TextNormalizer::run(const std::vector<std::string>& texts) const {
  std::vector<std::string> kept;
  for (const std::string& text : texts) {
    if (!stopwords.empty() && stopwords.contains(compared(text))) continue;
    kept.push_back(change == "none"    ? text
                   : change == "lower" ? rules.lower(text)
                                       : rules.upper(text));
  }
  if (kept.empty()) kept.emplace_back();
  return kept;
}

}  // namespace anymps
