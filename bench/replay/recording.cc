// SPDX-License-Identifier: Apache-2.0
#include "recording.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <unordered_set>

namespace bench {

namespace {

at::ScalarType dtype_named(const std::string& name) {
  if (name == "f32") return at::kFloat;
  if (name == "f64") return at::kDouble;
  if (name == "i64") return at::kLong;
  if (name == "i32") return at::kInt;
  if (name == "u8") return at::kByte;
  if (name == "bool") return at::kBool;
  throw std::runtime_error("recording: no dtype " + name);
}

std::vector<int64_t> ints(const std::string& text) {
  std::vector<int64_t> values;
  std::istringstream in(text.substr(1, text.size() - 2));
  for (std::string item; std::getline(in, item, ',');) values.push_back(std::stoll(item));
  return values;
}

Arg parse_arg(std::istringstream& in, const std::string& word) {
  Arg arg{word[0]};
  const std::string rest = word.substr(1);
  switch (arg.kind) {
    case 't':
    case 'i':
    case 'b':
      arg.i = std::stoll(rest);
      arg.f = static_cast<double>(arg.i);
      break;
    case 'f':
      arg.f = std::stod(rest);
      break;
    case 'd':
      arg.i = static_cast<int64_t>(dtype_named(rest));
      break;
    case 's':
      arg.s = rest;
      break;
    case '[':
      for (std::string item; in >> item && item != "]";) arg.list.push_back(parse_arg(in, item));
      break;
    case 'n':
      break;
    default:
      throw std::runtime_error("recording: what is " + word);
  }
  return arg;
}

// A call that moves no element costs nothing on either side, nor does reading one number.
bool is_free(const std::string& op) {
  static const std::unordered_set<std::string> names = {
      "aten::view.",         "aten::_unsafe_view.", "aten::t.",
      "aten::transpose.int", "aten::permute.",      "aten::expand.",
      "aten::unbind.int",    "aten::detach.",       "aten::empty.memory_format",
      "aten::lift_fresh.",   "aten::alias.",        "aten::new_empty_strided.",
      "aten::slice.Tensor",  "aten::select.int",    "aten::_local_scalar_dense.",
      "aten::unsqueeze.",    "aten::squeeze.dim",   "aten::_reshape_alias."};
  return names.contains(op);
}

void collect(const std::vector<Arg>& args, std::vector<int64_t>& tensors) {
  for (const Arg& arg : args) {
    if (arg.kind == 't') tensors.push_back(arg.i);
    collect(arg.list, tensors);
  }
}

// Memory that a call is the first to name is made there, and goes after the last that names it.
void find_lifetimes(const Recording& recording, Run& run) {
  std::vector<int64_t> last(recording.storages.size(), -1);
  for (size_t c = 0; c < run.calls.size(); ++c) {
    RecordedCall& call = run.calls[c];
    collect(call.args, call.tensors);
    collect(call.results, call.tensors);
    for (const int64_t t : call.tensors) {
      const auto s = static_cast<size_t>(recording.tensors[static_cast<size_t>(t)].storage);
      if (recording.storages[s].there) continue;
      if (last[s] < 0) call.makes.push_back(static_cast<int64_t>(s));
      last[s] = static_cast<int64_t>(c);
    }
  }
  for (size_t s = 0; s < last.size(); ++s)
    if (last[s] >= 0)
      run.calls[static_cast<size_t>(last[s])].last_uses.push_back(static_cast<int64_t>(s));
}

}  // namespace

Recording parse_recording(const std::string& text) {
  Recording recording;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in(line);
    std::string what, word;
    in >> what;
    if (what == "storage") {
      Storage s;
      in >> s.bytes;
      if (in >> word) {
        s.there = true;
        s.dtype = dtype_named(word);
        in >> s.mean >> s.deviation >> s.least >> s.greatest;
      }
      recording.storages.push_back(s);
    } else if (what == "tensor") {
      Tensor t;
      std::string dims, strides;
      in >> t.storage >> word >> t.offset >> dims >> strides;
      t.dtype = dtype_named(word);
      t.dims = ints(dims);
      t.strides = ints(strides);
      recording.tensors.push_back(t);
    } else if (what == "run") {
      in >> recording.runs.emplace_back().name;
    } else if (what == "phase") {
      in >> recording.runs.back().phases.emplace_back();
    } else if (what == "call") {
      Run& run = recording.runs.back();
      RecordedCall call;
      in >> call.op;
      std::vector<Arg>* to = &call.args;
      while (in >> word)
        if (word == ">")
          to = &call.results;
        else
          to->push_back(parse_arg(in, word));
      call.free = is_free(call.op);
      run.calls.push_back(std::move(call));
      run.phase_of.push_back(static_cast<int64_t>(run.phases.size()) - 1);
    } else {
      throw std::runtime_error("recording: what is a " + what);
    }
  }
  for (Run& run : recording.runs) find_lifetimes(recording, run);
  return recording;
}

}  // namespace bench
