// SPDX-License-Identifier: Apache-2.0
// From a recorded ATen call to calls of the engine: made once, run any number of times.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "calls.h"
#include "recording.h"

namespace bench {

// A tensor of the recording, a number in memory of its own, or nothing.
struct Operand {
  int64_t tensor = -1;
  const void* number = nullptr;
  amps_dtype dtype = AMPS_F32;
};

// One call of the engine.
struct Step {
  const amps_call* call = nullptr;
  std::vector<Operand> in, out;
};

class Lowering {
 public:
  Lowering(const Recording& recording, const RecordedCall& call)
      : recording_(recording), call_(call) {}
  std::vector<Step> steps;

  const Arg& arg(size_t i) const { return call_.args.at(i); }
  double number(size_t i) const { return arg(i).f; }
  std::vector<int64_t> ints(size_t i) const;
  bool wants(size_t i) const;  // whether result i is there
  size_t length(size_t i) const { return arg(i).list.size(); }
  const Tensor& about(size_t i) const;  // the tensor that argument i is

  Operand in(size_t i) const { return operand(arg(i)); }
  Operand in(size_t i, size_t item) const { return operand(arg(i).list.at(item)); }
  Operand out(size_t i) const { return operand(call_.results.at(i)); }
  Operand out(size_t i, size_t item) const;  // of a list: results of the call one by one
  // A number as a tensor without axes; it lives as long as the program.
  Operand scalar(double value, at::ScalarType dtype = at::kFloat) const;

  void op(const char* name, std::vector<Operand> in, std::vector<Operand> out,
          std::vector<Attr> attrs = {});

 private:
  static Operand operand(const Arg& arg);
  const Recording& recording_;
  const RecordedCall& call_;
};

// The calls of the engine for a call that is not free; throws for one that has no row.
std::vector<Step> lower(const Recording& recording, const RecordedCall& call);

}  // namespace bench
