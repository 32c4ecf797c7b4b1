// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/einsum.h"

#include <algorithm>
#include <map>

#include "ops/expect.h"

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

namespace {

void infer_einsum(InferContext& ctx) {
  std::vector<size_t> ranks;
  for (size_t i = 0; i < ctx.input_count(); ++i) ranks.push_back(ctx.shape(i).size());
  const Einsum einsum = Einsum::parse(ctx.attrs.s("equation"), ranks);
  Dims extents(einsum.labels, Dim(1));
  for (size_t i = 0; i < ranks.size(); ++i)
    for (size_t k = 0; k < ranks[i]; ++k) {
      const Dim& extent = ctx.shape(i)[k];
      Dim& known = extents[einsum.inputs[i][k]];
      ctx.check(extent.is(1) || known.is(1) || may_equal(extent, known),
                "'{}' gives axis {} of input {}, of extent {}, a label of extent {}",
                ctx.attrs.s("equation"), k, i, extent.str(), known.str());
      if (known.is(1) || (!known.known() && extent.known() && !extent.is(1))) known = extent;
    }
  Dims y;
  for (const size_t label : einsum.output) y.push_back(extents[label]);
  ctx.set(0, std::move(y));
}

}  // namespace

OP(einsum)
    .doc(
        "Einstein's summation: products of elements, summed over the labels that the output does "
        "not have. An ellipsis stands for any number of axes, a repeated label for a diagonal, "
        "axes of extent 1 broadcast. Without an arrow the output has the labels that come once, "
        "in alphabetical order.")
    .formula("'ij,jk->ik': y[i,k] = sum over j of a[i,j] * b[j,k]")
    .variadic("xs", kNumber)
    .output("y")
    .required("equation", AttrKind::kString)
    .facts(kProduct)
    .infer(infer_einsum)
    .tolerance({.f32 = 5e-5, .f16 = 5e-3, .bf16 = 4e-2, .f64 = 1e-10})
    .no_layout_tests()
    .sample({"product", {{3, 5}, {5, 4}}, {{"equation", "ij,jk->ik"}}})
    .sample({"batch", {{2, 3, 5}, {2, 4, 5}}, {{"equation", "bij, bkj -> bik"}}})
    .sample({"transpose", {{3, 4, 5}}, {{"equation", "ijk->kij"}}})
    .sample({"sum", {{3, 4}}, {{"equation", "ij->i"}}})
    .sample({"diagonal", {{2, 5, 5}}, {{"equation", "...ii->...i"}}})
    .sample({"trace", {{4, 4}}, {{"equation", "ii"}}})
    .sample({"batch trace", {{2, 4, 4}, {4}}, {{"equation", "bii,i->b"}}})
    .sample({"cube", {{3, 3, 3}, {3, 2}}, {{"equation", "iii,ij->ij"}}})
    .sample({"diagonal and one", {{1, 4, 1}, {4}}, {{"equation", "iii,i->i"}}})
    .sample({"ellipsis summed", {{2, 3, 4}, {4, 3, 5}}, {{"equation", "...ij,jik->k..."}}})
    .sample({"inner", {{5}, {5}}, {{"equation", "i,i"}}})
    .sample({"outer", {{3}, {4}}, {{"equation", "i,j"}}})
    .sample({"ellipsis", {{2, 1, 3, 4}, {5, 4, 2}}, {{"equation", "...ij,...jk->...ik"}}})
    .sample({"summed on one side", {{3, 4}, {5, 3}}, {{"equation", "ij,ki->k"}}})
    .sample({"three", {{2, 3}, {3, 4}, {4, 2}}, {{"equation", "ij,jk,kl->il"}}})
    .sample({"heads", {{2, 3, 4, 5}, {2, 6, 4, 5}}, {{"equation", "bqhd,bkhd->bhqk"}}})
    .sample({"scalar", {{}, {3}}, {{"equation", ",i->i"}}})
    .sample({"nothing to sum", {{2, 0}, {0, 3}}, {{"equation", "ij,jk->ik"}}})
    .sample({"empty", {{0, 3}}, {{"equation", "ij->ji"}}});

}  // namespace anymps
