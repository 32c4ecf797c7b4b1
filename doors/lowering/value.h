// SPDX-License-Identifier: Apache-2.0
// What an expression's names stand for while a kernel is lowered: a tensor of the graph that is
// being built, or something known already, on which the graph may depend.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "anymps/anymps.h"

namespace anymps::lowering {

struct Tensor {
  amps_value* value = nullptr;
  bool number = false;    // a scalar of the call: it takes the type of what it meets
  bool own_type = false;  // as a result: whatever type the framework has in mind
};

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;

struct Value;
using Values = std::vector<Value>;

struct Value : std::variant<std::monostate, Tensor, bool, int64_t, double, Ints, Floats,
                            std::string, amps_dtype, Values, std::complex<double>> {
  using variant::variant;

  bool absent() const { return std::holds_alternative<std::monostate>(*this); }
  bool is_tensor() const { return std::holds_alternative<Tensor>(*this); }
  // Known while lowering, and a real number.
  bool is_static_number() const {
    return std::holds_alternative<int64_t>(*this) || std::holds_alternative<double>(*this) ||
           std::holds_alternative<bool>(*this);
  }

  Tensor tensor() const;
  bool flag() const;
  int64_t integer() const;
  double number() const;
  Ints ints() const;  // of a list, or of one number
  Floats floats() const;
  const std::string& text() const;
  amps_dtype dtype() const;
  const Values& values() const;
};

}  // namespace anymps::lowering
