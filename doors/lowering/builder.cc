// SPDX-License-Identifier: Apache-2.0
#include "lowering/builder.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace anymps::lowering {

void check(const amps_api& api, amps_status status) {
  if (status != AMPS_OK) throw EngineError(status, api.last_error());
}

bool is_half(amps_dtype dtype) { return dtype == AMPS_F16 || dtype == AMPS_BF16; }
bool is_complex(amps_dtype dtype) { return dtype == AMPS_C64 || dtype == AMPS_C128; }
bool is_float(amps_dtype dtype) { return is_half(dtype) || dtype == AMPS_F32 || dtype == AMPS_F64; }

AttrList::AttrList(const NamedValues& attrs) {
  ints_.reserve(attrs.size());  // so that they stay where they are
  floats_.reserve(attrs.size());
  for (const auto& [name, value] : attrs) {
    if (value.absent()) continue;
    amps_attr attr{};
    attr.name = name.c_str();
    if (std::holds_alternative<double>(value)) {
      attr.kind = AMPS_ATTR_FLOAT;
      attr.f = value.number();
    } else if (value.is_static_number()) {
      attr.kind = AMPS_ATTR_INT;
      attr.i = value.integer();
      attr.f = value.number();
    } else if (std::holds_alternative<amps_dtype>(value)) {
      attr.kind = AMPS_ATTR_INT;
      attr.i = value.dtype();
    } else if (std::holds_alternative<std::string>(value)) {
      attr.kind = AMPS_ATTR_STRING;
      attr.s = value.text().c_str();
    } else if (std::holds_alternative<Floats>(value)) {
      floats_.push_back(value.floats());
      attr.kind = AMPS_ATTR_FLOATS;
      attr.floats = floats_.back().data();
      attr.count = floats_.back().size();
    } else {
      ints_.push_back(value.ints());
      attr.kind = AMPS_ATTR_INTS;
      attr.ints = ints_.back().data();
      attr.count = ints_.back().size();
    }
    attrs_.push_back(attr);
  }
}

Builder::Builder(const amps_api& api) : api_(api) {
  check(api_, api_.graph_create("kernel", &graph_));
}

Builder::~Builder() { api_.graph_release(graph_); }

Tensor Builder::input(amps_dtype dtype, std::span<const int64_t> dims) {
  Tensor made;
  check(api_, api_.graph_input(graph_, next_name().c_str(), dtype, dims.size(), dims.data(),
                               nullptr, &made.value));
  return made;
}

Tensor Builder::constant(amps_dtype dtype, const Ints& dims, const void* data, size_t bytes) {
  Tensor made;
  check(api_, api_.graph_constant(graph_, next_name().c_str(), dtype, dims.size(), dims.data(),
                                  data, &made.value));
  const auto* first = static_cast<const char*>(data);
  constants_.push_back({made.value, dtype, dims, std::vector<char>(first, first + bytes)});
  return made;
}

Tensor Builder::number(double value, amps_dtype dtype) {
  if (dtype == AMPS_F32) {
    const auto number = static_cast<float>(value);
    return constant(dtype, {}, &number, sizeof(number));
  }
  if (dtype == AMPS_I64) {
    const auto number = static_cast<int64_t>(value);
    return constant(dtype, {}, &number, sizeof(number));
  }
  return numbers({value}, {}, dtype);
}

Tensor Builder::number(const Value& value, amps_dtype dtype) {
  if (const auto* complex = std::get_if<std::complex<double>>(&value))
    return cast(constant(AMPS_C128, {}, complex, sizeof(*complex)), dtype);
  if (const auto* whole = std::get_if<int64_t>(&value);
      whole && !is_float(dtype) && !is_complex(dtype))
    return cast(constant(AMPS_I64, {}, whole, sizeof(*whole)), dtype);
  return number(value.number(), dtype);
}

Tensor Builder::numbers(const Floats& values, const Ints& dims, amps_dtype dtype) {
  const Tensor wide = constant(AMPS_F64, dims, values.data(), values.size() * sizeof(double));
  return cast(wide, dtype);
}

Ints Builder::dims(Tensor x) const {
  const int64_t rank = api_.value_rank(x.value);
  if (rank < 0) throw std::invalid_argument("a shape is not known yet");
  Ints dims;
  for (int64_t i = 0; i < rank; ++i) dims.push_back(api_.value_dim(x.value, i));
  return dims;
}

Values Builder::op(const std::string& name, std::span<const Value> inputs, const NamedValues& attrs,
                   size_t outputs) {
  const amps_op* op = api_.op_find(name.c_str());
  if (!op) throw std::invalid_argument("there is no op or function '" + name + "'");
  amps_dtype type = AMPS_F32;
  bool typed = false;
  const auto note = [&](const Value& input) {
    if (typed || !input.is_tensor() || input.tensor().number) return;
    type = dtype(input.tensor());
    typed = type != AMPS_BOOL || name != "where";
  };
  for (const Value& input : inputs) note(input);
  Node node{op, {}, {}, attrs};
  const auto add = [&](const Value& input) {
    if (input.absent())
      node.inputs.push_back(nullptr);
    else if (!input.is_tensor())
      node.inputs.push_back(number(input, type).value);
    else
      node.inputs.push_back(
          (input.tensor().number ? cast(input.tensor(), type) : input.tensor()).value);
  };
  for (const Value& input : inputs) {
    if (const auto* list = std::get_if<Values>(&input))
      for (const Value& item : *list) add(item);
    else
      add(input);
  }
  while (!node.inputs.empty() && !node.inputs.back()) node.inputs.pop_back();
  node.outputs.resize(outputs);
  const AttrList list(attrs);
  check(api_, api_.graph_op(graph_, op, node.inputs.data(), node.inputs.size(), list.data(),
                            list.size(), nullptr, node.outputs.data(), outputs));
  Values results;
  for (amps_value* output : node.outputs) results.emplace_back(Tensor{output});
  nodes_.push_back(std::move(node));
  return results;
}

Value Builder::binary(const std::string& name, const Value& a, const Value& b) {
  const auto plain = [](const Value& x) { return x.is_tensor() && !x.tensor().number; };
  if (plain(a) && plain(b)) return op(name, {a, b});
  if (!plain(a) && !plain(b)) {
    const Tensor first = a.is_tensor() ? a.tensor() : number(a.number(), AMPS_F64),
                 second = b.is_tensor() ? b.tensor() : number(b.number(), AMPS_F64);
    return Tensor{op(name, {Tensor{first.value}, Tensor{second.value}}).tensor().value, true};
  }
  const Tensor x = (plain(a) ? a : b).tensor();
  const amps_dtype type = dtype(x);
  if (!is_half(type)) return op(name, {a, b});
  const Tensor wide = cast(x, AMPS_F32);
  const Value y = plain(a) ? op(name, {wide, b}) : op(name, {a, wide});
  return dtype(y.tensor()) == AMPS_BOOL ? y : cast(y.tensor(), type);
}

Tensor Builder::input_number() {
  const Tensor made{input(AMPS_F64, {}).value, true};
  numbers_.push_back(made.value);
  return made;
}

Tensor Builder::cast(Tensor x, amps_dtype type) {
  if (dtype(x) == type) return {x.value};
  const bool given = std::find(numbers_.begin(), numbers_.end(), x.value) != numbers_.end();
  const bool direct = type == AMPS_F32 || (type >= AMPS_I8 && type <= AMPS_U8);
  if (given && direct) {
    for (const NumberCast& made : number_casts_)
      if (made.from == x.value && made.dtype == type) return {made.to};
    number_casts_.push_back({x.value, input(type, {}).value, type});
    return {number_casts_.back().to};
  }
  return op("cast", {Tensor{x.value}}, {{"dtype", type}}).tensor();
}

Tensor Builder::reshape(Tensor x, const Ints& shape) {
  if (dims(x) == shape) return x;
  const Tensor y =
      op("reshape", {Tensor{x.value}}, {{"shape", shape}, {"allow_zero", true}}).tensor();
  nodes_.pop_back();
  reshapes_.push_back({x.value, y.value});
  return {y.value, x.number, x.own_type};
}

Values Builder::gradient(Tensor y, Tensor seed, std::span<const Tensor> xs) {
  std::vector<amps_value*> to, gradients(xs.size());
  for (const Tensor& x : xs) to.push_back(x.value);
  check(api_, api_.graph_gradient_seeded(graph_, y.value, seed.value, to.data(), to.size(),
                                         gradients.data()));
  nodes_.push_back({nullptr, {}, {}, {}});  // nodes that were not counted: no longer a single one
  Values results;
  for (amps_value* gradient : gradients) results.emplace_back(Tensor{gradient});
  return results;
}

}  // namespace anymps::lowering
