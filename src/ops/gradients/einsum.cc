// SPDX-License-Identifier: Apache-2.0
// The gradient of einsum: for each operand, another einsum of the gradient and the other operands.
#include <algorithm>
#include <map>

#include "ops/gradient.h"

namespace anymps {

namespace {

struct Equation {
  std::vector<std::string> operands;
  std::string result;
};

Equation parse(GradientContext& ctx) {
  std::string text = ctx.attrs().s("equation");
  std::erase(text, ' ');
  if (text.find('.') != std::string::npos) ctx.refuse("the equation '{}' has an ellipsis", text);
  const size_t arrow = text.find("->");
  Equation equation;
  std::map<char, int> counts;
  std::string operand;
  for (const char c : text.substr(0, arrow) + ",") {
    if (c != ',') {
      operand += c;
      ++counts[c];
      continue;
    }
    for (const char label : operand)
      if (std::count(operand.begin(), operand.end(), label) > 1)
        ctx.refuse("the equation '{}' takes a diagonal", text);
    equation.operands.push_back(std::move(operand));
    operand.clear();
  }
  if (arrow != std::string::npos)
    equation.result = text.substr(arrow + 2);
  else
    for (const auto& [label, count] : counts)
      if (count == 1) equation.result += label;
  return equation;
}

}  // namespace

GRADIENT(einsum) {
  const Equation equation = parse(ctx);
  for (size_t i = 0; i < equation.operands.size(); ++i) {
    if (!ctx.wants(i)) continue;
    std::vector<Term> inputs{ctx.dy()};
    std::string text = equation.result, there = equation.result;
    for (size_t k = 0; k < equation.operands.size(); ++k) {
      if (k == i) continue;
      inputs.push_back(ctx.x(k));
      text += "," + equation.operands[k];
      there += equation.operands[k];
    }
    // A label of this operand alone was summed: its gradient is the same all along the axis.
    std::string kept;
    std::vector<int64_t> summed;
    for (size_t axis = 0; axis < equation.operands[i].size(); ++axis) {
      const char label = equation.operands[i][axis];
      if (there.find(label) == std::string::npos)
        summed.push_back(static_cast<int64_t>(axis));
      else
        kept += label;
    }
    Term dx = ctx.add("einsum", inputs, {{"equation", text + "->" + kept}});
    if (!summed.empty()) dx = dx.op("unsqueeze", {{"axes", summed}});
    ctx.set(i, ctx.expand_like(dx, ctx.x(i)));
  }
}

}  // namespace anymps
