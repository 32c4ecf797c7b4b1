// SPDX-License-Identifier: Apache-2.0
// The language in which a framework's kernels are told in terms of the engine's ops: a line per
// kernel, such as
//     "softmax(x, axis=axis)"
//     "m = reduce_max(x, axes=axes); x - m, m"
// Names are the kernel's arguments or earlier results, calls are ops or functions (functions.h)
// with inputs first and attributes by name, and the last expressions are the kernel's results.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace anymps::lowering {

struct Expression {
  enum class Kind { kName, kInteger, kNumber, kText, kList, kCall };

  Kind kind = Kind::kName;
  std::string text;  // a name, what is called, or a text
  double number = 0;
  std::vector<Expression> parts;  // of a list or a call
  std::vector<struct NamedExpression> named;
};

struct NamedExpression {
  std::string name;
  Expression value;
};

struct Program {
  struct Step {
    std::vector<std::string> names;
    Expression value;
  };
  std::vector<Step> steps;
  std::vector<Expression> results;
};

// Operators become calls: a + b is add(a, b). Fails with the place of the mistake.
Program parse(std::string_view text);

}  // namespace anymps::lowering
