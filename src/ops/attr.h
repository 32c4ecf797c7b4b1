// SPDX-License-Identifier: Apache-2.0
// Attribute values. A node holds one value for each attribute of its op's record, in the record's
// order and always complete: defaults are filled in when the node is made.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/dtype.h"

namespace anymps {

class Graph;
struct Op;

enum class AttrKind : uint8_t { kInt, kFloat, kString, kInts, kFloats, kBool, kDType, kGraph };
const char* name(AttrKind kind);

// Bools and dtypes are stored as integers; the record's AttrKind tells how to read them.
using AttrValue = std::variant<int64_t, double, std::string, std::vector<int64_t>,
                               std::vector<double>, std::shared_ptr<Graph>>;

std::string to_string(AttrKind kind, const AttrValue& value);

// What a caller writes: {{"axis", 1}, {"mode", "nearest"}}.
struct NamedAttr {
  std::string name;
  AttrValue value;
  NamedAttr(std::string n, AttrValue v) : name(std::move(n)), value(std::move(v)) {}
  NamedAttr(std::string n, int64_t v) : name(std::move(n)), value(v) {}
  NamedAttr(std::string n, int v) : name(std::move(n)), value(int64_t{v}) {}
  NamedAttr(std::string n, bool v) : name(std::move(n)), value(int64_t{v}) {}
  NamedAttr(std::string n, double v) : name(std::move(n)), value(v) {}
  NamedAttr(std::string n, float v) : name(std::move(n)), value(double{v}) {}
  NamedAttr(std::string n, const char* v) : name(std::move(n)), value(std::string(v)) {}
  NamedAttr(std::string n, std::string v) : name(std::move(n)), value(std::move(v)) {}
  NamedAttr(std::string n, DType v) : name(std::move(n)), value(static_cast<int64_t>(v)) {}
  NamedAttr(std::string n, std::vector<int64_t> v) : name(std::move(n)), value(std::move(v)) {}
  NamedAttr(std::string n, std::vector<double> v) : name(std::move(n)), value(std::move(v)) {}
};
using NamedAttrs = std::vector<NamedAttr>;

class Attrs {
 public:
  Attrs() = default;
  // Fills in defaults; fails on an unknown name, a wrong kind, a value outside the choices, or a
  // required attribute that is missing.
  Attrs(const Op& op, const NamedAttrs& given);

  int64_t i(const char* name) const { return std::get<int64_t>(at(name)); }
  bool b(const char* name) const { return i(name) != 0; }
  double f(const char* name) const { return std::get<double>(at(name)); }
  const std::string& s(const char* name) const { return std::get<std::string>(at(name)); }
  DType dtype(const char* name) const { return static_cast<DType>(i(name)); }
  const std::vector<int64_t>& ints(const char* name) const {
    return std::get<std::vector<int64_t>>(at(name));
  }
  const std::vector<double>& floats(const char* name) const {
    return std::get<std::vector<double>>(at(name));
  }
  const std::shared_ptr<Graph>& graph(const char* name) const {
    return std::get<std::shared_ptr<Graph>>(at(name));
  }

  void set(const NamedAttr& attr);
  const std::vector<AttrValue>& values() const { return values_; }
  const Op* op() const { return op_; }
  NamedAttrs named() const;  // to make another node with the same attributes
  friend bool operator==(const Attrs& a, const Attrs& b) {
    return a.op_ == b.op_ && a.values_ == b.values_;
  }

 private:
  const AttrValue& at(const char* name) const;

  const Op* op_ = nullptr;
  std::vector<AttrValue> values_;
};

}  // namespace anymps
