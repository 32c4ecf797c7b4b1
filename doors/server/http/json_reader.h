// SPDX-License-Identifier: Apache-2.0
// Reads JSON value by value, straight from the body of a request: nothing is allocated but what the
// caller keeps. Accepts what Triton accepts (NaN and Infinity too) and words errors as it does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "serving/error.h"

namespace anymps::server::http {

class JsonReader {
 public:
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };
  // Integers that fit keep every digit; the rest are doubles.
  struct Number {
    enum class Form { kUnsigned, kNegative, kDouble } form = Form::kUnsigned;
    uint64_t integer = 0;  // of kNegative: its two's complement
    double real = 0;
  };

  explicit JsonReader(std::string_view text) : text_(text) {}

  // The kind of the value that comes next.
  Kind peek();
  // Each reads one value. A value of another kind is an Error(kInternal) in Triton's words; the
  // reader then stands before it.
  void skip();
  bool boolean();
  uint64_t unsigned_integer();
  int64_t signed_integer();
  double real();
  Number number();
  // Valid until `store` changes; it is used if the string has escapes.
  std::string_view string(std::string& store);
  std::string string();

  // `each` must read one value for each call.
  template <class Each>
  void array(Each&& each) {
    open('[', "attempt to access JSON non-array as array");
    for (bool more = !close(']'); more; more = next_element()) each();
    --depth_;
  }
  template <class Each>
  void object(Each&& each) {
    open('{', "attempt to access JSON non-object as object");
    std::string store;
    for (bool more = !close('}'); more; more = next_member()) each(name(store));
    --depth_;
  }

  // Nothing but white space may follow.
  void end();
  size_t position() const { return at_; }
  void rewind(size_t position) { at_ = position; }
  size_t remaining() const { return text_.size() - at_; }

 private:
  [[noreturn]] void malformed(const char* what, size_t position) const;
  void space();
  void open(char bracket, const char* mismatch);
  bool close(char bracket);
  bool next(char bracket, const char* missing);
  bool next_element();
  bool next_member();
  std::string_view name(std::string& store);
  void literal(std::string_view word);
  void unescape(std::string& out);
  uint32_t four_digits(size_t escape);
  double decimal(size_t begin, size_t end);

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace anymps::server::http
