// SPDX-License-Identifier: Apache-2.0
// Matrix products, inverses and Einstein's summation.
#include "formats/onnx/read/ops/linear.h"

#include <algorithm>

#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

Value* gemm(Call& c) {
  Value *a = c.in(0), *b = c.in(1), *bias = c.opt(2);
  for (const Value* factor : {a, b})
    c.check(!factor->type.ranked || c.rank(factor) == 2,
            "the factors must have rank 2, \"{}\" has {}", factor->name, to_string(factor->type));
  const double beta = c.f("beta", 1.0);
  if (c.opset < 7) c.ignore({"broadcast"});
  if (beta == 0) bias = nullptr;
  if (bias && beta != 1) bias = c.add("mul", {bias, c.scalar_like(bias, beta)});
  return c.add("matmul", {a, b, bias},
               {{"transpose_a", c.flag("transA", false)},
                {"transpose_b", c.flag("transB", false)},
                {"alpha", c.f("alpha", 1.0)}});
}

namespace {

ONNX_READ(MatMul) { return {c.add("matmul", {c.in(0), c.in(1)})}; }

ONNX_READ(Gemm) { return {gemm(c)}; }

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == by)
      parts.emplace_back();
    else if (c != ' ')
      parts.back() += c;
  }
  return parts;
}

// The letters of `terms`, each once, after an ellipsis if one has it.
std::string letters_of(const std::vector<std::string>& terms) {
  std::string letters, dots;
  for (const std::string& term : terms)
    for (const char c : term) {
      if (c == '.')
        dots = "...";
      else if (letters.find(c) == std::string::npos)
        letters += c;
    }
  return dots + letters;
}

// More than two tensors are multiplied pair by pair: what is not needed later is summed at once.
ONNX_READ(Einsum) {
  const std::string equation = c.s("equation");
  Values tensors = c.all();
  const size_t arrow = equation.find("->");
  if (tensors.size() <= 2 || arrow == std::string::npos)
    return {c.add("einsum", tensors, {{"equation", equation}})};
  std::vector<std::string> terms = split(equation.substr(0, arrow), ',');
  const std::string output = split(equation.substr(arrow + 2), ',')[0];
  c.check(terms.size() == tensors.size(), "'{}' is for {} tensors, {} are given", equation,
          terms.size(), tensors.size());
  while (tensors.size() > 2) {
    std::vector<std::string> later(terms.begin() + 2, terms.end());
    later.push_back(output);
    const std::string needed = letters_of(later), both = letters_of({terms[0], terms[1]});
    std::string kept;
    for (const char letter : both)
      if (letter == '.' || needed.find(letter) != std::string::npos) kept += letter;
    Value* product = c.add("einsum", {tensors[0], tensors[1]},
                           {{"equation", terms[0] + "," + terms[1] + "->" + kept}});
    terms.erase(terms.begin(), terms.begin() + 2);
    tensors.erase(tensors.begin(), tensors.begin() + 2);
    terms.insert(terms.begin(), kept);
    tensors.insert(tensors.begin(), product);
  }
  return {c.add("einsum", tensors, {{"equation", terms[0] + "," + terms[1] + "->" + output}})};
}

ONNX_READ_IN(kMicrosoft, Inverse) { return {c.add("inverse", {c.in(0)})}; }

}  // namespace

}  // namespace anymps::onnx
