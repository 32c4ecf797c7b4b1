// SPDX-License-Identifier: Apache-2.0
// Writes the program of a `fused_elementwise` call: a straight line of elementwise ops on one
// element of each input, any results of which are stored. How to use it:
//
//   ElementwiseProgramBuilder program;          // keep it: clear() keeps its memory
//   const ProgramArg x = ProgramArg::input(0), y = ProgramArg::input(1);
//   const ProgramArg alpha = ProgramArg::parameter(2, 0);       // element 0 of input 2
//   const ProgramArg scaled = program.call(mul, {y, alpha});    // mul, add: const Op&
//   const ProgramArg sum = program.call(add, {x, scaled});
//   const ProgramArg half = program.call(cast, {sum}, {{"dtype", DType::kF16}});
//   program.output(sum);                        // output 0 of the call, f32
//   program.output(half);                       // output 1, f16
//   program.words()                             // the attribute `program`
//
// - Results are what the separate ops give, rounded to each one's dtype: nothing is promoted. Cast
//   where dtypes differ. All inputs and outputs broadcast to one shape; the attribute `shape` adds
//   to it where the inputs alone do not say it (a fill: identity of a parameter).
// - Inputs and outputs may be strided. An output may be the memory of an input that has the same
//   dtype, shape and strides; apart from that they share no memory.
// - An immediate is part of the program, and so of a kernel's key. A parameter is read when the
//   call runs: the input that holds it is a vector of f64 or i64, and its element is converted as
//   `cast` does. Attributes that are floats can be parameters too, and are then taken as they come:
//   the record's check of them is not repeated.
// - Both take the dtype of the arguments beside them that must have the same; where there is none,
//   name it: ProgramArg::parameter(0, 3, DType::kBF16).
// - CPU kernels refuse programs of more than about 40 instructions; shorter ones keep larger tiles
//   in the cache.
// Nothing is checked here but sizes: whoever reads the program checks it (elementwise_program.h).
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "ops/op.h"

namespace anymps {

struct ProgramArg {
  // Part of files: these numbers never change.
  enum class Kind : uint8_t {
    kAbsent = 0,
    kInput = 1,
    kResult = 2,
    kImmediate = 3,
    kParameter = 4,
  };
  Kind kind = Kind::kAbsent;
  size_t index = 0;    // of the input (a parameter's too), or of the instruction
  size_t element = 0;  // of the input, for a parameter
  double value = 0;    // of an immediate
  std::optional<DType> dtype = std::nullopt;  // of an immediate or a parameter, if given

  static ProgramArg input(size_t index) { return {Kind::kInput, index}; }
  static ProgramArg result(size_t index) { return {Kind::kResult, index}; }
  static ProgramArg immediate(double value, std::optional<DType> dtype = std::nullopt) {
    return {Kind::kImmediate, 0, 0, value, dtype};
  }
  static ProgramArg parameter(size_t input, size_t element,
                              std::optional<DType> dtype = std::nullopt) {
    return {Kind::kParameter, input, element, 0, dtype};
  }
  static ProgramArg absent() { return {}; }
};

// An attribute of an instruction: a number, a word, or a parameter.
struct ProgramAttr {
  std::string_view name;
  std::variant<int64_t, double, std::string_view, ProgramArg> value;

  ProgramAttr(std::string_view n, int64_t v) : name(n), value(v) {}
  ProgramAttr(std::string_view n, int v) : name(n), value(int64_t{v}) {}
  ProgramAttr(std::string_view n, bool v) : name(n), value(int64_t{v}) {}
  ProgramAttr(std::string_view n, DType v) : name(n), value(static_cast<int64_t>(v)) {}
  ProgramAttr(std::string_view n, double v) : name(n), value(v) {}
  ProgramAttr(std::string_view n, const char* v) : name(n), value(std::string_view(v)) {}
  ProgramAttr(std::string_view n, std::string_view v) : name(n), value(v) {}
  ProgramAttr(std::string_view n, const ProgramArg& parameter) : name(n), value(parameter) {}
  // Fails for a list or a graph. Points into `attr`.
  explicit ProgramAttr(const NamedAttr& attr);
};

class ElementwiseProgramBuilder {
 public:
  ElementwiseProgramBuilder() { clear(); }

  void clear();
  // Adds an instruction; its result can be an argument of later ones.
  ProgramArg call(const Op& op, std::span<const ProgramArg> args,
                  std::span<const ProgramAttr> attrs = {});
  ProgramArg call(const Op& op, std::initializer_list<ProgramArg> args,
                  std::initializer_list<ProgramAttr> attrs = {}) {
    return call(op, std::span(args.begin(), args.size()), std::span(attrs.begin(), attrs.size()));
  }
  void output(const ProgramArg& result);

  size_t instructions() const { return instructions_; }
  size_t outputs() const { return outputs_.size(); }
  // The whole program; valid until it changes.
  std::span<const int64_t> words();

 private:
  void add_text(std::string_view text);
  void add_arg(const ProgramArg& arg);
  void add_attr(const ProgramAttr& attr);

  std::vector<int64_t> words_;  // the first describes the program; the last `finished_` are outputs
  std::vector<int64_t> outputs_;
  size_t instructions_ = 0, finished_ = 0;
};

}  // namespace anymps
