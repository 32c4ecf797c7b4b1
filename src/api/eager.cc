// SPDX-License-Identifier: Apache-2.0
// Ops and eager calls of the C interface.
#include "runtime/eager/eager.h"

#include "api/attrs.h"
#include "api/handles.h"

namespace anymps::api {

EagerAttr eager_attr(const amps_attr& attr) {
  EagerAttr result;
  require(attr.name != nullptr, "[api] an attribute's name is NULL");
  result.name = attr.name;
  result.i = attr.i;
  result.f = attr.f;
  switch (attr.kind) {
    case AMPS_ATTR_INT:
      result.kind = AttrKind::kInt;
      break;
    case AMPS_ATTR_FLOAT:
      result.kind = AttrKind::kFloat;
      break;
    case AMPS_ATTR_STRING:
      result.kind = AttrKind::kString;
      require(attr.s != nullptr, "[api] attribute '{}' is NULL", attr.name);
      result.s = attr.s;
      break;
    case AMPS_ATTR_INTS:
      result.kind = AttrKind::kInts;
      require(attr.ints != nullptr || attr.count == 0, "[api] attribute '{}' is NULL", attr.name);
      result.ints = {attr.ints, attr.count};
      break;
    case AMPS_ATTR_FLOATS:
      result.kind = AttrKind::kFloats;
      require(attr.floats != nullptr || attr.count == 0, "[api] attribute '{}' is NULL", attr.name);
      result.floats = {attr.floats, attr.count};
      break;
    default:
      fail(Code::kInvalidArgument, "[api] attribute '{}' has the unknown kind {}", attr.name,
           static_cast<int>(attr.kind));
  }
  return result;
}

NamedAttr named_attr(const amps_attr& attr) {
  if (attr.kind != AMPS_ATTR_GRAPH) return to_named(eager_attr(attr));
  require(attr.name != nullptr, "[api] an attribute's name is NULL");
  return {attr.name, AttrValue(std::shared_ptr<Graph>(need(attr.graph, "graph").graph->clone()))};
}

}  // namespace anymps::api

using namespace anymps;
using namespace anymps::api;

extern "C" {

const amps_op* amps_op_find(const char* name) {
  return name ? reinterpret_cast<const amps_op*>(find_op(name)) : nullptr;
}
const char* amps_op_name(const amps_op* op) { return op ? op_of(op)->name.c_str() : ""; }
size_t amps_op_count(void) { return all_ops().size(); }
const amps_op* amps_op_at(size_t index) {
  return index < all_ops().size() ? reinterpret_cast<const amps_op*>(all_ops()[index]) : nullptr;
}

amps_status amps_eager(amps_device* device, const amps_op* op, amps_tensor* const* inputs,
                       size_t input_count, const amps_attr* attrs, size_t attr_count,
                       amps_tensor** outputs, size_t output_count) {
  return guard([&] {
    need(device, "device");
    need(outputs, "outputs");
    settle();
    require(inputs || input_count == 0, "[api] inputs is NULL");
    require(attrs || attr_count == 0, "[api] attrs is NULL");
    SmallVector<const Tensor*, 8> in;
    for (size_t i = 0; i < input_count; ++i) {
      if (inputs[i] && inputs[i]->device != device)
        fail(Code::kInvalidArgument, "[{}] input {} is on device '{}', not '{}'", amps_op_name(op),
             i, inputs[i]->device->device->name(), device->device->name());
      in.push_back(inputs[i] ? &inputs[i]->tensor : nullptr);
    }
    std::vector<EagerAttr> converted;  // allocates nothing when there are none
    for (size_t i = 0; i < attr_count; ++i) converted.push_back(eager_attr(attrs[i]));
    constexpr size_t kInline = 4;
    Tensor few[kInline];
    std::vector<Tensor> many(output_count > kInline ? output_count : 0);
    Tensor* out = output_count > kInline ? many.data() : few;
    for (size_t i = 0; i < output_count; ++i)
      if (outputs[i]) out[i] = outputs[i]->tensor;
    device->device->eager().call(*op_of(&need(op, "op")), in, converted, {out, output_count});
    for (size_t i = 0; i < output_count; ++i) {
      if (outputs[i]) continue;
      outputs[i] = new amps_tensor;
      outputs[i]->device = device;
      outputs[i]->tensor = std::move(out[i]);
    }
  });
}

}  // extern "C"
