// SPDX-License-Identifier: Apache-2.0
#include "formats/executorch/payload/node_call.h"

#include <algorithm>
#include <cmath>

#include "formats/executorch/operators/promotion.h"

namespace anymps::executorch {

namespace {

enum Category { kBools, kInts, kFloats, kComplexes };

Category category(DType type) {
  if (is_complex(type)) return kComplexes;
  if (is_float(type)) return kFloats;
  return type == DType::kBool ? kBools : kInts;
}

bool fits_half(double number) { return !std::isfinite(number) || std::abs(number) <= 65504; }

}  // namespace

Value* NodeCall::in(FlatField field) { return values_.get(id(field), fields, field); }

Value* NodeCall::opt(FlatField field) { return i(field) == -1 ? nullptr : in(field); }

Values NodeCall::ins(FlatField field) {
  Values result;
  for (const int64_t id : ints(field))
    result.push_back(id == -1 ? nullptr
                              : values_.get(values_.id(fields, id, field), fields, field));
  return result;
}

Ints NodeCall::ints(FlatField field) const {
  const auto numbers = fields.numbers<int32_t>(field);
  return {numbers.begin(), numbers.end()};
}

Ints NodeCall::counted(FlatField count, FlatField field) const {
  Ints result = ints(field);
  if (i(count) != std::ssize(result))
    fields.fail(count, "it is {}, but {} has {} entries", i(count), field.name, result.size());
  return result;
}

DType NodeCall::declared_type(FlatField field) const { return values_.dtype(id(field)); }

const Ints& NodeCall::declared_dims(FlatField field) const { return values_.dims(id(field)); }

std::optional<double> NodeCall::number_of(const Value* value) {
  if (value->producer && value->producer->is("fill")) return scalar_of(value->producer->input(1));
  return scalar_of(value);
}

// A single number takes the type of the tensors that it meets, if they are of its kind: that is
// PyTorch's rule for scalars, and Python's numbers come as constants of shape [1]. So do fills,
// which stay float32 in half precision, unless half has no room for the number.
DType NodeCall::promoted(const Values& values) const {
  std::optional<DType> tensors, numbers;
  const auto join = [](std::optional<DType>& to, DType type) {
    to = to ? promote(*to, type) : type;
  };
  for (const Value* value : values) {
    const auto number = number_of(value);
    const bool scalar = number || (value->type.ranked && value->shape().empty());
    join(scalar ? numbers : tensors, value->dtype());
  }
  if (!tensors || !numbers) return tensors ? *tensors : *numbers;
  if (category(*numbers) != kFloats || category(*tensors) != kFloats)
    return promote(*tensors, *numbers);
  if (*tensors == DType::kF16)
    for (const Value* value : values)
      if (const auto number = number_of(value); number && !fits_half(*number)) return DType::kF32;
  return *tensors;
}

DType NodeCall::computed(const Values& values, FlatField field) const {
  const DType declared = declared_type(field), type = promoted(values);
  if (category(declared) <= kInts) return declared;
  return category(type) < category(declared) ? declared : type;
}

DType NodeCall::computed_float(Value* x, FlatField field) const {
  if (category(x->dtype()) >= kFloats) return x->dtype();
  const DType declared = declared_type(field);
  return is_float(declared) ? declared : DType::kF32;
}

Value* NodeCall::as(Value* x, DType type) {
  if (x->dtype() == type) return x;
  const auto number = x->is_constant() ? scalar_of(x) : std::nullopt;
  const bool single = number && x->constant->desc().count() == 1;
  // What the target may have no room for is left to the cast's own rules.
  if (single && std::abs(*number) < 0x1p24 && contains(kFloat | kIndex, type))
    return graph.scalar(type, *number);
  return cast(x, type);
}

Value* NodeCall::as_index(Value* x) {
  return contains(kIndex, x->dtype()) ? x : as(x, DType::kI64);
}

Value* NodeCall::reshaped(Value* x, const Ints& shape) {
  return add("reshape", {x}, {{"shape", shape}, {"allow_zero", true}});
}

Value* NodeCall::fitted(Value* value, size_t id) {
  const Ints& dims = values_.dims(id);
  const ValueType& type = value->type;
  if (!type.ranked) return value;
  if (values_.exact && type.static_shape()) {
    const Shape shape = to_shape(type.shape);
    if (std::equal(shape.begin(), shape.end(), dims.begin(), dims.end())) return value;
    // Of a dynamic module the exporter declares the largest shapes; but of results that come as a
    // list, those of the example that it was traced with.
    const bool larger =
        std::equal(shape.begin(), shape.end(), dims.begin(), dims.end(),
                   [](int64_t extent, int64_t declared) { return extent >= declared; });
    if (larger) return value;
    check(element_count(shape) == element_count(Shape(dims.begin(), dims.end())),
          "the result has the shape {}, but value {} is declared [{}]", to_string(shape), id,
          fmt::join(dims, ", "));
    return reshaped(value, dims);
  }
  if (type.shape.size() == dims.size()) return value;
  const bool single =
      std::all_of(type.shape.begin(), type.shape.end(), [](const Dim& dim) { return dim.is(1); });
  check(single, "the result has the shape {}, but value {} is declared with {} axes",
        to_string(type.shape), id, dims.size());
  return reshaped(value, Ints(dims.size(), 1));
}

void NodeCall::out(FlatField field, Value* value) {
  const size_t id = this->id(field);
  const DType declared = values_.dtype(id);
  if (category(declared) <= kInts || category(value->dtype()) < category(declared))
    value = as(value, declared);
  values_.set(id, fitted(value, id));
}

void NodeCall::outs(FlatField field, const Values& values) {
  const Ints ids = ints(field);
  check(ids.size() == values.size(), "{} has {} entries, must have {}", field.name, ids.size(),
        values.size());
  for (size_t k = 0; k < ids.size(); ++k) {
    const size_t id = values_.id(fields, ids[k], field);
    values_.set(id, fitted(values[k], id));
  }
}

void NodeCall::out_later(FlatField field, std::function<Value*()> make) {
  if (i(field) != -1) values_.set_later(id(field), std::move(make));
}

void NodeCall::out_converted(FlatField field, Value* value) {
  const size_t id = this->id(field);
  values_.set(id, fitted(value, id), true);
}

void convert_node(const NodeConverter& converter, NodeCall& c) {
  if (converter.convert) return converter.convert(c);
  using F = field::Unary;
  Value* x = c.in(F::kInput);
  if (!contains(converter.same_as->inputs[0].dtypes, x->dtype())) x = c.as_float(x, F::kOutput);
  c.out(F::kOutput, c.add(converter.same_as->name, {x}));
}

}  // namespace anymps::executorch
