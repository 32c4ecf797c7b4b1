// SPDX-License-Identifier: Apache-2.0
#include "ops/control/custom.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/fork.h"
#include "ops/gradient.h"
#include "ops/infer.h"

namespace anymps {

namespace {

using Json = nlohmann::ordered_json;

struct Registry {
  ForkMutex mutex;
  std::map<std::string, std::shared_ptr<const CustomOp>, std::less<>> ops;
};
Registry& registry() {
  static auto* all = new Registry;  // nodes hold references until the process ends
  return *all;
}

// Floats as text: JSON has no infinity, and no way to keep every bit.
std::string hex_of(double value) { return fmt::format("{:a}", value); }
double float_of(const Json& value) {
  return std::strtod(value.get_ref<const std::string&>().c_str(), nullptr);
}

CustomTensor describe(const ValueType& type, std::vector<Dim>& unknown) {
  CustomTensor tensor{true, type.dtype, {}, nullptr};
  for (const Dim& dim : type.shape) {
    if (dim.known()) {
      tensor.dims.push_back(dim.value());
      continue;
    }
    size_t i = 0;
    while (i < unknown.size() && !(unknown[i] == dim)) ++i;
    if (i == unknown.size()) unknown.push_back(dim);
    tensor.dims.push_back(-1 - static_cast<int64_t>(i));
  }
  return tensor;
}

void infer_custom(InferContext& ctx) {
  const CustomOp& op = get_custom_op(ctx.attrs.s("op"));
  CustomCall call;
  call.attrs = decode_custom_attrs(ctx.attrs.s("attributes"));
  std::vector<Dim> unknown;
  for (size_t i = 0; i < ctx.input_count(); ++i) {
    if (ctx.has(i)) ctx.shape(i);  // ends here while a rank is not known
    call.inputs.push_back(ctx.has(i) ? describe(ctx.type(i), unknown) : CustomTensor{});
  }
  call.outputs.resize(ctx.output_count());
  try {
    op.infer(call);
  } catch (const Error& error) {
    ctx.fail_here(fmt::format("{}: {}", op.name, error.what()));
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    Dims dims;
    for (size_t axis = 0; axis < call.outputs[i].dims.size(); ++axis) {
      const int64_t extent = call.outputs[i].dims[axis];
      const size_t symbol = extent < 0 ? static_cast<size_t>(-1 - extent) : 0;
      ctx.check(extent >= 0 || symbol < unknown.size(),
                "{}: extent {} of output {} is {}, which no input has", op.name, axis, i, extent);
      dims.push_back(extent < 0 ? unknown[symbol] : Dim(extent));
    }
    ctx.set(i, call.outputs[i].dtype, std::move(dims));
  }
}

}  // namespace

void register_custom_op(CustomOp op) {
  require(op.name.find('.') != std::string::npos && op.name.back() != '.',
          "[custom] '{}' must be called DOMAIN.NAME", op.name);
  require(op.infer && op.run, "[custom] {} needs infer and run", op.name);
  std::lock_guard lock(registry().mutex);
  auto shared = std::make_shared<const CustomOp>(std::move(op));
  const bool fresh = registry().ops.emplace(shared->name, shared).second;
  require(fresh, "[custom] there is an op '{}' already", shared->name);
}

std::shared_ptr<const CustomOp> find_custom_op(std::string_view name) {
  std::lock_guard lock(registry().mutex);
  const auto found = registry().ops.find(name);
  return found == registry().ops.end() ? nullptr : found->second;
}

const CustomOp& get_custom_op(std::string_view name) {
  const auto found = find_custom_op(name);
  if (!found)
    fail(Code::kNotFound, "[custom] there is no op '{}': its library must be loaded first", name);
  return *found;
}

std::string encode_custom_attrs(const NamedAttrs& attrs) {
  Json list = Json::array();
  for (const NamedAttr& attr : attrs) {
    Json value;
    if (const auto* i = std::get_if<int64_t>(&attr.value)) value = *i;
    if (const auto* f = std::get_if<double>(&attr.value)) value = {{"f", hex_of(*f)}};
    if (const auto* s = std::get_if<std::string>(&attr.value)) value = *s;
    if (const auto* ints = std::get_if<std::vector<int64_t>>(&attr.value)) value = *ints;
    if (const auto* floats = std::get_if<std::vector<double>>(&attr.value)) {
      Json texts = Json::array();
      for (const double number : *floats) texts.push_back(hex_of(number));
      value = {{"floats", std::move(texts)}};
    }
    require(!value.is_null(), "[custom] attribute '{}' is of a kind that is not supported",
            attr.name);
    list.push_back({{"name", attr.name}, {"value", std::move(value)}});
  }
  try {
    return list.dump();
  } catch (const Json::exception&) {
    fail(Code::kUnsupported, "[custom] an attribute is no UTF-8 text");
  }
}

NamedAttrs decode_custom_attrs(const std::string& text) {
  NamedAttrs attrs;
  try {
    for (const Json& entry : Json::parse(text)) {
      const std::string name = entry.at("name").get<std::string>();
      const Json& value = entry.at("value");
      if (value.is_number_integer()) attrs.emplace_back(name, value.get<int64_t>());
      if (value.is_string()) attrs.emplace_back(name, value.get<std::string>());
      if (value.is_array()) attrs.emplace_back(name, value.get<std::vector<int64_t>>());
      if (value.contains("f")) attrs.emplace_back(name, float_of(value["f"]));
      if (!value.contains("floats")) continue;
      std::vector<double> floats;
      for (const Json& number : value["floats"]) floats.push_back(float_of(number));
      attrs.emplace_back(name, std::move(floats));
    }
  } catch (const Json::exception& error) {
    fail(Code::kCorrupt, "[custom] attributes: {}", error.what());
  }
  return attrs;
}

OP(custom)
    .doc(
        "Calls an op that was registered at run time (amps_op_register, op libraries). Nodes of an "
        "ONNX file whose op is not known otherwise become this.")
    .formula("outputs = op(inputs, attributes)")
    .variadic("inputs", kAny, "", "what the op takes; those that are left out have no shape")
    .variadic_outputs("outputs", "")
    .required("op", AttrKind::kString, "the op's name with its domain: \"my.domain.Op\"")
    .attr("attributes", "[]", {}, "its attributes, as JSON")
    .reference_only("the caller's function computes it")
    .infer(infer_custom)
    .no_tests("the op is not there before it is registered; tests/api/custom_op_test.cc");

NO_GRADIENT(custom, "only its author knows the gradient of an op of your own");

}  // namespace anymps
