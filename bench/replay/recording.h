// SPDX-License-Identifier: Apache-2.0
// What record.py wrote: the memory, the tensors in it and the calls of a model's runs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

struct Storage {
  int64_t bytes = 0;
  bool there = false;  // from the start, with elements like these
  at::ScalarType dtype = at::kByte;
  double mean = 0, deviation = 0, least = 0, greatest = 0;
};

struct Tensor {
  int64_t storage = 0, offset = 0;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> dims, strides;
};

struct Arg {
  char kind = 'n';  // t, n, i, f, b, d, s or [ as record.py says
  int64_t i = 0;    // of a tensor its number, of a dtype at::ScalarType's
  double f = 0;     // of an integer too
  std::string s = {};
  std::vector<Arg> list = {};
};

struct RecordedCall {
  std::string op;  // with its overload: aten::add.Tensor
  std::vector<Arg> args, results;
  bool free = false;                      // moves no element: a view, or memory without content
  std::vector<int64_t> tensors;           // all that args and results name
  std::vector<int64_t> makes, last_uses;  // storages that begin and end here
};

struct Run {
  std::string name;
  std::vector<std::string> phases;
  std::vector<RecordedCall> calls;
  std::vector<int64_t> phase_of;  // a call
};

struct Recording {
  std::vector<Storage> storages;
  std::vector<Tensor> tensors;
  std::vector<Run> runs;
};

Recording parse_recording(const std::string& text);

}  // namespace bench
