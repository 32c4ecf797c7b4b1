// SPDX-License-Identifier: Apache-2.0
// The protobuf wire format with every read checked. protozero finds the fields; this adds what it
// leaves to its caller: wire types (it asserts), lengths of 4 GiB and more (it truncates), UTF-8,
// and the path of the field that an error names.
#pragma once

#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>
#include <type_traits>
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
  // What the place takes: a number, an enum or a text; of a list, one element more or several.
  void read(int64_t& to) { to = int64(); }
  void read(float& to) { to = float32(); }
  void read(double& to) { to = float64(); }
  void read(std::string_view& to) { to = string(); }
  void read(std::vector<int64_t>& to);
  void read(std::vector<float>& to);
  void read(std::vector<std::string_view>& to) { to.push_back(string()); }
  template <typename T>
  requires(std::is_enum_v<T> || std::is_same_v<T, int32_t>) void read(T& to) {
    to = static_cast<T>(int32());
  }

 private:
  protozero::pbf_reader& as(protozero::pbf_wire_type type);  // checked
  protozero::pbf_reader reader_;
};

// One field of a message: its number in the .proto, and what reads it.
template <typename Read>
struct FieldReader {
  uint32_t number;
  Read read;  // (WireReader&)
};

template <typename Read>
FieldReader<Read> on(uint32_t number, Read read) {
  return {number, std::move(read)};
}

template <typename T>
auto into(uint32_t number, T& to) {
  return on(number, [&to](WireReader& r) { r.read(to); });
}

// A message within the message, for `read` to take its bytes.
template <typename Read>
auto inside(uint32_t number, WirePath& path, const char* name, Read read) {
  return on(number, [&path, name, read = std::move(read)](WireReader& r) {
    path.in(name, -1, [&] { read(r.bytes()); });
  });
}

// Fields that none of the readers is for are skipped.
template <typename... Reads>
void read_message(std::string_view bytes, const FieldReader<Reads>&... fields) {
  for (WireReader r(bytes); r.next();)
    if (!((r.tag() == fields.number && (fields.read(r), true)) || ...)) r.skip();
}

}  // namespace anymps::onnx
