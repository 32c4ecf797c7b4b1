// SPDX-License-Identifier: Apache-2.0
// A dimension as a number: a symbol that a feed's shape has, or that is bound by its name when the
// graph runs. Shape arithmetic, reshape and range use it as they use what `shape` gives.
#include <cctype>

#include "ops/gradient.h"
#include "ops/infer.h"

namespace anymps {

namespace {

bool is_symbol(const std::string& text) {
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0])) &&
         text.find_first_of("+-*/ ,()") == std::string::npos;
}

void infer_dimension(InferContext& ctx) {
  const std::string& symbol = ctx.attrs.s("symbol");
  ctx.check(is_symbol(symbol), "'{}' is no name of a dimension", symbol);
  ctx.set(0, Dims{});
  ctx.set_content(0, {Dim::parse(symbol)});
}

}  // namespace

OP(dimension)
    .doc(
        "The extent that a symbol stands for in this run. It comes from the shape of a feed, or is "
        "bound by its name (amps_executable_bind) where no feed has it.")
    .formula("y = N")
    .output("y", "i64")
    .required("symbol", AttrKind::kString, "its name, as in the shapes of inputs")
    .facts(kStructural)
    .no_tests("run by the runtime: tests/api/dimensions_test.cc")
    .infer(infer_dimension);

ZERO_GRADIENT(dimension, "an integer that depends on no elements");

}  // namespace anymps
