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
  Dim(int64_t value = 0) : value_(value) {}  // NOLINT: a number is a Dim
  static Dim symbol(std::string expression);

  bool known() const { return expression_ == nullptr; }
  int64_t value() const;  // fails on a symbol
  bool is(int64_t value) const { return known() && value_ == value; }
  const char* symbol_name() const { return known() ? nullptr : expression_->c_str(); }
  std::string str() const { return known() ? std::to_string(value_) : *expression_; }

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
  int64_t value_ = 0;
  std::shared_ptr<const std::string> expression_;
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
