// SPDX-License-Identifier: Apache-2.0
// The program of a fused elementwise node: a straight line of elementwise ops on one element of
// each input. Its text form is the node's attribute, so that a fused graph prints, compares and
// serializes as any other:  t0=mul(x0,x1); t1=add(t0,0.5); y=leaky_relu(t1;alpha=0.1)
//   x0, x1, …  inputs;  t0, t1, …  results so far, in order;  y  the last result
//   a number   an immediate: takes the dtype of the arguments it stands with
//   _          an optional input that is absent
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op.h"

namespace anymps {

class ElementwiseProgram {
 public:
  struct Arg {
    enum class Kind : uint8_t { kInput, kTemp, kImmediate, kAbsent };
    Kind kind = Kind::kAbsent;
    size_t index = 0;  // of the input, or of the instruction that made the temporary
    double value = 0;  // of an immediate

    static Arg input(size_t index) { return {Kind::kInput, index, 0}; }
    static Arg temp(size_t index) { return {Kind::kTemp, index, 0}; }
    static Arg immediate(double value) { return {Kind::kImmediate, 0, value}; }
    static Arg absent() { return {}; }
  };
  struct Instruction {
    const Op* op = nullptr;
    Attrs attrs;
    std::vector<Arg> args;
  };
  // The dtype of every argument (an absent one's means nothing) and of every result.
  struct Types {
    std::vector<std::vector<DType>> args;
    std::vector<DType> results;
  };

  static constexpr size_t kMaxInputs = 1024, kMaxInstructions = 4096;

  static ElementwiseProgram parse(std::string_view text);
  std::string print() const;

  // Adds an instruction and returns its number, for Arg::temp. Fails if the op is not elementwise,
  // its arguments are too few, too many or not made yet, or an attribute is wrong.
  size_t append(const Op& op, const NamedAttrs& attrs, std::vector<Arg> args);

  const std::vector<Instruction>& instructions() const { return instructions_; }
  size_t input_count() const { return input_count_; }  // one more than the highest input in use

  // Runs each op's dtype checks; the result of the last instruction must be `output`. Immediates
  // that stand with no other argument of their type have the dtype `output` too.
  Types infer(std::span<const DType> inputs, DType output) const;

 private:
  std::string print(size_t instruction) const;

  std::vector<Instruction> instructions_;
  size_t input_count_ = 0;
};

}  // namespace anymps
