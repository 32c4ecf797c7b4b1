// SPDX-License-Identifier: Apache-2.0
// Elementwise programs as tests write them:
//   program({{"mul", {x(0), x(1)}}, {"add", {t(0), number(0.5)}}, {"relu", {t(1)}}})
// Instructions are numbered from 0; t(i) is the result of the i-th. The last is the only output
// unless others are named.
#pragma once

#include <vector>

#include "ops/elementwise/elementwise_program.h"

namespace anymps::testing {

inline ProgramArg x(size_t i) { return ProgramArg::input(i); }
inline ProgramArg t(size_t i) { return ProgramArg::result(i); }
inline ProgramArg number(double value, std::optional<DType> dtype = std::nullopt) {
  return ProgramArg::immediate(value, dtype);
}
inline ProgramArg parameter(size_t input, size_t element,
                            std::optional<DType> dtype = std::nullopt) {
  return ProgramArg::parameter(input, element, dtype);
}
inline ProgramArg absent() { return ProgramArg::absent(); }

struct ProgramStep {
  const char* op;
  std::vector<ProgramArg> args;
  std::vector<ProgramAttr> attrs = {};
};

inline std::vector<int64_t> program(const std::vector<ProgramStep>& calls,
                                    const std::vector<size_t>& outputs = {}) {
  ElementwiseProgramBuilder builder;
  for (const ProgramStep& call : calls) builder.call(get_op(call.op), call.args, call.attrs);
  for (const size_t output : outputs) builder.output(t(output));
  if (outputs.empty()) builder.output(t(calls.size() - 1));
  const auto words = builder.words();
  return {words.begin(), words.end()};
}

inline std::string printed(const std::vector<int64_t>& words) {
  return ElementwiseProgram::decode(words).print();
}

}  // namespace anymps::testing
