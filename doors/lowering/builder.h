// SPDX-License-Identifier: Apache-2.0
// Builds the graph of one kernel call with the engine's own types, through its function table.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "lowering/value.h"

namespace anymps::lowering {

// What the engine answered.
struct EngineError : std::runtime_error {
  EngineError(amps_status code, const std::string& what) : std::runtime_error(what), status(code) {}
  amps_status status;
};
void check(const amps_api& api, amps_status status);

using NamedValues = std::vector<std::pair<std::string, Value>>;

class Builder {
 public:
  // A node as it was added, so that a graph of one node can be called without a graph.
  struct Node {
    const amps_op* op;
    std::vector<amps_value*> inputs, outputs;
    NamedValues attrs;
  };
  // A tensor that is another one in a new shape. Where both are row-major that costs nothing.
  struct Reshape {
    amps_value *from, *to;
  };
  // A number of the call in another type: it is given in that type, and no node casts it.
  struct NumberCast {
    amps_value *from, *to;
    amps_dtype dtype;
  };
  struct Constant {
    amps_value* value;
    amps_dtype dtype;
    Ints dims;
    std::vector<char> bytes;
  };

  explicit Builder(const amps_api& api);
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  Tensor input(amps_dtype dtype, std::span<const int64_t> dims);
  Tensor input_number();  // given at the run, as f64
  Tensor number(double value, amps_dtype dtype);
  Tensor number(const Value& value, amps_dtype dtype);  // integers and complex numbers as they are
  Tensor numbers(const Floats& values, const Ints& dims, amps_dtype dtype);
  // An input that is a number and not a tensor takes the type of the first tensor among them; an
  // absent one is left out.
  Values op(const std::string& name, std::span<const Value> inputs, const NamedValues& attrs,
            size_t outputs);
  Value op(const std::string& name, std::initializer_list<Value> inputs,
           const NamedValues& attrs = {}) {
    return op(name, std::span(inputs.begin(), inputs.size()), attrs, 1)[0];
  }
  // An elementwise op on tensors and numbers. With a number, half types are computed in f32, as a
  // number has more digits than they.
  Value binary(const std::string& name, const Value& a, const Value& b);
  Tensor cast(Tensor x, amps_dtype dtype);
  Tensor reshape(Tensor x, const Ints& dims);
  // The gradients to each of xs of sum(seed * y).
  Values gradient(Tensor y, Tensor seed, std::span<const Tensor> xs);

  amps_dtype dtype(Tensor x) const { return api_.value_dtype(x.value); }
  int64_t rank(Tensor x) const { return api_.value_rank(x.value); }
  Ints dims(Tensor x) const;

  const amps_api& api() const { return api_; }
  amps_graph* graph() const { return graph_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Reshape>& reshapes() const { return reshapes_; }
  const std::vector<NumberCast>& number_casts() const { return number_casts_; }
  const std::vector<Constant>& constants() const { return constants_; }

 private:
  Tensor constant(amps_dtype dtype, const Ints& dims, const void* data, size_t bytes);

  std::string next_name() { return "v" + std::to_string(named_++); }

  const amps_api& api_;
  int named_ = 0;
  amps_graph* graph_ = nullptr;
  std::vector<Node> nodes_;  // but for reshapes
  std::vector<Reshape> reshapes_;
  std::vector<amps_value*> numbers_;
  std::vector<NumberCast> number_casts_;
  std::vector<Constant> constants_;
};

bool is_half(amps_dtype dtype);
bool is_float(amps_dtype dtype);
bool is_complex(amps_dtype dtype);

// Attributes as the C interface takes them; valid as long as what they were made of.
class AttrList {
 public:
  explicit AttrList(const NamedValues& attrs);
  const amps_attr* data() const { return attrs_.data(); }
  size_t size() const { return attrs_.size(); }

 private:
  std::vector<amps_attr> attrs_;
  std::vector<Ints> ints_;
  std::vector<Floats> floats_;
};

}  // namespace anymps::lowering
