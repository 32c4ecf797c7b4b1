// SPDX-License-Identifier: Apache-2.0
// The program of a fused elementwise node, read and checked: the attribute's words
// (program_builder.h writes them) become instructions of ops, attributes and arguments. No words do
// harm: what is no program is an error that says where.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ops/elementwise/program_builder.h"

namespace anymps {

class ElementwiseProgram {
 public:
  using Arg = ProgramArg;
  // A float attribute whose value is read when the program runs.
  struct AttrParameter {
    std::string name;
    Arg arg;
  };
  struct Instruction {
    const Op* op = nullptr;
    Attrs attrs;  // a parameter has its default here
    std::vector<Arg> args;
    std::vector<AttrParameter> parameters;
  };
  // The dtype of every argument (an absent one's means nothing) and of every result.
  struct Types {
    std::vector<std::vector<DType>> args;
    std::vector<DType> results;
  };

  static constexpr size_t kMaxInputs = 1024, kMaxInstructions = 4096, kMaxOutputs = 1024;

  static ElementwiseProgram decode(std::span<const int64_t> words);
  // For people: t0=mul(x0,x1); y=leaky_relu(t0;alpha=0.1)
  //   x0, x1, …  inputs;  t0, t1, …  results;  y  the last, if it is the only output
  //   x2[0]      a parameter;  _  an absent input;  f16(0.5)  a number whose dtype is not told by
  //   the arguments beside it
  std::string print() const;

  const std::vector<Instruction>& instructions() const { return instructions_; }
  const std::vector<size_t>& outputs() const { return outputs_; }  // instructions
  size_t input_count() const { return parameters_in_.size(); }  // one more than the highest in use
  // Whether input i is a vector of parameters; else it is read element by element.
  bool holds_parameters(size_t i) const { return parameters_in_[i] > 0; }
  // Fails if input i, which holds parameters, is no vector or too short for them.
  void check_parameters(size_t i, std::span<const int64_t> shape) const;

  // Runs each op's dtype checks.
  Types infer(std::span<const DType> inputs) const;

 private:
  class Reader;
  std::string print(size_t instruction) const;
  std::string print(const Instruction& instruction, const Arg& arg, size_t i) const;

  std::vector<Instruction> instructions_;
  std::vector<size_t> outputs_;
  std::vector<size_t> parameters_in_;  // of each input: how many it must hold; 0: none
  std::vector<bool> elements_in_;      // of each input: whether it is read element by element
};

// Whether an element of each output depends on that element of each input alone. Of elementwise ops
// only programs with parameters, or with a shape of their own, are not of this kind.
bool is_elementwise(const Op& op, const Attrs& attrs);

// The program printed, if the attribute is one.
std::optional<std::string> program_text(const Op& op, const AttrSpec& spec, const AttrValue& value);

}  // namespace anymps
