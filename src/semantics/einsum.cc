// SPDX-License-Identifier: Apache-2.0
#include "semantics/einsum.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace anymps {

namespace {

// One term as letters and, for an ellipsis, dots.
std::string term_of(const std::string& text, const std::string& equation) {
  std::string term;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (c == '.') {
      require(text.substr(i, 3) == "..." && term.find('.') == std::string::npos,
              "[einsum] '{}' has dots that are no ellipsis", equation);
      term += '.';
      i += 2;
    } else {
      require(letter, "[einsum] '{}' has the character '{}'", equation, c);
      term += c;
    }
  }
  return term;
}

}  // namespace

bool Einsum::in_output(size_t label) const {
  return std::find(output.begin(), output.end(), label) != output.end();
}

Einsum Einsum::parse(const std::string& equation, const std::vector<size_t>& ranks) {
  std::string text;
  for (const char c : equation)
    if (c != ' ') text += c;
  const size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  std::vector<std::string> terms;
  for (size_t begin = 0; begin <= left.size();) {
    const size_t comma = std::min(left.find(',', begin), left.size());
    terms.push_back(term_of(left.substr(begin, comma - begin), equation));
    begin = comma + 1;
  }
  require(terms.size() == ranks.size(), "[einsum] '{}' is for {} tensors, {} are given", equation,
          terms.size(), ranks.size());
  size_t dots = 0;  // axes of the longest ellipsis
  for (size_t i = 0; i < terms.size(); ++i) {
    const bool ellipsis = terms[i].find('.') != std::string::npos;
    const size_t letters = terms[i].size() - ellipsis;
    require(ellipsis ? letters <= ranks[i] : letters == ranks[i],
            "[einsum] '{}' has {} labels for tensor {}, which has rank {}", equation, letters, i,
            ranks[i]);
    if (ellipsis) dots = std::max(dots, ranks[i] - letters);
  }
  std::string output;
  if (arrow != std::string::npos) {
    output = term_of(text.substr(arrow + 2), equation);
  } else {
    std::map<char, int> counts;
    for (const std::string& term : terms)
      for (const char c : term) ++counts[c];
    if (counts.contains('.')) output += '.';
    for (const auto& [letter, count] : counts)
      if (letter != '.' && count == 1) output += letter;
  }
  Einsum result;
  std::map<char, size_t> numbers;
  result.labels = dots;  // the ellipsis' come first
  const auto labels_of = [&](const std::string& term, size_t own) {
    std::vector<size_t> labels;
    for (const char c : term) {
      if (c == '.') {
        for (size_t k = dots - own; k < dots; ++k) labels.push_back(k);
        continue;
      }
      const auto [found, fresh] = numbers.emplace(c, result.labels);
      result.labels += fresh;
      labels.push_back(found->second);
    }
    return labels;
  };
  for (size_t i = 0; i < terms.size(); ++i) {
    const bool ellipsis = terms[i].find('.') != std::string::npos;
    result.inputs.push_back(labels_of(terms[i], ellipsis ? ranks[i] - (terms[i].size() - 1) : 0));
  }
  for (size_t i = 0; i < output.size(); ++i) {
    if (output[i] == '.') continue;
    require(numbers.contains(output[i]), "[einsum] label '{}' of '{}' is in no input", output[i],
            equation);
    require(output.find(output[i], i + 1) == std::string::npos,
            "[einsum] label '{}' comes twice in the output of '{}'", output[i], equation);
  }
  result.output = labels_of(output, dots);
  return result;
}

}  // namespace anymps
