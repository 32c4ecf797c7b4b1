// SPDX-License-Identifier: Apache-2.0
// What string ops do to single strings: their records need it to tell shapes that depend on the
// text, their kernels to compute.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace anymps {

// The parts of a text. With an empty delimiter, words between runs of ASCII white space. At most
// `most` cuts (negative: no limit); the last part is then the rest of the text.
std::vector<std::string> split_text(std::string_view text, std::string_view delimiter,
                                    int64_t most);

// Upper and lower case of a locale, code point by code point. The name is one that the C library
// knows, with or without its encoding. Without it the rules of Unicode apply, which are those of
// every language but a few; those few must be installed.
class CaseRules {
 public:
  explicit CaseRules(const std::string& locale);
  ~CaseRules();
  CaseRules(const CaseRules&) = delete;
  CaseRules& operator=(const CaseRules&) = delete;
  std::string lower(std::string_view text) const;
  std::string upper(std::string_view text) const;

 private:
  void* locale_ = nullptr;
};

// Leaves out stop words and changes the case of what stays.
struct TextNormalizer {
  std::string change;  // "none", "lower", "upper"
  bool case_sensitive = false;
  CaseRules rules;
  std::unordered_set<std::string> stopwords;  // as they are compared

  TextNormalizer(std::string change, bool case_sensitive, const std::string& locale,
                 const std::vector<std::string>& stopwords);
  std::string compared(std::string_view text) const;
  std::vector<std::string> run(const std::vector<std::string>& texts) const;  // at least one
};

}  // namespace anymps
