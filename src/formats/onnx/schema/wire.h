// SPDX-License-Identifier: Apache-2.0
// The protobuf wire format with every read checked. protozero finds the fields; this adds what it
// leaves to its caller: wire types (it asserts), lengths of 4 GiB and more (it truncates), UTF-8,
// and the path of the field that an error names.
#pragma once

#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace anymps::onnx {

bool is_utf8(std::string_view text);

// What is wrong at the current path; whoever started the parse adds the file and the path.
struct WireError {
  Code code;
  std::string reason;
};

template <typename... Args>
[[noreturn]] void wire_fail(Code code, fmt::format_string<Args...> format, Args&&... args) {
  throw WireError{code, fmt::format(format, std::forward<Args>(args)...)};
}

// Where the reader stands: "graph.node[3].attribute[0].t". Steps are not popped when an exception
// passes, so that whoever catches it can still say where it happened.
class WirePath {
 public:
  template <typename F>
  void in(const char* field, int64_t index, F&& body) {
    steps_.push_back({field, index});
    body();
    steps_.pop_back();
  }
  std::string text() const;

 private:
  struct Step {
    const char* field;
    int64_t index;  // -1: not repeated
  };
  std::vector<Step> steps_;
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : reader_(bytes.data(), bytes.size()) {}

  bool next() { return reader_.next(); }
  uint32_t tag() const { return reader_.tag(); }
  void skip();

  int64_t int64();
  int32_t int32();
  float float32();
  double float64();
  std::string_view bytes();   // of a message, of packed elements or of a bytes field
  std::string_view string();  // the same, checked to be UTF-8

  // Repeated scalars, packed or one by one: a reader must accept both, whatever the .proto says.
  bool is_packed() const {
    return reader_.has_wire_type(protozero::pbf_wire_type::length_delimited);
  }
  void append_int64(std::vector<int64_t>& to);
  void append_float(std::vector<float>& to);

 private:
  void expect(protozero::pbf_wire_type type) const;
  protozero::pbf_reader reader_;
};

}  // namespace anymps::onnx
