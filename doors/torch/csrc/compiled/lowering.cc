// SPDX-License-Identifier: Apache-2.0
// From the JSON of a graph to an executable.
#include <ATen/core/jit_type.h>
#include <ATen/native/TypeProperties.h>
#include <nlohmann/json.hpp>
#include "compiled/compiled_graph.h"
#include "device/generator.h"
#include "engine.h"
#include "kernels/table.h"
#include "types.h"

namespace anymps::aten {

namespace {

using lowering::Tensor;
using lowering::Value;
using lowering::Values;
using Json = nlohmann::json;

amps_dtype dtype_of(const Json& json) {
  const auto type = static_cast<at::ScalarType>(json.get<int>());
  const auto known = to_engine(type);
  TORCH_CHECK_NOT_IMPLEMENTED(known, "tensors of ", type, " are not supported on mps");
  return *known;
}

Value plain(const c10::IValue& value, Slot::Kind kind) {
  if (value.isNone()) return {};
  if (kind == Slot::Kind::kDType) return to_engine(value.toScalarType()).value();
  if (value.isBool()) return value.toBool();
  if (value.isInt()) return value.toInt();
  if (value.isDouble()) return value.toDouble();
  if (value.isString()) return value.toStringRef();
  if (value.isComplexDouble())
    return std::complex<double>(value.toComplexDouble().real(), value.toComplexDouble().imag());
  if (value.isList()) {
    Values items;
    for (const c10::IValue& item : value.toListRef()) items.push_back(plain(item, kind));
    return items;
  }
  return {};
}

}  // namespace

class GraphLowering {
 public:
  explicit GraphLowering(Lowered& lowered) : lowered_(lowered), builder_(engine()) {}

  void lower(const Json& json, const std::vector<at::Tensor>& inputs,
             const std::vector<size_t>& constants) {
    for (size_t i = 0; i < json.at("inputs").size(); ++i) {
      if (std::find(constants.begin(), constants.end(), i) != constants.end()) {
        values_.emplace_back(constant(inputs.at(i)));
        continue;
      }
      const Json& input = json["inputs"][i];
      values_.emplace_back(
          builder_.input(dtype_of(input.at("dtype")), input.at("dims").get<lowering::Ints>()));
      feeds_.push_back(values_.back().tensor().value);
      lowered_.feeds.push_back(i);
    }
    for (const Json& node : json.at("nodes")) add_node(node);
    std::vector<amps_value*> outputs;
    for (const Json& output : json.at("outputs")) {
      amps_value* value = values_.at(output.at("value").get<size_t>()).tensor().value;
      const auto taken = [&](const std::vector<amps_value*>& list) {
        return std::find(list.begin(), list.end(), value) != list.end();
      };
      if (taken(outputs) || taken(feeds_))
        value = builder_.op("identity", {Tensor{value}}).tensor().value;
      outputs.push_back(value);
      lowered_.outputs.push_back({static_cast<at::ScalarType>(output.at("dtype").get<int>()),
                                  output.at("dims").get<std::vector<int64_t>>(),
                                  output.at("strides").get<std::vector<int64_t>>()});
    }
    lowered_.states = feeds_.size() - lowered_.feeds.size();
    lowering::check(engine(),
                    engine().graph_set_outputs(builder_.graph(), outputs.data(), outputs.size()));
    lowering::check(engine(),
                    engine().compile(device(), builder_.graph(), nullptr, &lowered_.executable));
  }

 private:
  // Large ones stay where they are, as memory that may change: passes look only at the elements of
  // small ones, such as the numbers of a batch norm.
  Value constant(const at::Tensor& tensor) {
    constexpr int64_t kMostCopied = 1 << 16;
    const amps_view view = view_of(tensor);
    amps_value* value = nullptr;
    if (tensor.dim() <= 1 && tensor.numel() <= kMostCopied && tensor.is_contiguous())
      lowering::check(engine(), engine().graph_constant(builder_.graph(), nullptr, view.dtype,
                                                        view.rank, view.dims, view.data, &value));
    else
      lowering::check(engine(), engine().graph_constant_view(builder_.graph(), nullptr, &view,
                                                             nullptr, nullptr, &value));
    return Tensor{value};
  }

  Value value_of(const Json& json, Slot::Kind kind) {
    if (json.is_null()) return {};
    if (json.is_boolean()) return json.get<bool>();
    if (json.is_number_integer()) return json.get<int64_t>();
    if (json.is_number()) return json.get<double>();
    if (json.is_string()) return json.get<std::string>();
    if (json.is_array()) {
      Values items;
      for (const Json& item : json) items.push_back(value_of(item, kind));
      const auto whole = [](const Value& item) {
        return std::holds_alternative<int64_t>(item) || std::holds_alternative<bool>(item);
      };
      if (kind == Slot::Kind::kInts && std::all_of(items.begin(), items.end(), whole))
        return Value(items).ints();
      return items;
    }
    if (json.contains("value")) return values_.at(json["value"].get<size_t>());
    if (json.contains("dtype")) return dtype_of(json["dtype"]);
    if (json.contains("float"))
      return std::stod(json["float"].get<std::string>());  // inf and nan, which JSON has not
    const auto parts = json.at("complex").get<std::vector<double>>();
    return std::complex<double>(parts.at(0), parts.at(1));
  }

  // PyTorch's rules of promotion for what stands here: tensors with extents, tensors without,
  // numbers.
  void note_type(at::native::ResultTypeState& state, const Value& value) const {
    const auto join = [](at::ScalarType& into, at::ScalarType type) {
      into = into == at::ScalarType::Undefined ? type : c10::promoteTypes(into, type);
    };
    const at::ScalarType floats = c10::get_default_dtype_as_scalartype();
    if (const auto* list = std::get_if<Values>(&value)) {
      for (const Value& item : *list) note_type(state, item);
    } else if (value.is_tensor()) {
      const at::ScalarType type = to_torch(builder_.dtype(value.tensor()));
      join(builder_.rank(value.tensor()) > 0 ? state.dimResult : state.zeroResult, type);
    } else if (std::holds_alternative<bool>(value)) {
      join(state.wrappedResult, at::kBool);
    } else if (std::holds_alternative<int64_t>(value)) {
      join(state.wrappedResult, at::kLong);
    } else if (std::holds_alternative<double>(value)) {
      join(state.wrappedResult, floats);
    } else if (std::holds_alternative<std::complex<double>>(value)) {
      join(state.wrappedResult, c10::toComplexType(floats));
    }
  }

  Values lowered(const std::string& name, const lowering::Kernel& kernel, Values arguments,
                 std::span<const lowering::Wanted> wanted) {
    try {
      return kernel.lower(builder_, std::move(arguments), wanted);
    } catch (const lowering::EngineError& error) {
      throw lowering::EngineError(error.status, "[" + name + "] " + error.what());
    } catch (const std::exception& error) {
      throw lowering::EngineError(AMPS_INVALID_ARGUMENT, "[" + name + "] " + error.what());
    }
  }

  void add_node(const Json& node) {
    const auto name = node.at("op").get<std::string>();
    const Lowerable* lowerable = find_lowerable(name);
    TORCH_CHECK_NOT_IMPLEMENTED(lowerable, "The operator 'aten::", name, "' has no row for graphs");
    const RowOp::Ready& row = lowerable->row->ready(lowerable->of_row.schema());
    const Signature signature(lowerable->op.schema(), lowerable->row->row());
    Values arguments;
    at::native::ResultTypeState state;
    for (size_t i = 0; i < signature.slots.size(); ++i) {
      const c10::Argument& argument = lowerable->op.schema().arguments()[i];
      const Slot& slot = signature.slots[i];
      if (slot.out) continue;
      const Json& args = node.at("args");
      const Json& named = node.at("kwargs");
      if (i < args.size())
        arguments.push_back(value_of(args[i], slot.kind));
      else if (const auto found = named.find(argument.name()); found != named.end())
        arguments.push_back(value_of(*found, slot.kind));
      else
        arguments.push_back(argument.default_value() ? plain(*argument.default_value(), slot.kind)
                                                     : Value());
      if (slot.common) note_type(state, arguments.back());
    }
    std::vector<lowering::Wanted> wanted;
    for (const Json& result : node.at("results"))
      wanted.push_back(
          {!result.is_null(),
           result.is_null() ? std::nullopt : std::optional(dtype_of(result.at("dtype"))), true});
    if (signature.common) {
      at::ScalarType common = at::native::result_type(state);
      if (signature.common_float && c10::isIntegralType(common, true))
        common = c10::get_default_dtype_as_scalartype();
      size_t at = 0;
      for (const Slot& slot : signature.slots) {
        if (slot.out) continue;
        if (auto* number = std::get_if<int64_t>(&arguments[at++]))
          *number = bound_within(common, slot.bound, *number);
      }
      arguments.push_back(to_engine(common).value());
    }
    if (signature.state) {
      const int64_t words = Generator::kStateWords;
      arguments.push_back(builder_.input(AMPS_I32, {&words, 1}));
      feeds_.push_back(arguments.back().tensor().value);
    }
    if (signature.out_type) arguments.push_back(wanted.at(0).dtype.value());
    if (signature.out_dims)
      arguments.push_back(node.at("results").at(0).at("dims").get<lowering::Ints>());
    const Values results = lowered(name, row.kernel, std::move(arguments), wanted);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const Json& result = node.at("results")[i];
      values_.push_back(results.at(i));
      if (result.is_null() || results[i].absent()) continue;
      const auto dims = result.at("dims").get<lowering::Ints>();
      TORCH_CHECK(builder_.dims(results[i].tensor()) == dims, "[", name, "] result ", i,
                  " has another shape than PyTorch's: ", builder_.dims(results[i].tensor()),
                  " instead of ", dims);
    }
  }

  Lowered& lowered_;
  lowering::Builder builder_;
  Values values_;
  std::vector<amps_value*> feeds_;
};

std::shared_ptr<const Lowered> lower(const std::string& json, const std::vector<at::Tensor>& inputs,
                                     const std::vector<size_t>& constants) {
  auto lowered = std::make_shared<Lowered>();
  try {
    GraphLowering(*lowered).lower(Json::parse(json), inputs, constants);
  } catch (const lowering::EngineError& error) {
    raise(error);
  }
  return lowered;
}

CompiledGraph::CompiledGraph(std::string json)
    : json_(std::move(json)), weights_([&] {
        const Json graph = Json::parse(json_);
        inputs_ = graph.at("inputs").size();
        return graph.value("weights", std::vector<size_t>());
      }()) {
  if (!weights_.empty()) return;  // compiled when they are known
  plain_ = lower(json_, {}, {});
  json_.clear();
}

}  // namespace anymps::aten
