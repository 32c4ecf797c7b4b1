// SPDX-License-Identifier: Apache-2.0
// Symbolic shapes. A Dim is a number or a symbol: a name ("N") or an expression over names
// ("(H+1)//2"). Graphs carry Dims; when feeds are known, inference is run again with numbers, so an
// expression is never evaluated: it is there to be compared and to be read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/shape.h"

namespace anymps {

class Dim {
 public:
  static constexpr int64_t kNoLimit = INT64_MAX;

  Dim(int64_t value = 0) : value_(value) {}  // NOLINT: a number is a Dim
  // A name or an expression. A name may have a largest extent, which is printed with it: "N<=128".
  static Dim symbol(std::string expression, int64_t limit = kNoLimit);
  // A symbol as it is printed and as users write it: "N", "N<=128", "(H+1)//2".
  static Dim parse(const std::string& text);

  bool known() const { return symbol_ == nullptr; }
  int64_t value() const;  // fails on a symbol
  bool is(int64_t value) const { return known() && value_ == value; }
  int64_t limit() const { return known() ? value_ : symbol_->limit; }  // kNoLimit: none is known
  const char* symbol_text() const { return known() ? nullptr : symbol_->text.c_str(); }
  std::string str() const { return known() ? std::to_string(value_) : symbol_->text; }

  friend bool operator==(const Dim& a, const Dim& b);
  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  // Division that rounds down, and up; the divisor must not be a known zero.
  friend Dim floor_div(const Dim& a, const Dim& b);
  friend Dim ceil_div(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);
  friend Dim min(const Dim& a, const Dim& b);

 private:
  struct Symbol {
    std::string text;  // with the limit
    int64_t limit = kNoLimit;
  };
  int64_t value_ = 0;
  std::shared_ptr<const Symbol> symbol_;
};

using Dims = std::vector<Dim>;

std::string to_string(const Dims& dims);
bool all_known(const Dims& dims);
Shape to_shape(const Dims& dims);  // fails on a symbol
Dims to_dims(const Shape& shape);
Dim product(const Dims& dims, size_t first, size_t last);

// NumPy broadcasting of symbolic shapes: a symbol against 1 gives the symbol, against itself
// itself; a symbol against a number n > 1 is taken to be n (checked again when it is known).
Dims broadcast(const Dims& a, const Dims& b, const char* who);

}  // namespace anymps
